"""Policies other than the health policy: what is accepted, what is refused, and how they act."""

from typing import Any

import pytest

from homeostat.clustering.decisions.policies import (
    POLICY_TYPES,
    attach_problem,
    binding_data,
    check_policy,
    policy_kind,
)
from homeostat.model.errors import Rejected

SERVER, STACK = "os.nova.server-1.0", "os.heat.stack-1.0"
VIP = {"subnet": "s"}


def spec(name: str, version: str = "1.0", **properties: Any) -> dict[str, Any]:
    return {"type": f"senlin.policy.{name}", "version": version, "properties": properties}


@pytest.mark.parametrize(
    ("sent", "properties"),
    [
        (
            spec("scaling", event="CLUSTER_SCALE_IN"),
            {
                "event": "CLUSTER_SCALE_IN",
                "adjustment": {
                    "type": "CHANGE_IN_CAPACITY",
                    "number": 1,
                    "min_step": 1,
                    "best_effort": False,
                    "cooldown": 0,
                },
            },
        ),
        (
            spec("deletion", "1.1", hooks={"params": {"queue": "q"}, "timeout": 30}),
            {
                "criteria": "RANDOM",
                "destroy_after_deletion": True,
                "grace_period": 0,
                "reduce_desired_capacity": True,
                "hooks": {"type": "zaqar", "params": {"queue": "q", "url": ""}, "timeout": 30},
            },
        ),
        (
            spec("zone_placement", zones=[{"name": "a"}, {"name": "b", "weight": 50}]),
            {"zones": [{"name": "a", "weight": 100}, {"name": "b", "weight": 50}]},
        ),
        (
            spec("region_placement", regions=[{"name": "a", "cap": 3}]),
            {"regions": [{"name": "a", "weight": 100, "cap": 3}]},
        ),
        (
            spec("affinity"),
            {
                "servergroup": {"name": None, "policies": "anti-affinity"},
                "availability_zone": None,
                "enable_drs_extension": False,
            },
        ),
        (spec("batch", pause_time="5"), {"min_in_service": 1, "max_batch_size": -1, "pause_time": 5}),
        (
            spec("loadbalance", "1.3", pool={"subnet": "s"}, vip={"network": "n"}),
            {
                "pool": {
                    "protocol": "HTTP",
                    "protocol_port": 80,
                    "subnet": "s",
                    "lb_method": "ROUND_ROBIN",
                    "admin_state_up": True,
                    "session_persistence": {"type": None, "cookie_name": None},
                    "id": None,
                },
                "vip": {
                    "subnet": None,
                    "network": "n",
                    "address": None,
                    "connection_limit": -1,
                    "protocol": "HTTP",
                    "protocol_port": 80,
                    "admin_state_up": True,
                },
                "health_monitor": None,
                "lb_status_timeout": 300,
                "loadbalancer": None,
                "availability_zone": None,
                "flavor_id": None,
            },
        ),
    ],
)
def test_a_policy_gets_its_defaults_and_is_kept_as_sent(sent: dict[str, Any], properties: dict[str, Any]) -> None:
    checked = check_policy({**sent, "description": "mine"})
    assert checked.properties == properties
    assert (checked.sent, checked.description) == ({**sent, "description": "mine"}, "mine")


@pytest.mark.parametrize(
    "sent",
    [
        spec("deletion", hooks={"type": "webhook", "params": {"url": "https://x/y"}}),
        spec("deletion", hooks={}),
        spec("scaling", event="CLUSTER_SCALE_IN", adjustment={"number": 2**31 - 1, "cooldown": 2**31 - 1}),
        spec("loadbalance", pool={"subnet": "s", "id": "p"}, loadbalancer="lb"),
        spec("loadbalance", pool={"subnet": "s"}, vip=VIP, health_monitor={"type": "HTTP", "url_path": "/"}),
        spec(
            "loadbalance",
            pool={"subnet": "s", "session_persistence": {"type": "APP_COOKIE", "cookie_name": "c"}},
            vip=VIP,
        ),
        spec("affinity", servergroup={"name": "g", "policies": "soft-affinity"}, availability_zone="z"),
    ],
)
def test_these_are_accepted(sent: dict[str, Any]) -> None:
    assert check_policy(sent).sent == sent


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (spec("nothing"), "404 ResourceNotFound: The policy_type 'senlin.policy.nothing-1.0' could not be found."),
        (spec("scaling"), "400 ESchema: Required spec item 'event' not provided (at properties)"),
        (
            spec("scaling", event="X"),
            "400 ESchema: 'X' must be one of the allowed values: CLUSTER_SCALE_IN, CLUSTER_SC",
        ),
        (
            spec("scaling", event="CLUSTER_SCALE_IN", adjustment={"number": 0}),
            "400 InvalidSpec: the 'number' for 'adjustment' must be > 0",
        ),
        (
            spec("scaling", event="CLUSTER_SCALE_IN", adjustment={"min_step": -1}),
            "400 InvalidSpec: the 'min_step' for 'adjustment' must be >= 0",
        ),
        (
            spec("scaling", event="CLUSTER_SCALE_IN", adjustment={"cooldown": -1}),
            "400 InvalidSpec: the 'cooldown' for 'adjustment' must be >= 0",
        ),
        (
            spec("scaling", event="CLUSTER_SCALE_IN", adjustment={"cooldown": 10**12}),
            "400 InvalidSpec: the 'cooldown' for 'adjustment' must be <= 2147483647",
        ),
        (
            spec("deletion", criteria="FATTEST"),
            "400 ESchema: 'FATTEST' must be one of the allowed values: OLDEST_FIRST",
        ),
        (spec("deletion", grace_period=-1), "400 ESchema: -1 is out of range"),
        (
            spec("deletion", hooks={"timeout": 5}),
            "400 InvalidSpec: A hook needs a queue (type zaqar) or a url (type web",
        ),
        (
            spec("deletion", hooks={"type": "webhook"}),
            "400 InvalidSpec: A hook needs a queue (type zaqar) or a url (typ",
        ),
        (
            spec("deletion", hooks={"params": {"url": "http://x"}}),
            "400 InvalidSpec: A hook of type zaqar needs a queue (at properties.hooks.params)",
        ),
        (
            spec("deletion", hooks={"type": "webhook", "params": {"url": "x"}}),
            "400 InvalidSpec: 'x' is not a URL that can be asked: its scheme must be http or https (at prop",
        ),
        (spec("zone_placement"), "400 ESchema: Required spec item 'zones' not provided (at properties)"),
        (spec("zone_placement", zones=[]), "400 InvalidSpec: At least one entry with a weight above 0 is needed (at "),
        (
            spec("zone_placement", zones=[{"name": "a", "weight": 0}]),
            "400 InvalidSpec: At least one entry with a weight above 0 is needed (at properties.zones)",
        ),
        (
            spec("region_placement", regions=[{"name": "a"}, {"name": "a"}]),
            "400 InvalidSpec: a is there twice; give it one weight (at properties.regions)",
        ),
        (spec("region_placement", regions=[{"name": "a", "cap": -2}]), "400 ESchema: -2 is out of range"),
        (spec("region_placement", regions=[{"weight": 1}]), "400 ESchema: Required spec item 'name' not provided"),
        (spec("affinity", enable_drs_extension=True), "400 InvalidSpec: not supported: it needs vSphere's scheduler"),
        (
            spec("affinity", servergroup={"policies": ["affinity"]}),
            "400 ESchema: The value '['affinity']' is not a val",
        ),
        (spec("batch", min_in_service=-1), "400 ESchema: -1 is out of range"),
        (spec("loadbalance"), "400 ESchema: Required spec item 'pool' not provided (at properties)"),
        (spec("loadbalance", pool={}), "400 ESchema: Required spec item 'subnet' not provided (at properties.pool)"),
        (
            spec("loadbalance", pool={"subnet": "s"}),
            "400 InvalidSpec: At least one of VIP Subnet or Network must be defined.",
        ),
        (
            spec("loadbalance", pool={"subnet": "s"}, vip={"address": "10.0.0.1"}),
            "400 InvalidSpec: At least one of VIP Subnet or Network must be defined.",
        ),
        (
            spec("loadbalance", pool={"subnet": "s", "protocol_port": 0}, vip=VIP),
            "400 ESchema: 0 is out of range (min: 1, max: 65535) (at properties.pool.protocol_port)",
        ),
        (
            spec("loadbalance", pool={"subnet": "s", "session_persistence": {"type": "APP_COOKIE"}}, vip=VIP),
            "400 InvalidSpec: cookie_name goes with the type APP_COOKIE, and is needed for it (at ",
        ),
        (
            spec("loadbalance", pool={"subnet": "s", "session_persistence": {"cookie_name": "c"}}, vip=VIP),
            "400 InvalidSpec: cookie_name goes with the type APP_COOKIE, and is needed for it (at ",
        ),
        (
            spec("loadbalance", pool={"subnet": "s"}, vip=VIP, health_monitor={"url_path": "/"}),
            "400 InvalidSpec: url_path is for the types HTTP and HTTPS only (at properties.health_monitor.url_path)",
        ),
        (spec("loadbalance", "1.4", pool={}), "404 ResourceNotFound: The policy_type 'senlin.policy.loadbalance-1.4'"),
    ],
)
def test_these_are_refused_as_errors_of_the_caller(sent: dict[str, Any], message: str) -> None:
    with pytest.raises(Rejected) as found:
        check_policy(sent)
    assert f"{found.value.code} {found.value.fault}: {found.value}".startswith(message)


NAMES = [
    "senlin.policy.affinity-1.0",
    "senlin.policy.batch-1.0",
    "senlin.policy.deletion-1.0",
    "senlin.policy.deletion-1.1",
    "senlin.policy.health-1.0",
    "senlin.policy.health-1.1",
    "senlin.policy.health-1.2",
    "senlin.policy.loadbalance-1.0",
    "senlin.policy.loadbalance-1.1",
    "senlin.policy.loadbalance-1.2",
    "senlin.policy.loadbalance-1.3",
    "senlin.policy.region_placement-1.0",
    "senlin.policy.scaling-1.0",
    "senlin.policy.zone_placement-1.0",
]


def test_all_types_of_senlin_are_there() -> None:
    assert [each["name"] for each in POLICY_TYPES.listed((1, 0))] == NAMES
    for entry in POLICY_TYPES.listed((1, 5)):
        assert entry["support_status"].keys() == {entry["version"]}
        shown = POLICY_TYPES.shown(f"{entry['name']}-{entry['version']}", (1, 5))
        assert shown["support_status"][entry["version"]] == entry["support_status"][entry["version"]]


@pytest.mark.shows("HP1", "HS1")
def test_the_history_of_the_health_policy() -> None:
    assert POLICY_TYPES.shown("senlin.policy.health-1.0", (1, 5))["support_status"] == {
        "1.0": [{"status": "EXPERIMENTAL", "since": "2017.02"}, {"status": "SUPPORTED", "since": "2018.06"}],
        "1.1": [{"status": "SUPPORTED", "since": "2018.09"}],
        "1.2": [{"status": "SUPPORTED", "since": "2020.09"}],
    }


def test_policies_act_in_the_order_of_their_priorities() -> None:
    priorities = {name: policy_kind(name).priority for name in NAMES}
    assert sorted(priorities.values()) == [100, 200, 200, 300, 300, 400, 400, 500, 500, 500, 500, 600, 600, 600]
    assert (priorities["senlin.policy.scaling-1.0"], priorities["senlin.policy.health-1.0"]) == (100, 600)


@pytest.mark.shows("HP10", "HS3")
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("scaling-1.0", {"CLUSTER_SCALE_IN", "CLUSTER_SCALE_OUT"}, {"CLUSTER_SCALE_IN", "CLUSTER_SCALE_OUT"}),
        ("batch-1.0", {"CLUSTER_UPDATE"}, set()),
        (
            "loadbalance-1.1",
            {"CLUSTER_DEL_NODES", "CLUSTER_SCALE_IN", "CLUSTER_RESIZE", "CLUSTER_REPLACE_NODES", "NODE_DELETE"},
            {
                "CLUSTER_ADD_NODES",
                "CLUSTER_SCALE_OUT",
                "CLUSTER_RESIZE",
                "CLUSTER_REPLACE_NODES",
                "NODE_CREATE",
                "NODE_RECOVER",
            },
        ),
    ],
)
def test_on_which_actions_a_policy_acts(name: str, before: set[str], after: set[str]) -> None:
    kind = policy_kind(f"senlin.policy.{name}")
    assert (set(kind.before), set(kind.after)) == (before, after)


SCALING = spec("scaling", event="CLUSTER_SCALE_IN")
ZONES = spec("zone_placement", zones=[{"name": "a"}])


@pytest.mark.parametrize(
    ("sent", "profile", "attached", "problem"),
    [
        (SCALING, SERVER, ["senlin.policy.scaling-1.0"], ""),
        (SCALING, STACK, [], ""),
        (ZONES, SERVER, ["senlin.policy.affinity-1.0"], ""),
        (ZONES, STACK, [], "Policy not applicable on profile type: os.heat.stack-1.0"),
        (spec("affinity"), STACK, [], "Policy not applicable on profile type: os.heat.stack-1.0"),
        (spec("batch"), STACK, [], ""),
        (
            spec("deletion", "1.1"),
            SERVER,
            ["senlin.policy.deletion-1.0"],
            "Only one instance of policy type (senlin.policy.deletion) can be attached to a cluster, but another "
            "instance (senlin.policy.deletion-1.0) is found attached to the cluster already.",
        ),
    ],
)
def test_which_clusters_a_policy_fits(sent: Any, profile: str, attached: list[str], problem: str) -> None:
    assert attach_problem(check_policy(sent), profile, attached) == problem


@pytest.mark.parametrize(
    ("sent", "made", "data"),
    [
        (SCALING, None, None),
        (
            spec("affinity"),
            {"servergroup_id": "g", "inherited_group": False},
            {"AffinityPolicy": {"version": "1.0", "data": {"servergroup_id": "g", "inherited_group": False}}},
        ),
        (
            spec("loadbalance", "1.0", pool={"subnet": "s"}, vip=VIP),
            {"loadbalancer": "lb"},
            {"LoadBalancingPolicy": {"version": "1.3", "data": {"loadbalancer": "lb"}}},
        ),
    ],
)
def test_what_a_binding_shows(sent: Any, made: Any, data: Any) -> None:
    assert binding_data(check_policy(sent), made) == data
