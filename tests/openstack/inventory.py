"""Everything that a project has, as the administrator sees it."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from openstack.connection import Connection

from tests.openstack.projects import Project

Lists = Iterator[tuple[str, Iterable[Any]]]


def inventory(project: Project) -> dict[str, list[str]]:
    """Kind -> ids and names of all that is there. Kinds of which there is nothing are left out."""
    services = project.cloud.services
    with contextlib.closing(project.admin()) as admin, contextlib.closing(project.connection()) as user:
        lists = [*_base(project, admin, user)]
        for name, more in OPTIONAL.items():
            lists += more(project, admin) if name in services else ()
        found = {kind: sorted(f"{each.id} {each.name}" for each in things) for kind, things in lists}
    return {kind: names for kind, names in found.items() if names}


def _base(project: Project, admin: Connection, user: Connection) -> Lists:
    own = {"project_id": project.id}
    network, volumes, compute = admin.network, admin.block_storage, admin.compute
    yield "servers", compute.servers()
    yield "server groups", compute.server_groups()
    yield "key pairs", user.compute.keypairs()  # those of the user, whom no project has
    for kind in ("networks", "subnets", "ports", "routers", "ips", "security_groups", "trunks", "subnet_pools"):
        list_all: Callable[..., Iterable[Any]] = getattr(network, kind)
        yield kind, list_all(**own)
    yield "address scopes", network.address_scopes(**own)
    yield "volumes", volumes.volumes()
    yield "snapshots", volumes.snapshots()
    yield "backups", volumes.backups()
    yield (
        "volume types",
        (each for each in volumes.types() if each.name.startswith(project.name)),
    )  # no project has them
    yield "images", admin.image.images(owner=project.id)


def _octavia(project: Project, admin: Connection) -> Lists:
    for kind in ("load_balancers", "listeners", "pools", "health_monitors", "l7_policies"):
        list_all: Callable[..., Iterable[Any]] = getattr(admin.load_balancer, kind)
        yield kind, list_all(project_id=project.id)


def _barbican(_: Project, admin: Connection) -> Lists:
    for kind in ("secrets", "containers", "orders"):
        list_all: Callable[..., Iterable[Any]] = getattr(admin.key_manager, kind)
        yield kind, list_all()


def _swift(_: Project, admin: Connection) -> Lists:
    yield "containers of objects", admin.object_store.containers()


def _designate(_: Project, admin: Connection) -> Lists:
    yield "zones", admin.dns.zones()


OPTIONAL: dict[str, Callable[[Project, Connection], Lists]] = {
    "octavia": _octavia,
    "barbican": _barbican,
    "swift": _swift,
    "designate": _designate,
}
