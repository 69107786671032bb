"""Things of a real OpenStack that go, break or hang: each is brought back, alone, and the rest is left alone."""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from openstack.connection import Connection

from tests.openstack import projects
from tests.openstack.message_bus import remove_queue
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually
from tests.openstack.serving import Served, Wire, serving

pytestmark = [pytest.mark.services("octavia"), pytest.mark.shows("CV13")]
LOOK_S = 3.0
LONG_S = 3600.0
"""Between two looks: longer than a test waits."""


def of(resource: str) -> dict[str, str]:
    return {"get_resource": resource}


def server(**more: Any) -> Wire:
    return {"type": "OS::Nova::Server", "properties": {"image": "mini", "flavor": "m1.tiny", **more}}


LOOKS_MAX = 2
"""Looks at all until something is missed: it may have gone in the midst of the first."""
PORT = {"network": of("net"), "fixed_ips": [{"subnet": of("subnet")}]}
RESOURCES: dict[str, Wire] = {
    "net": {"type": "OS::Neutron::Net"},
    "subnet": {"type": "OS::Neutron::Subnet", "properties": {"network": of("net"), "cidr": "10.9.0.0/24"}},
    "port": {"type": "OS::Neutron::Port", "properties": PORT},
    "server": server(networks=[{"port": of("port")}]),
    "disk": {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
    "attachment": {
        "type": "OS::Cinder::VolumeAttachment",
        "properties": {"instance_uuid": of("server"), "volume_id": of("disk")},
    },
    "volume": {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
    "balancer": {"type": "OS::Octavia::LoadBalancer", "properties": {"vip_subnet": of("subnet")}},
    "pool": {
        "type": "OS::Octavia::Pool",
        "properties": {"loadbalancer": of("balancer"), "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"},
    },
    "member": {
        "type": "OS::Octavia::PoolMember",
        "properties": {"pool": of("pool"), "address": "10.9.0.200", "protocol_port": 80},
    },
}


@dataclass(frozen=True, slots=True)
class Scene:
    """user, admin — connections of the project's user, and of the administrator in the project."""

    openstack: OpenStack
    served: Served
    user: Connection
    admin: Connection

    def status_of(self, id: str) -> str:
        return str(self.user.compute.get_server(id).status)


@pytest.fixture(scope="module")
def mine(openstack_cloud: OpenStack) -> Iterator[Project]:
    made = projects.create(openstack_cloud)
    yield made
    projects.remove(made)


@pytest.fixture(scope="module")
def scene(mine: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with (
        serving(mine, tmp_path_factory.mktemp("service") / "state") as served,
        contextlib.closing(mine.connection()) as user,
        contextlib.closing(mine.admin()) as admin,
    ):
        yield Scene(mine.cloud, served, user, admin)


@pytest.fixture(scope="module")
def hearing(mine: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One whose service hears notifications."""
    bus, queue = mine.cloud.transport_url, f"healing-{uuid.uuid4()}"
    flags = ("--os-notifications", bus, "--os-notification-pool", queue)
    try:
        with (
            serving(mine, tmp_path_factory.mktemp("hearing") / "state", *flags) as served,
            contextlib.closing(mine.connection()) as user,
            contextlib.closing(mine.admin()) as admin,
        ):
            yield Scene(mine.cloud, served, user, admin)
    finally:
        remove_queue(bus, queue)


@pytest.fixture(scope="module")
def web(scene: Scene) -> str:
    """A stack at rest, with a thing of each kind."""
    made(scene, "web", RESOURCES)
    return "web"


@pytest.fixture(scope="module")
def heard(hearing: Scene) -> str:
    """A stack at rest that is hardly ever looked at, with a thing of each kind."""
    made(hearing, "heard", RESOURCES, LONG_S)
    return "heard"


def made(scene: Scene, name: str, resources: Wire, look_s: float = LOOK_S) -> dict[str, str]:
    """The handles of a new stack that is complete."""
    scene.served.create(name, resources, look_s)
    found = scene.served.at_rest(name)
    assert found["stack_status"] == "CREATE_COMPLETE", (found, scene.served.failures(name))
    return scene.served.handles(name)


def brought_back(scene: Scene, name: str, before: dict[str, str], anew: set[str]) -> None:
    """Wait until just these resources have other things than before, and all are well."""

    def is_back() -> bool:
        if not scene.served.is_well(name):
            return False
        now = scene.served.handles(name)
        changed = {each for each in now if now[each] != before[each]}
        assert changed <= anew, f"{changed - anew} were made anew, too: {scene.served.failures(name)}"
        return changed == anew

    eventually(is_back, f"{', '.join(sorted(anew))} to be made anew")


@dataclass(frozen=True, slots=True)
class Gone:
    """remove — deletes the thing with this id by hand. anew — what has another thing afterwards, if not it alone.
    find — the thing; where it is given, what is measured is the looks that it takes to miss it."""

    resource: str
    remove: Callable[[Scene, dict[str, str]], object]
    anew: tuple[str, ...] = ()
    find: Callable[[Scene, str], object] | None = None


GONE = (
    Gone(
        "server",
        lambda it, ids: it.user.compute.delete_server(ids["server"]),
        ("server", "attachment"),
        lambda it, id: it.user.compute.find_server(id),
    ),
    # Policy keeps users from deleting the port of a server.
    Gone(
        "port",
        lambda it, ids: it.admin.network.delete_port(ids["port"]),
        find=lambda it, id: it.user.network.find_port(id),
    ),
    Gone(
        "volume",
        lambda it, ids: it.user.block_storage.delete_volume(ids["volume"]),
        find=lambda it, id: it.user.block_storage.find_volume(id),
    ),
    Gone("attachment", lambda it, ids: it.user.compute.delete_volume_attachment(ids["server"], ids["disk"]), ("",)),
    Gone("member", lambda it, ids: it.user.load_balancer.delete_member(ids["member"].rpartition("/")[2], ids["pool"])),
    Gone("pool", lambda it, ids: it.user.load_balancer.delete_pool(ids["pool"]), ("pool", "member")),
    Gone(
        "balancer",
        lambda it, ids: it.user.load_balancer.delete_load_balancer(ids["balancer"], cascade=True),
        ("balancer", "pool", "member"),
    ),
)


@pytest.mark.parametrize("gone", GONE, ids=lambda each: each.resource)
def test_what_is_gone_is_made_anew(scene: Scene, web: str, gone: Gone) -> None:
    """Without notifications the next look misses it: the one that was under way when it went may not."""
    assert lost(scene, web, gone) <= LOOKS_MAX


@pytest.mark.parametrize("gone", [each for each in GONE if each.find is not None], ids=lambda each: each.resource)
def test_what_is_gone_is_made_anew_by_a_notice(hearing: Scene, heard: str, gone: Gone) -> None:
    """With notifications no look of its own is needed: the next one is an hour away. The begin of a deletion and its
    end are two notices, and the look for the first may come when the thing is gone already."""
    assert lost(hearing, heard, gone) <= 1


def lost(scene: Scene, name: str, gone: Gone) -> int:
    """Remove a thing, and wait until it is made anew; return how often all was looked at from then until it was missed.

    Looks are counted from when the cloud says that the thing is gone, or, where that is not asked for, not at all.
    """
    eventually(lambda: scene.served.is_well(name), "the stack to be well")
    before, events = scene.served.handles(name), len(scene.served.events(name))
    gone.remove(scene, before)
    looks: list[str] = []

    def is_missed() -> bool:
        is_gone = bool(looks) or (gone.find is not None and gone.find(scene, before[gone.resource]) is None)
        if is_gone and (look := scene.served.looked_at(name)) not in looks:
            looks.append(look)
        return noticed(scene, name, gone.resource, events)

    eventually(is_missed, f"{gone.resource} to be missed")
    brought_back(scene, name, before, set(gone.anew or (gone.resource,)) - {""})
    return max(len(looks) - 1, 0)  # the first is the last one from before


def noticed(scene: Scene, name: str, resource: str, events: int) -> bool:
    """Whether a check of a resource has failed since there were so many events."""
    new = scene.served.events(name)[events:]
    return ("CHECK_FAILED", resource) in {(each["resource_status"], each["resource_name"]) for each in new}


# -- servers ---------------------------------------------------------------------------------------------------------


def test_a_server_in_error_is_made_anew(scene: Scene, web: str) -> None:
    eventually(lambda: scene.served.is_well(web), "the stack to be well")
    before = scene.served.handles(web)
    scene.admin.compute.reset_server_state(before["server"], "error")
    brought_back(scene, web, before, {"server", "attachment"})


def test_a_server_that_has_crashed_is_started(scene: Scene, web: str) -> None:
    eventually(lambda: scene.served.is_well(web), "the stack to be well")
    before, events = scene.served.handles(web), len(scene.served.events(web))
    scene.openstack.vm("crash", before["server"])
    eventually(lambda: noticed(scene, web, "server", events), "the crash to be seen")
    eventually(lambda: scene.status_of(before["server"]) == "ACTIVE", "the server to run again")
    brought_back(scene, web, before, set())


def test_a_server_that_cannot_be_made_says_why_in_novas_words(scene: Scene) -> None:
    name = "unlucky"
    with scene.openstack.fault("virt", op="^spawn$", name=f"^{name}$", error="the disk is on fire"):
        scene.served.create(name, {"server": server(name=name, networks=[{"allocate_network": "none"}])}, LOOK_S)
        eventually(lambda: scene.served.failures(name), "the failure")
    failure = scene.served.failures(name)[0]
    assert "No valid host" in failure or "Exceeded maximum number of retries" in failure, failure
    assert scene.served.at_rest(name)["stack_status"] == "CREATE_COMPLETE"
    assert [each.status for each in scene.user.compute.servers(name=f"^{name}$")] == ["ACTIVE"]


@pytest.mark.slow
def test_a_server_stuck_in_build_fails_with_its_stack_and_is_taken_up_again(scene: Scene) -> None:
    name = "stuck"
    resources = {"server": server(name=name, networks=[{"allocate_network": "none"}])}
    with scene.openstack.fault("virt", op="^spawn$", name=f"^{name}$", delay=90):
        scene.served.create(name, resources, LOOK_S, timeout_mins=1)
        eventually(lambda: "its status is building" in reasons(scene, name), "the explanation")
        assert scene.served.at_rest(name)["stack_status"] == "CREATE_FAILED"
    scene.served.update(name, resources)
    assert scene.served.at_rest(name)["stack_status"] == "UPDATE_COMPLETE", scene.served.failures(name)
    eventually(lambda: [each.status for each in scene.user.compute.servers(name=name)] == ["ACTIVE"], "one server")


def reasons(scene: Scene, name: str) -> str:
    return "\n".join(str(each["reason"]) for each in scene.served.explanation(name)["resources"])


# -- hosts -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def seeing(mine: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A service whose login may see the hosts of servers: that of the administrator in the project."""
    with (
        serving(mine, tmp_path_factory.mktemp("seeing") / "state", auth=projects.auth_of_admin(mine)) as served,
        contextlib.closing(mine.connection()) as user,
        contextlib.closing(mine.admin()) as admin,
    ):
        yield Scene(mine.cloud, served, user, admin)


@pytest.mark.alone
@pytest.mark.slow
def test_a_server_on_a_host_that_is_down_is_explained_and_replaced_only_on_demand(seeing: Scene) -> None:
    networks = [{"allocate_network": "none"}]
    before = made(seeing, "hosted", {each: server(networks=networks) for each in ("one", "two")})
    host = seeing.admin.compute.get_server(before["one"]).compute_host.rpartition("-")[2]
    process = f"nova-{host}"
    with seeing.openstack.stopped(process):
        eventually(lambda: f"its host {host} does not answer since" in reasons(seeing, "hosted"), "the explanation")
        assert seeing.status_of(before["one"]) == "ACTIVE", "Nova says nothing of it"
        assert seeing.served.handles("hosted") == before
        assert seeing.served.failures("hosted") == []
        seeing.served.mark_unhealthy("hosted", "one", "its host has burnt down")
        brought_back(seeing, "hosted", before, {"one"})
        assert seeing.status_of(seeing.served.handles("hosted")["one"]) == "ACTIVE"
    eventually(lambda: not reasons(seeing, "hosted"), "all to be well")
    assert seeing.served.handles("hosted")["two"] == before["two"]
