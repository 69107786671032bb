"""Every row of the table of what answers mean: the real service says so, or a fault does where it cannot be made to."""

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from openstack.connection import Connection

from homeostat.clouds.openstack import answers
from homeostat.clouds.openstack.answers import RULES, Rule, meaning_of
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Answer, Creation
from homeostat.model.errors import HomeostatError, Terminal, Transient, Uncertain
from homeostat.model.observed import Observation, Presence
from tests.openstack.answer_examples import EXAMPLES, Example
from tests.openstack.lives import make, remove, rest
from tests.openstack.one_thing import adapter
from tests.openstack.projects import COMPUTE, NETWORK, VOLUMES, Project
from tests.openstack.running import OpenStack
from tests.waiting import until

NEVER = "11111111-2222-4333-8444-555555555555"
QUOTAS = {"compute": COMPUTE, "network": NETWORK, "volume": VOLUMES}
OPTIONAL = {
    "dns": "designate",
    "load-balancer": "octavia",
    "object-store": "swift",
    "shared-file-system": "manila",
    "reservation": "blazar",
    "workflow": "mistral",
}
"""Service of the table -> the one of the tests' OpenStack that not each has."""
HEAVY = ("designate", "manila")
"""Those that take long to start."""
BY_NAME = {each.name: each for each in EXAMPLES}
Became = Answer | HomeostatError
Expected = type[HomeostatError] | Presence


@dataclass(frozen=True, slots=True)
class Scene:
    """user, admin — the adapter, for the user of the project and for the administrator in it. sdk, root — of both."""

    openstack: OpenStack
    project: Project
    user: OpenStackCloud
    admin: OpenStackCloud
    sdk: Connection
    root: Connection

    @contextlib.contextmanager
    def limited(self, service: str, **limits: int) -> Iterator[None]:
        self.project.limit(service, **limits)
        try:
            yield
        finally:
            self.project.limit(service, **{each: QUOTAS[service][each] for each in limits})

    @contextlib.contextmanager
    def network(
        self, by: Connection | None = None, cidr: str = "10.60.0.0/24", **more: bool
    ) -> Iterator[tuple[str, str]]:
        """Ids of a network and its subnet."""
        network = (by or self.sdk).network
        made = network.create_network(name=name(), **more)
        subnet = network.create_subnet(network_id=made.id, ip_version=4, cidr=cidr)
        yield made.id, subnet.id
        network.delete_network(made)

    @contextlib.contextmanager
    def thing(self, type: str, kind: str, /, **properties: Any) -> Iterator[str]:
        """Handle of a thing of the user's, which is ready."""
        made = make(self.user, type, properties)
        yield made
        remove(self.user, kind, made)

    @contextlib.contextmanager
    def server(self) -> Iterator[str]:
        networks = [{"allocate_network": "none"}]
        with self.thing("OS::Nova::Server", "server", image="mini", flavor="m1.tiny", networks=networks) as made:
            yield made

    @contextlib.contextmanager
    def busy_volume(self) -> Iterator[str]:
        volumes = self.root.block_storage
        with self.thing("OS::Cinder::Volume", "volume", size=1) as made:
            volumes.reset_volume_status(made, "attaching", None, None)
            yield made
            volumes.reset_volume_status(made, "available", None, None)

    @contextlib.contextmanager
    def said(self, api: str, path: str, example: str, **more: Any) -> Iterator[None]:
        """Let a service answer with the words of an example."""
        what = BY_NAME[example]
        body = {"body": json.dumps({"error": {"message": what.words}})}
        with self.openstack.fault(
            "http", service=api, method=f"^{what.method}$", path=path, status=what.code, **{**body, **more}
        ):
            yield


def name() -> str:
    return f"answer-{uuid.uuid4().hex[:8]}"


def create(cloud: OpenStackCloud, kind: str, **spec: Any) -> Answer:
    return cloud.create(kind, [Creation(name(), spec)])[0]


def delete(cloud: OpenStackCloud, kind: str, handle: str) -> Answer:
    return cloud.delete(kind, [handle])[0]


def look(cloud: OpenStackCloud, kind: str, handle: str) -> Became:
    try:
        return cloud.observe(kind, [handle])[0]
    except HomeostatError as error:
        return error


# -- what provokes each ------------------------------------------------------------------------------------------------


def token(scene: Scene) -> Became:
    # The library itself has asked for a new one once by then.
    with scene.network() as (network, _), scene.said("neutron-api", "/networks", "token", times=2):
        return look(scene.user, "network", network)


def token_for_good(scene: Scene) -> Became:
    with scene.said("neutron-api", "/networks", "token"):
        return look(scene.user, "network", NEVER)


def compute_quota(scene: Scene) -> Became:
    with scene.limited("compute", instances=0):
        networks = [{"allocate_network": "none"}]
        return create(scene.user, "server", name="x", image="mini", flavor="m1.tiny", networks=networks)


def network_quota(scene: Scene) -> Became:
    with scene.limited("network", networks=0):
        return create(scene.user, "network", name="x")


def volume_quota(scene: Scene) -> Became:
    with scene.limited("volume", volumes=0):
        return create(scene.user, "volume", size=1)


def attached_volume(scene: Scene) -> Became:
    with scene.server() as server, scene.busy_volume() as volume:
        return create(scene.user, "volume_attachment", instance_uuid=server, volume_id=volume)


def used_volume_type(scene: Scene) -> Became:
    made = create(scene.admin, "volume_type", name=name(), is_public=True)
    assert isinstance(made, Observation), made
    with scene.thing("OS::Cinder::Volume", "volume", size=1, volume_type=made.handle):
        found = delete(scene.admin, "volume_type", made.handle)
    remove(scene.admin, "volume_type", made.handle)
    return found


def busy_volume(scene: Scene) -> Became:
    with scene.busy_volume() as volume:
        return delete(scene.user, "volume", volume)


def no_router(scene: Scene) -> Became:
    with (
        scene.network() as (network, _),
        scene.thing("OS::Neutron::Port", "port", network=network) as port,
    ):
        return create(scene.user, "floating_ip", floating_network_id="public", port_id=port)


def no_address(scene: Scene) -> Became:
    with scene.said("neutron-api", "/floatingips$", "no address"):
        return create(scene.user, "floating_ip", floating_network_id="public")


def exhausted(scene: Scene) -> Became:
    """The one address of a network is given already."""
    with (
        scene.network(scene.root, "203.0.113.0/30", is_router_external=True) as (network, _),
        scene.thing("OS::Neutron::FloatingIP", "floating_ip", floating_network=network),
    ):
        return create(scene.user, "floating_ip", floating_network_id=network)


def held_port(scene: Scene) -> Became:
    with scene.network() as (network, _), scene.thing("OS::Neutron::Port", "port", network=network) as port:
        scene.root.network.update_port(port, device_owner="compute:nova", device_id=NEVER)
        found = delete(scene.user, "port", port)
        scene.root.network.update_port(port, device_owner="", device_id="")
        return found


def full_subnet_pool(scene: Scene) -> Became:
    pool = {"name": name(), "prefixes": ["10.62.0.0/24"], "default_prefixlen": 24}
    with (
        scene.thing("OS::Neutron::SubnetPool", "subnetpool", **pool) as id,
        scene.thing("OS::Neutron::Net", "network") as network,
    ):
        return create(scene.user, "subnet", network_id=network, ip_version=4, subnetpool_id=id, prefixlen=16)


def contradiction(scene: Scene) -> Became:
    pools = [{"start": "10.61.0.2", "end": "10.61.0.9"}]
    addresses = {"cidr": "10.61.0.0/24", "gateway_ip": "10.61.0.5", "allocation_pools": pools}
    with scene.network() as (network, _):
        return create(scene.user, "subnet", network_id=network, ip_version=4, **addresses)


@contextlib.contextmanager
def listener(scene: Scene) -> Iterator[str]:
    """Id of a load balancer that has a listener on port 80."""
    with (
        scene.network() as (_, subnet),
        scene.thing("OS::Octavia::LoadBalancer", "load_balancer", vip_subnet=subnet) as balancer,
        scene.thing("OS::Octavia::Listener", "listener", loadbalancer=balancer, protocol="TCP", protocol_port=80),
    ):
        yield balancer


def balancer_with_children(scene: Scene) -> Became:
    with listener(scene) as balancer:
        return settled(lambda: delete(scene.user, "load_balancer", balancer))


def taken_place(scene: Scene) -> Became:
    with listener(scene) as balancer:
        spec: dict[str, Any] = {"loadbalancer": balancer, "protocol": "TCP", "protocol_port": 80}
        return settled(lambda: create(scene.user, "listener", **spec))


def settled(ask: Callable[[], Answer]) -> Answer:
    """The answer once no other change of the load balancer holds it up."""

    given: list[Answer] = []

    def has_turn() -> bool:
        given.append(ask())
        return "one change at a time" not in str(given[-1])

    until(has_turn, "the turn", rest=rest)
    return given[-1]


def zone_with_zones(scene: Scene) -> Became:
    above = f"{name()}.example."
    with (
        scene.thing("OS::Designate::Zone", "dns_zone", name=above, email="a@example.org") as zone,
        scene.thing("OS::Designate::Zone", "dns_zone", name=f"sub.{above}", email="a@example.org"),
    ):
        return delete(scene.user, "dns_zone", zone)


def used_share_type(scene: Scene) -> Became:
    made = create(
        scene.admin,
        "share_type",
        name=name(),
        is_public=True,
        driver_handles_share_servers=False,
        snapshot_support=True,
    )
    assert isinstance(made, Observation), made
    with scene.thing("OS::Manila::Share", "share", share_protocol="NFS", size=1, share_type=made.handle):
        found = delete(scene.admin, "share_type", made.handle)
    remove(scene.admin, "share_type", made.handle)
    return found


def busy_share(scene: Scene) -> Became:
    shares = scene.admin.service("shared-file-system")
    with scene.thing("OS::Manila::Share", "share", share_protocol="NFS", size=1, share_type="default") as share:
        shares.answer("POST", f"/shares/{share}/action", {"reset_status": {"status": "creating"}})
        found = delete(scene.user, "share", share)
        shares.answer("POST", f"/shares/{share}/action", {"reset_status": {"status": "available"}})
        return found


def used_workflow(scene: Scene) -> Became:
    tasks = [{"name": "rest", "action": "std.noop"}]
    with (
        scene.thing("OS::Mistral::Workflow", "workflow", type="direct", tasks=tasks) as flow,
        scene.thing("OS::Mistral::CronTrigger", "cron_trigger", pattern="0 4 * * *", workflow={"name": flow}),
    ):
        return delete(scene.user, "workflow", flow)


def taken_host(scene: Scene) -> Became:
    """Not by a host that is: others need it for their servers."""
    with scene.said("blazar-api", "/os-hosts$", "taken host"):
        return create(scene.admin, "reservable_host", name="compute1")


def too_few_hosts(scene: Scene) -> Became:
    times = {"start_date": "2037-01-01 00:00", "end_date": "2037-01-02 00:00"}
    wanted = {"resource_type": "physical:host", "min": 1, "max": 1}
    return create(scene.admin, "lease", name=name(), **times, reservations=[wanted])


def full_container(scene: Scene) -> Became:
    with scene.thing("OS::Swift::Container", "container", name=name()) as container:
        scene.sdk.object_store.upload_object(container, "thing", data=b"x")
        found = delete(scene.user, "container", container)
        scene.sdk.object_store.delete_object("thing", container=container)
        return found


def locked_server(scene: Scene) -> Became:
    with scene.server() as server:
        scene.sdk.compute.lock_server(server)
        found = delete(scene.user, "server", server)
        scene.sdk.compute.unlock_server(server)
        return found


def unready_image(scene: Scene) -> Became:
    image = scene.sdk.image.create_image(name(), disk_format="raw", container_format="bare", allow_duplicates=True)
    networks = [{"allocate_network": "none"}]
    found = create(scene.user, "server", name="x", image=image.id, flavor="m1.tiny", networks=networks)
    scene.sdk.image.delete_image(image.id)
    return found


def taken_name(scene: Scene) -> Became:
    with scene.thing("OS::Nova::KeyPair", "keypair", name=name()) as key:
        return create(scene.user, "keypair", name=key)


def used_network(scene: Scene) -> Became:
    with (
        scene.network() as (network, _),
        scene.thing("OS::Neutron::Port", "port", network=network),
    ):
        return delete(scene.user, "network", network)


def name_of_a_project(scene: Scene) -> Became:
    return create(scene.admin, "project", name=scene.project.name, domain_id="default")


def no_right_to_make(scene: Scene) -> Became:
    return create(scene.user, "project", name=name(), domain_id="default")


def no_feature(scene: Scene) -> Became:
    with (
        scene.network() as (_, subnet),
        scene.said("octavia-api", "/loadbalancers$", "no feature"),
    ):
        return create(scene.user, "load_balancer", vip_subnet=subnet)


def no_right_to_look(scene: Scene) -> Became:
    with scene.said("nova-api", "/servers/", "no right to look"):
        return look(scene.user, "server", NEVER)


def making_a_network(example: str, **more: Any) -> Callable[[Scene], Became]:
    def provoke(scene: Scene) -> Became:
        with scene.said("neutron-api", "/networks$", example, **more):
            return create(scene.user, "network", name=name())

    return provoke


def over_the_rate(scene: Scene) -> Became:
    with scene.said("cinder-api", "/volumes$", "over the rate"):
        return create(scene.user, "volume", size=1)


def away_while_looking(scene: Scene) -> Became:
    with scene.said("neutron-api", "/networks/", "away while looking"):
        return look(scene.user, "network", NEVER)


def refused(scene: Scene) -> Became:
    with scene.network() as (network, _):
        return create(scene.user, "subnet", network_id=network, ip_version=4, cidr="oops")


@dataclass(frozen=True, slots=True)
class Case:
    """row — name of the example of the row. becomes — the error, or the presence. says — if not the service's words."""

    row: str
    provoke: Callable[[Scene], Became]
    becomes: Expected
    says: str = ""

    @property
    def example(self) -> Example:
        return BY_NAME[self.row]


CASES = (
    Case("token", token, Presence.PRESENT),
    Case("token", token_for_good, Transient),
    Case("compute quota", compute_quota, Terminal),
    Case("network quota", network_quota, Terminal),
    Case("volume quota", volume_quota, Terminal),
    Case("attached volume", attached_volume, Transient),
    Case("used volume type", used_volume_type, Transient),
    Case("busy volume", busy_volume, Transient),
    Case("no router", no_router, Transient),
    Case("no address", no_address, Transient),
    Case("full subnet pool", full_subnet_pool, Terminal),
    Case("held port", held_port, Transient),
    Case("contradiction", contradiction, Terminal),
    Case("full balancer", balancer_with_children, Transient),
    Case("taken place", taken_place, Terminal),
    Case("zone with zones", zone_with_zones, Transient),
    Case("no id", lambda scene: look(scene.user, "dns_zone", "never"), Presence.ABSENT),
    Case("used share type", used_share_type, Transient),
    Case("busy share", busy_share, Transient),
    Case("used workflow", used_workflow, Transient),
    Case("taken host", taken_host, Terminal),
    Case("too few hosts", too_few_hosts, Terminal),
    Case("full container", full_container, Terminal, "Deleting non-empty container"),
    Case("locked server", locked_server, Terminal),
    Case("unready image", unready_image, Transient),
    Case("nothing", lambda scene: look(scene.user, "network", NEVER), Presence.ABSENT),
    Case("too many", making_a_network("too many", headers={"Retry-After": "1"}), Transient),
    Case("over the rate", over_the_rate, Transient),
    Case("taken name", taken_name, Terminal),
    Case("used network", used_network, Transient),
    Case("used network", exhausted, Transient),
    Case("name of a user", name_of_a_project, Terminal),
    Case("no right to make", no_right_to_make, Terminal),
    Case("no feature", no_feature, Terminal),
    Case("no right to look", no_right_to_look, Transient),
    Case("away while looking", away_while_looking, Transient),
    Case("away while acting", making_a_network("away while acting", after=True), Uncertain),
    Case("refused", refused, Terminal),
)


@pytest.fixture(scope="module")
def scene(openstack_cloud: OpenStack, project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("clouds")
    with (
        adapter(project, folder) as user,
        adapter(project, folder, admin=True) as admin,
        contextlib.closing(project.connection()) as sdk,
        contextlib.closing(project.admin()) as root,
    ):
        yield Scene(openstack_cloud, project, user, admin, sdk, root)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Rule, str]]:
    """The rows that were found for the answers of this test, each with the service's words."""
    found: list[tuple[Rule, str]] = []

    def meant(service: str, method: str, code: int, message: str) -> Rule:
        rule = meaning_of(service, method, code, message)
        found.append((rule, message))
        return rule

    monkeypatch.setattr(answers, "meaning_of", meant)
    return found


MAGNUM = "container-infrastructure-management"


def test_each_row_has_a_case() -> None:
    """But for those of a service that this OpenStack does not have: `tests/unit` has examples of them all."""
    assert {case.example.rule for case in CASES} == {rule for rule in RULES if rule.service != MAGNUM}


def cases() -> Iterator[Any]:
    for case in CASES:
        service = OPTIONAL.get(case.example.service)
        marks = [pytest.mark.services(service)] if service else []
        marks += [pytest.mark.slow] if service in HEAVY else []
        yield pytest.param(case, id=case.row, marks=marks)


@pytest.mark.parametrize("case", list(cases()))
def test_what_an_answer_becomes(scene: Scene, heard: list[tuple[Rule, str]], case: Case) -> None:
    became = case.provoke(scene)
    words = [message for rule, message in heard if rule == case.example.rule]
    assert words, f"{became!r} is another row's: {heard}"
    if isinstance(case.becomes, Presence):
        assert isinstance(became, Observation), became
        assert became.presence is case.becomes
    else:
        assert isinstance(became, case.becomes), repr(became)
        said = [case.says] if case.says else words
        assert any(each in str(became) for each in said), (str(became), said)
