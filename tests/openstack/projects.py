"""Projects of the tests' own: with a user, bounded, and removed with everything in them."""

import contextlib
import itertools
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from keystoneauth1.exceptions import ClientException
from openstack.config import OpenStackConfig
from openstack.connection import Connection
from openstack.exceptions import SDKException

from tests.openstack.running import REQUEST_S, OpenStack, eventually

_NUMBERS = itertools.count()
REMOVED_S = 600.0
"""For everything in a project to go: on a busy machine, or after an outage, services take their time."""
COMPUTE = {"instances": 100, "cores": 200, "ram": 200_000, "key_pairs": 100, "server_groups": 20}
NETWORK = {"networks": 50, "subnets": 50, "ports": 300, "routers": 20, "floating_ips": 50, "security_groups": 50}
VOLUMES = {"volumes": 100, "snapshots": 100, "gigabytes": 1000}


@dataclass(frozen=True, slots=True)
class Project:
    """A project, and a user whose password is the user's name, with the roles that default policies ask for."""

    cloud: OpenStack
    id: str
    name: str
    user_id: str
    user_name: str

    @property
    def auth(self) -> dict[str, str]:
        """What keystoneauth's plug-in `password` takes."""
        return _auth(self.cloud, self.user_name, self.user_name, self.name)

    @property
    def env(self) -> dict[str, str]:
        """The user's, for clients, in place of all other OS_ variables."""
        return {f"OS_{name.upper()}": value for name, value in self.auth.items()} | {"OS_IDENTITY_API_VERSION": "3"}

    def connection(self) -> Connection:
        """As the user."""
        return _connect(self.auth)

    def admin(self) -> Connection:
        """As the administrator, in this project."""
        return _connect(auth_of_admin(self))

    def limit(self, service: str, **limits: int) -> None:
        """Set quotas. service — compute, network or volume."""
        with contextlib.closing(self.cloud.admin()) as admin:
            set_quotas: Callable[..., object] = getattr(admin, f"set_{service}_quotas")
            set_quotas(self.id, **limits)


def auth_of_admin(project: Project) -> dict[str, str]:
    """What keystoneauth's plug-in `password` takes, of the administrator in a project."""
    known = OpenStackConfig(config_files=[str(project.cloud.clouds_yaml)], load_envvars=False).get_one("minios-admin")
    auth = known.config["auth"]
    return _auth(project.cloud, auth["username"], auth["password"], project.name)


def create(cloud: OpenStack) -> Project:
    """A new one, with quotas that no test should reach."""
    name = f"test-{os.getpid()}-{next(_NUMBERS)}-{uuid.uuid4().hex[:6]}"
    with contextlib.closing(cloud.admin()) as admin:
        identity: Any = admin.identity
        project = identity.create_project(name=name, domain_id="default")
        user = identity.create_user(name=f"{name}-user", password=f"{name}-user", domain_id="default")
        roles = {role.name: role for role in identity.roles()}
        for role in ("member", "reader", *cloud.roles):
            identity.assign_project_role_to_user(project, user, roles[role])
        administrator = identity.find_user("admin", ignore_missing=False)
        identity.assign_project_role_to_user(project, administrator, roles["admin"])
    made = Project(cloud, project.id, name, user.id, user.name)
    made.limit("compute", **COMPUTE)
    made.limit("network", **NETWORK)
    made.limit("volume", **VOLUMES)
    return made


def remove(project: Project) -> None:
    """With everything in it, whatever state that is in. Fails: AssertionError with what cannot be removed."""
    with contextlib.closing(project.admin()) as admin, contextlib.closing(project.connection()) as user:
        found: list[str] = []

        def is_empty() -> bool:
            found[:] = [name for name, is_left in _removals(project, admin, user) if is_left]
            return not found

        try:
            eventually(is_empty, "a project to be empty", REMOVED_S)
        except AssertionError as error:
            raise AssertionError(f"{project.name} still has {', '.join(found)}") from error
    with contextlib.closing(project.cloud.admin()) as admin:
        identity: Any = admin.identity
        identity.delete_user(project.user_id)
        identity.delete_project(project.id)
        for group in admin.network.security_groups(project_id=project.id):  # the one that Neutron had made by itself
            admin.network.delete_security_group(group)


def _removals(project: Project, admin: Connection, user: Connection) -> Iterator[tuple[str, bool]]:
    """Ask for the deletion of all that is left, those first that hold others. Gives kinds, and whether any was left."""
    own = {"project_id": project.id}
    network, volumes, compute = admin.network, admin.block_storage, admin.compute
    if "octavia" in project.cloud.services:
        balancers = admin.load_balancer
        yield _remove(
            "load balancers", balancers.load_balancers(**own), _deleting(balancers, "load_balancer", cascade=True)
        )
    yield _remove("servers", compute.servers(), _deleting(compute, "server", force=True))
    yield _remove("server groups", compute.server_groups(), _deleting(compute, "server_group"))
    yield _remove("key pairs", user.compute.keypairs(), _deleting(user.compute, "keypair"))
    yield _remove("trunks", network.trunks(**own), lambda each: _remove_trunk(network, each))
    yield _remove("floating IPs", network.ips(**own), _deleting(network, "ip"))
    yield _remove("routers", network.routers(**own), lambda each: _remove_router(network, each))
    yield _remove("ports", network.ports(**own), _deleting(network, "port"))
    yield _remove("networks", network.networks(**own), _deleting(network, "network"))
    yield _remove("QoS policies", network.qos_policies(**own), _deleting(network, "qos_policy"))
    groups = (each for each in network.security_groups(**own) if each.name != "default")
    yield _remove("security groups", groups, _deleting(network, "security_group"))
    yield _remove("snapshots", volumes.snapshots(), _deleting(volumes, "snapshot", force=True))
    yield _remove("volumes", volumes.volumes(), _deleting(volumes, "volume", force=True))
    yield _remove("images", admin.image.images(owner=project.id), _deleting(admin.image, "image"))


def _deleting(proxy: Any, kind: str, **how: bool) -> Callable[[Any], object]:
    delete: Callable[..., object] = getattr(proxy, f"delete_{kind}")
    return lambda each: delete(each, **how)


def _remove(name: str, found: Any, delete: Callable[[Any], object]) -> tuple[str, bool]:
    is_left = False
    for each in found:
        is_left = True
        with contextlib.suppress(SDKException, ClientException):  # something still holds it: there is a next round
            delete(each)
    return name, is_left


def _remove_router(network: Any, router: Any) -> None:
    if router.routes:
        network.update_router(router, routes=[])
    for port in network.ports(device_id=router.id):
        if port.device_owner == "network:router_interface":
            network.remove_interface_from_router(router, None, port.id)
    network.delete_router(router)


def _remove_trunk(network: Any, trunk: Any) -> None:
    network.update_trunk(trunk, admin_state_up=True)
    network.delete_trunk(trunk)


def _auth(cloud: OpenStack, user: str, password: str, project: str) -> dict[str, str]:
    return {
        "auth_url": cloud.auth_url,
        "username": user,
        "password": password,
        "project_name": project,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }


def _connect(auth: dict[str, str]) -> Connection:
    config = OpenStackConfig(config_files=[], load_envvars=False, load_yaml_config=False)
    return Connection(config=config.get_one(auth=auth, region_name="RegionOne", api_timeout=REQUEST_S))
