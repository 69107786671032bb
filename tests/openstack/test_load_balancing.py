"""Load balancing with a real Octavia."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.service import Service
from homeostat.clouds.port import Answer, Change, Creation
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation
from tests.openstack import lives
from tests.openstack.lives import Life, accepted, check_life, check_lost, check_never, make, ready, remove
from tests.openstack.projects import Project
from tests.waiting import until

pytestmark = [pytest.mark.services("octavia"), pytest.mark.slow]
NEVER = "11111111-2222-3333-4444-555555555555"


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with lives.adapter(project, tmp_path_factory.mktemp("cloud")) as found:
        yield found


@pytest.fixture(scope="module")
def subnet(cloud: OpenStackCloud) -> str:
    """Name of a subnet."""
    network = make(cloud, "OS::Neutron::Net", {"name": "net"})
    # Addresses that tests name are outside the pool: none of them is given to another thing by chance.
    pools = [{"start": "10.30.0.100", "end": "10.30.0.199"}]
    make(
        cloud,
        "OS::Neutron::Subnet",
        {"name": "sub", "network": network, "cidr": "10.30.0.0/24", "allocation_pools": pools},
    )
    return "sub"


@pytest.fixture(scope="module")
def balancer(cloud: OpenStackCloud, subnet: str) -> str:
    return make(cloud, "OS::Octavia::LoadBalancer", {"name": "web", "vip_subnet": subnet})


@pytest.fixture(scope="module")
def listener(cloud: OpenStackCloud, balancer: str) -> str:
    properties = {"name": "http", "loadbalancer": "web", "protocol": "HTTP", "protocol_port": 80}
    return make(cloud, "OS::Octavia::Listener", properties)


@pytest.fixture(scope="module")
def pool(cloud: OpenStackCloud, listener: str) -> str:
    properties = {"name": "servers", "listener": listener, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
    return make(cloud, "OS::Octavia::Pool", properties)


@pytest.fixture(scope="module")
def policy(cloud: OpenStackCloud, listener: str) -> str:
    return make(cloud, "OS::Octavia::L7Policy", {"listener": listener, "action": "REJECT", "name": "no"})


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The mutating requests: method and path."""
    found: list[tuple[str, str]] = []
    answer: Callable[..., Any] = Service.answer

    def counted(self: Service, method: str, path: str, *rest: Any, **more: Any) -> Any:
        if method != "GET":
            found.append((method, path))
        return answer(self, method, path, *rest, **more)

    monkeypatch.setattr(Service, "answer", counted)
    return found


OFF = {"admin_state_up": False}
LIVES: dict[str, Callable[[], Life]] = {
    "load_balancer": lambda: Life(
        "OS::Octavia::LoadBalancer",
        {"vip_subnet": "sub", "description": "d", "vip_address": "10.30.0.200"},
        ({"name": "other", "description": "e", **OFF},),
    ),
    "listener": lambda: Life(
        "OS::Octavia::Listener",
        {
            "loadbalancer": "web",
            "protocol": "HTTP",
            "protocol_port": 8000,
            "allowed_cidrs": ["10.0.0.0/8", "192.168.0.0/16"],
            "connection_limit": 10,
        },
        (
            {"name": "other", "description": "d", "connection_limit": 20, "allowed_cidrs": ["10.0.0.0/8"], **OFF},
            {"allowed_cidrs": None, "connection_limit": None},
        ),
    ),
    "pool": lambda: Life(
        "OS::Octavia::Pool",
        {
            "loadbalancer": "web",
            "protocol": "HTTP",
            "lb_algorithm": "ROUND_ROBIN",
            "session_persistence": {"type": "APP_COOKIE", "cookie_name": "c"},
        },
        (
            {"name": "other", "description": "d", "lb_algorithm": "SOURCE_IP", "tls_enabled": True, **OFF},
            {"session_persistence": {"type": "SOURCE_IP"}},
            {"session_persistence": None},
        ),
    ),
    "pool_member": lambda: Life(
        "OS::Octavia::PoolMember",
        {
            "pool": "servers",
            "address": "10.30.0.10",
            "protocol_port": 80,
            "subnet": "sub",
            "monitor_address": "10.30.0.11",
            "monitor_port": 81,
            "tags": ["a", "b"],
        },
        ({"weight": 0, "tags": ["b", "c"], **OFF}, {"weight": 7, "tags": None}),
        f"{NEVER}/{NEVER}",
    ),
    "health_monitor": lambda: Life(
        "OS::Octavia::HealthMonitor",
        {
            "pool": "servers",
            "type": "HTTP",
            "delay": 5,
            "timeout": 4,
            "max_retries": 3,
            "url_path": "/x",
            "http_method": "HEAD",
            "expected_codes": "200-204",
        },
        ({"delay": 6, "timeout": 3, "max_retries": 2, "url_path": "/y", "http_method": "GET", **OFF},),
    ),
    "l7_policy": lambda: Life(
        "OS::Octavia::L7Policy",
        {"listener": "http", "action": "REDIRECT_TO_URL", "redirect_url": "http://a.example/", "position": 1},
        (
            {"name": "other", "description": "d", "redirect_url": "http://b.example/", "position": 2, **OFF},
            {"action": "REDIRECT_TO_POOL", "redirect_pool": "servers", "redirect_url": None},
            {"action": "REJECT", "redirect_pool": None},
        ),
    ),
    "l7_rule": lambda: Life(
        "OS::Octavia::L7Rule",
        {"l7policy": "no", "type": "HEADER", "key": "X-A", "value": "b", "compare_type": "EQUAL_TO"},
        ({"value": "c", "invert": True, "compare_type": "CONTAINS", **OFF}, {"type": "PATH", "key": None}),
        f"{NEVER}/{NEVER}",
    ),
}
PATHS = {
    "load_balancer": "/loadbalancers$",
    "listener": "/listeners$",
    "pool": "/pools$",
    "pool_member": "/members$",
    "health_monitor": "/healthmonitors$",
    "l7_policy": "/l7policies$",
    "l7_rule": "/rules$",
}


@pytest.mark.parametrize("kind", LIVES)
def test_it_lives_and_dies(kind: str, cloud: OpenStackCloud, pool: str, policy: str) -> None:
    life = LIVES[kind]()
    check_never(cloud, kind, life.handle)
    check_life(cloud, life)


@pytest.mark.parametrize("kind", LIVES)
def test_a_lost_answer_has_made_one(kind: str, cloud: OpenStackCloud, project: Project, pool: str, policy: str) -> None:
    check_lost(cloud, project, LIVES[kind](), "octavia-api", PATHS[kind])


def test_of_several_changes_of_a_load_balancer_only_those_that_can_succeed_are_sent(
    cloud: OpenStackCloud, listener: str, sent: list[tuple[str, str]]
) -> None:
    common = {"loadbalancer": "web", "protocol": "TCP"}
    wanted = {f"listener-{port}": {**common, "protocol_port": port} for port in (9001, 9002, 9003)}
    made: dict[str, Answer] = {}

    def all_made() -> bool:
        left = [Creation(token, spec) for token, spec in wanted.items() if token not in made]
        answers = cloud.create("listener", left)
        made.update({it.token: each for it, each in zip(left, answers, strict=True) if not isinstance(each, Transient)})
        return len(made) == len(wanted)

    until(all_made, "the listeners", rest=lives.rest)
    assert sent == [("POST", "/lbaas/listeners")] * 3
    handles = [each.handle for each in made.values() if isinstance(each, Observation)]
    assert len(handles) == 3
    again = Creation("other", {**common, "protocol_port": 9001})

    def refused() -> Answer | None:
        answer = cloud.create("listener", [again])[0]
        return None if isinstance(answer, Transient) else answer

    assert "already using" in str(until(refused, "the refusal", rest=lives.rest))
    for handle in handles:
        remove(cloud, "listener", handle)


def test_members_of_a_pool_are_made_by_one_request(
    cloud: OpenStackCloud, pool: str, sent: list[tuple[str, str]]
) -> None:
    specs = [{"pool": pool, "address": f"10.30.0.{number}", "protocol_port": 80} for number in (20, 21, 22, 20)]
    batch = [Creation(f"member-{number}", spec) for number, spec in enumerate(specs)]
    made: dict[str, Answer] = {}

    def all_made() -> bool:
        left = [each for each in batch if each.token not in made]
        answers = cloud.create("pool_member", left)
        made.update({it.token: each for it, each in zip(left, answers, strict=True) if not isinstance(each, Transient)})
        return len(made) == len(batch)

    until(all_made, "the members", rest=lives.rest)
    assert sent == [("PUT", f"/lbaas/pools/{pool}/members"), ("POST", f"/lbaas/pools/{pool}/members")]
    *members, twice = (made[each.token] for each in batch)
    assert isinstance(twice, Terminal)
    assert "already using" in str(twice)
    handles = [each.handle for each in members if isinstance(each, Observation)]
    assert [each.handle for each in cloud.find("pool_member", [each.token for each in batch[:3]])] == handles
    assert [each.properties["address"] for each in cloud.observe("pool_member", handles)] == [
        "10.30.0.20",
        "10.30.0.21",
        "10.30.0.22",
    ]
    alone = handles[0].rpartition("/")[2]
    assert cloud.observe("pool_member", [alone])[0].handle == handles[0], "others know members by their id alone"
    for handle in handles:
        remove(cloud, "pool_member", handle)


def test_a_refused_member_does_not_spoil_the_others(cloud: OpenStackCloud, pool: str) -> None:
    specs = [{"pool": pool, "address": address, "protocol_port": 80} for address in ("10.30.0.30", "169.254.169.254")]
    batch = [Creation(f"spoilt-{number}", spec) for number, spec in enumerate(specs)]
    made: dict[str, Answer] = {}

    def all_made() -> bool:
        left = [each for each in batch if each.token not in made]
        answers = cloud.create("pool_member", left)
        made.update({it.token: each for it, each in zip(left, answers, strict=True) if not isinstance(each, Transient)})
        return len(made) == len(batch)

    until(all_made, "both answers", rest=lives.rest)
    good, bad = (made[each.token] for each in batch)
    assert isinstance(good, Observation)
    assert isinstance(bad, Terminal)
    remove(cloud, "pool_member", good.handle)


def test_the_health_of_a_member_is_no_status_of_its_own(cloud: OpenStackCloud, project: Project, pool: str) -> None:
    member = make(cloud, "OS::Octavia::PoolMember", {"pool": pool, "address": "10.30.0.40", "protocol_port": 80})
    monitor = make(
        cloud, "OS::Octavia::HealthMonitor", {"pool": pool, "type": "TCP", "delay": 1, "timeout": 1, "max_retries": 1}
    )

    def health() -> Any:
        return cloud.observe("pool_member", [member])[0].properties["operating_status"]

    until(lambda: health() == "online", "a healthy member", rest=lives.rest)
    project.cloud.member("down", member.rpartition("/")[2])
    until(lambda: health() == "error", "an unhealthy member", rest=lives.rest)
    assert cloud.observe("pool_member", [member])[0].properties["status"] == "active"
    project.cloud.member("up", member.rpartition("/")[2])
    remove(cloud, "health_monitor", monitor)
    remove(cloud, "pool_member", member)


def test_what_went_to_error_says_so_and_an_update_brings_it_back(
    cloud: OpenStackCloud, project: Project, subnet: str
) -> None:
    name = f"broken-{project.name}"
    balancer = make(cloud, "OS::Octavia::LoadBalancer", {"name": name, "vip_subnet": subnet})
    life = Life("OS::Octavia::Listener", {"loadbalancer": balancer, "protocol": "TCP", "protocol_port": 80})
    with project.cloud.fault("lb", op="update", name=f"^{name}$", error="oops"):
        made = accepted(lambda: cloud.create("listener", [Creation(f"{name}-listener", life.spec("listener"))]))

        def broken() -> Observation | None:
            seen = cloud.observe("listener", [made.handle])[0]
            return seen if seen.properties.get("status") == "error" else None

        seen = until(broken, "the listener to go to ERROR", rest=lives.rest)
    assert seen.properties["fault"]
    spec = life.spec("listener")
    accepted(lambda: cloud.update("listener", [Change(made.handle, spec, tuple(spec))]))
    ready(cloud, "listener", made.handle)
    remove(cloud, "listener", made.handle)
    remove(cloud, "load_balancer", balancer)


def test_a_load_balancer_with_parts_is_not_deleted_yet(cloud: OpenStackCloud, balancer: str, listener: str) -> None:
    answer = cloud.delete("load_balancer", [balancer])[0]
    assert isinstance(answer, Transient)
