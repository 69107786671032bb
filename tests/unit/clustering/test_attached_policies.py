"""What attached policies put into the stack of a cluster, and where they place nodes."""

from typing import Any

import pytest

from homeostat.clustering.decisions import affinity, arrangement, load_balancing, placement
from homeostat.clustering.decisions.attached import Attached
from homeostat.clustering.decisions.choices import NodeFacts, Place
from homeostat.clustering.decisions.load_balancing import DRAIN_S, NUMBERS_END
from homeostat.clustering.decisions.placement import Rules
from homeostat.clustering.decisions.policies import attach_problem, check_policy
from homeostat.clustering.decisions.sizes import last_operation
from homeostat.model.errors import Rejected
from homeostat.resources.registry import resource_type

POOL: dict[str, Any] = {"subnet": "back"}
VIP: dict[str, Any] = {"subnet": "front"}
BALANCED: dict[str, Any] = {"pool": POOL, "vip": VIP}
TAKEN: dict[str, Any] = {"pool": {**POOL, "id": "p"}, "loadbalancer": "b"}


def attached(kind: str, state: Any = None, *, enabled: bool = True, **properties: Any) -> Attached:
    version = {"loadbalance": "1.3", "deletion": "1.1"}.get(kind, "1.0")
    spec = {"type": f"senlin.policy.{kind}", "version": version, "properties": properties}
    return Attached("01234567-89ab", check_policy(spec), enabled, state or {})


def kinds(policy: Attached) -> dict[str, str]:
    """Name without the policy -> type, or `taken`."""
    found = load_balancing.policy_resources(policy).resources
    return {
        name.removesuffix("-01234567"): "taken" if "external_id" in each else each["type"].rpartition("::")[2]
        for name, each in found.items()
    }


MADE = {"loadbalancer": "LoadBalancer", "listener": "Listener", "pool": "Pool"}
WHAT_IS_MADE: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("all", BALANCED, MADE),
    ("with a monitor", {**BALANCED, "health_monitor": {}}, {**MADE, "healthmonitor": "HealthMonitor"}),
    ("on a network", {**BALANCED, "vip": {"network": "n"}}, MADE),
    ("a balancer is given", {"pool": POOL, "loadbalancer": "b"}, {**MADE, "loadbalancer": "taken"}),
    ("a pool is given", TAKEN, {"loadbalancer": "taken", "pool": "taken"}),
    (
        "a monitor is given",
        {**TAKEN, "health_monitor": {"id": "m"}},
        {"loadbalancer": "taken", "pool": "taken", "healthmonitor": "taken"},
    ),
    (
        "a monitor for a pool that is given",
        {**TAKEN, "health_monitor": {"type": "TCP"}},
        {"loadbalancer": "taken", "pool": "taken", "healthmonitor": "HealthMonitor"},
    ),
]


@pytest.mark.parametrize(("case", "properties", "wanted"), WHAT_IS_MADE, ids=[each[0] for each in WHAT_IS_MADE])
def test_what_is_made_and_what_is_taken(case: str, properties: dict[str, Any], wanted: dict[str, str]) -> None:
    policy = attached("loadbalance", **properties)
    assert kinds(policy) == wanted
    for each in load_balancing.policy_resources(policy).resources.values():
        if "properties" in each:
            plain = {name: value if not isinstance(value, dict) else "x" for name, value in each["properties"].items()}
            resource_type(each["type"]).check(plain)


def test_who_has_a_place_in_the_pool() -> None:
    (on,) = load_balancing.policy_resources(attached("loadbalance", **BALANCED)).companions
    assert (on.numbers, on.member) == (((0, NUMBERS_END),), "server")
    assert on.resource_def["properties"]["pool"] == {"get_resource": "pool-01234567"}
    below = attached("loadbalance", {"below": 3}, enabled=False, **BALANCED)
    (off,) = load_balancing.policy_resources(below).companions
    assert off.numbers == ((0, 3),)
    assert load_balancing.policy_resources(attached("loadbalance", enabled=False, **BALANCED)).companions == ()


@pytest.mark.parametrize(
    ("session", "wanted"),
    [
        ({}, None),
        ({"type": "NONE"}, None),
        ({"type": "SOURCE_IP"}, {"type": "SOURCE_IP"}),
        ({"type": "APP_COOKIE", "cookie_name": "c"}, {"type": "APP_COOKIE", "cookie_name": "c"}),
    ],
)
def test_session_persistence(session: dict[str, str], wanted: Any) -> None:
    policy = attached("loadbalance", pool={**POOL, "session_persistence": session}, vip=VIP)
    pool = load_balancing.policy_resources(policy).resources["pool-01234567"]["properties"]
    assert pool.get("session_persistence") == wanted


def test_what_a_binding_shows_before_anything_is_there() -> None:
    shown = load_balancing.shown(attached("loadbalance", **BALANCED), {}, None)
    assert shown == dict.fromkeys(["loadbalancer", "listener", "pool", "healthmonitor", "vip_address"])


DRAINS: list[tuple[list[Attached], bool, int, str]] = [
    ([], True, 0, "no policy"),
    ([attached("deletion", grace_period=30)], True, 30, "who leaves stays for the grace period"),
    ([attached("deletion", grace_period=30)], False, 0, "no one leaves"),
    ([attached("deletion", enabled=False, grace_period=30)], True, 0, "switched off"),
    ([attached("loadbalance", **BALANCED)], False, DRAIN_S, "who is replaced is drained"),
    ([attached("loadbalance", **BALANCED), attached("deletion", grace_period=30)], False, 30, "for so long"),
    ([attached("loadbalance", enabled=False, **BALANCED)], False, 0, "no one is in the pool"),
    ([attached("deletion", grace_period=99_999)], True, 3600, "as long as groups can wait"),
]


@pytest.mark.parametrize(("policies", "leaving", "wanted", "reason"), DRAINS, ids=[each[3] for each in DRAINS])
def test_how_long_nodes_stay(policies: list[Attached], leaving: bool, wanted: int, reason: str) -> None:
    assert arrangement.policy_resources(policies, leaving=leaving).drain_s == wanted, reason


def test_a_server_group_is_made_or_taken() -> None:
    made = affinity.policy_resources(attached("affinity", servergroup={"policies": "affinity"}))
    (group,) = made.resources.values()
    assert group == {"type": "OS::Nova::ServerGroup", "properties": {"policies": ["affinity"]}}
    taken = affinity.policy_resources(attached("affinity", {"group": "g", "name": "mine"}))
    assert taken.resources == {"servergroup-01234567": {"type": "OS::Nova::ServerGroup", "external_id": "g"}}
    assert taken.server_group == {"get_resource": "servergroup-01234567"}


def test_the_name_of_a_server_group_may_be_in_the_hints_of_the_profile() -> None:
    plain, named = ({"servergroup": {"name": name, "policies": "affinity"}} for name in (None, "mine"))
    assert [affinity.group_name(each, {"group": "theirs"}) for each in (plain, named)] == ["theirs", "mine"]
    assert affinity.group_name(plain) == ""
    assert affinity.group_problem(plain, ["affinity"]) == ""
    assert "doesn't match" in affinity.group_problem(plain, ["anti-affinity"])


# -- places ----------------------------------------------------------------------------------------------------------


def node(index: int, zone: str = "", region: str = "", **more: Any) -> NodeFacts:
    return NodeFacts(f"n{index}", "", index, created_at=float(index), zone=zone, region=region, **more)


TWO = (Place("az1"), Place("az2"))
PLACED: list[tuple[str, Rules, list[NodeFacts], int, list[dict[str, str]]]] = [
    ("nothing is said", Rules(), [], 2, [{}, {}]),
    ("one zone", Rules(zone="z"), [], 1, [{"zone": "z"}]),
    ("zones", Rules(zones=TWO, zone="z"), [node(1, "az1")], 1, [{"zone": "az2"}]),
    ("a group", Rules(grouped=True), [], 1, [{"servergroup": ""}]),
    ("a region", Rules((Place("east"),), zones=TWO, grouped=True), [], 1, [{"region": "east"}]),
    (
        "the own region by its name",
        Rules((Place("own"), Place("east")), ("own",), TWO),
        [node(1, region="east")],
        1,
        [{"region": "default", "zone": "az1"}],
    ),
    (
        "nodes of other regions fill no zone here",
        Rules((Place("own"),), ("own",), TWO),
        [node(1, "az1", "east"), node(2, "az2")],
        1,
        [{"region": "default", "zone": "az1"}],
    ),
]


@pytest.mark.parametrize(("case", "rules", "there", "count", "wanted"), PLACED, ids=[each[0] for each in PLACED])
def test_where_new_nodes_go(
    case: str, rules: Rules, there: list[NodeFacts], count: int, wanted: list[dict[str, str]]
) -> None:
    assert placement.placements(there, rules, count) == wanted


def test_caps_of_regions_leave_no_room() -> None:
    with pytest.raises(Rejected, match="no feasible plan"):
        placement.placements([], Rules((Place("east", cap=1),)), 2)


def gone(nodes: list[NodeFacts], rules: Rules, count: int) -> list[int]:
    return sorted(each.index for each in placement.leaving(nodes, rules, count, "OLDEST_FIRST", "seed"))


def test_who_leaves() -> None:
    nodes = [node(1, "az1"), node(2, "az2"), node(3, "az1"), node(4, region="east"), node(5, region="east")]
    assert gone(nodes, Rules(), 2) == [1, 2]
    assert gone(nodes[:3], Rules(zones=TWO), 1) == [1]
    by_region = Rules((Place("own", 150), Place("east")), ("own",), TWO)
    assert gone(nodes, by_region, 1) == [4], "the region that is too full"
    assert gone(nodes, by_region, 2) == [1, 4], "then the zone"
    assert gone(nodes, Rules((Place("own"),), ("own",)), 2) == [4, 5], "a region that is no choice any more goes first"


def test_policies_of_a_cluster_as_rules_for_places() -> None:
    zones = attached("zone_placement", zones=[{"name": "az1", "weight": 2}])
    regions = attached("region_placement", {"home": ["own"]}, regions=[{"name": "own"}, {"name": "east", "cap": 3}])
    found = placement.rules([zones, regions, attached("affinity", availability_zone="z")])
    assert found == Rules((Place("own"), Place("east", cap=3)), ("own",), (Place("az1", 2),), "z", True)
    assert placement.rules([attached("affinity", enabled=False)]) == Rules()


# -- what goes together ----------------------------------------------------------------------------------------------

NOVA = "os.nova.server-1.0"
REGIONS: dict[str, Any] = {"regions": [{"name": "r"}]}
TOGETHER: list[tuple[Attached, str, list[str], str, str]] = [
    (attached("loadbalance", **BALANCED), NOVA, [], "", ""),
    (attached("loadbalance", **BALANCED), NOVA, [], "east", "the nodes are in the region east"),
    (attached("loadbalance", **BALANCED), "os.heat.stack-1.0", [], "", "not applicable on profile type"),
    (attached("loadbalance", **BALANCED), NOVA, ["senlin.policy.loadbalance-1.0"], "", "Only one instance"),
    (attached("loadbalance", **BALANCED), NOVA, ["senlin.policy.region_placement-1.0"], "", "to one cluster"),
    (attached("region_placement", **REGIONS), NOVA, ["senlin.policy.loadbalance-1.1"], "", "to one cluster"),
    (attached("region_placement", **REGIONS), "os.heat.stack-1.0", [], "", ""),
    (attached("deletion", grace_period=3600), NOVA, [], "", ""),
    (attached("deletion", grace_period=3601), NOVA, [], "", "at most 3600 seconds"),
    (attached("scaling", event="CLUSTER_SCALE_IN"), NOVA, ["senlin.policy.scaling-1.0"], "", ""),
]


@pytest.mark.parametrize(("policy", "profile", "there", "region", "wanted"), TOGETHER)
def test_what_can_be_attached(policy: Attached, profile: str, there: list[str], region: str, wanted: str) -> None:
    found = attach_problem(policy.spec, profile, there, region)
    assert (wanted in found) if wanted else found == "", found


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"pool": {**POOL, "id": "p"}, "vip": VIP}, "name that one, too"),
        ({**BALANCED, "health_monitor": {"id": "m"}}, "name that one, too"),
        ({"pool": POOL}, "VIP Subnet or Network"),
    ],
)
def test_what_is_given_must_be_complete(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(Rejected, match=message):
        attached("loadbalance", **properties)


@pytest.mark.parametrize(("noted", "ended", "wanted"), [(None, 5.0, None), (3.0, None, 3.0), (3.0, 9.0, 9.0)])
def test_a_cooldown_begins_with_the_end_of_the_action(
    noted: float | None, ended: float | None, wanted: float | None
) -> None:
    assert last_operation(noted, ended) == wanted
