"""The health policy: what is accepted, what is refused, and how the engine reads it."""

from typing import Any

import pytest

from homeostat.clustering.health_policy import health_policy, recover_data
from homeostat.clustering.policies import Intervals, attach_problem, binding_data, check_policy
from homeostat.model.errors import Rejected
from homeostat.model.health_policy import (
    ActionType,
    DetectionType,
    Fence,
    HealthPolicy,
    Mode,
    Preserved,
    RecoveryAction,
)

STATUS = {"type": "NODE_STATUS_POLLING"}
EVENTS = {"type": "LIFECYCLE_EVENTS"}
HYPERVISOR = {"type": "HYPERVISOR_STATUS_POLLING"}
BALANCER = {"type": "LB_STATUS_POLLING"}
SERVER, STACK = "os.nova.server-1.0", "os.heat.stack-1.0"


def url(address: str = "http://{nodename}:8080/health", /, **options: Any) -> dict[str, Any]:
    return {"type": "NODE_STATUS_POLL_URL", "options": {"poll_url": address, **options}}


def spec(
    modes: Any = (STATUS,), actions: Any = ({"name": "RECREATE"},), version: str = "1.2", **more: Any
) -> dict[str, Any]:
    detection = {"detection_modes": list(modes), **more.pop("detection", {})}
    recovery = {"actions": list(actions), **more}
    return {
        "type": "senlin.policy.health",
        "version": version,
        "properties": {"detection": detection, "recovery": recovery},
    }


def read(sent: dict[str, Any]) -> HealthPolicy:
    return health_policy(check_policy(sent))


def refused(sent: Any, intervals: Intervals | None = None) -> str:
    with pytest.raises(Rejected) as found:
        check_policy(sent, intervals)
    return f"{found.value.code} {found.value.fault}: {found.value}"


@pytest.mark.parametrize(
    "sent",
    [
        spec(),
        spec(version="1.0"),
        spec(version="1.1"),
        spec(modes=[]),
        spec(actions=[]),
        spec(fencing=["COMPUTE"]),
        spec([url("http://a/"), url("http://b/")]),
        spec([EVENTS]),
        spec([EVENTS, STATUS]),
        spec([BALANCER, HYPERVISOR, STATUS, EVENTS, url()]),
        spec(actions=[{"name": "REBOOT"}, {"name": "REBUILD"}, {"name": "RECREATE"}]),
        spec([url("http://{nodeip}/")]),
        spec([url("http://[fd00::1]:80/")]),
        spec([url("https://{{ node.ip }}:8443/{clustername}?id={nodeid}")]),
    ],
)
def test_these_are_accepted_and_kept_as_sent(sent: dict[str, Any]) -> None:
    checked = check_policy(sent)
    assert checked.sent == sent
    assert health_policy(checked).actions


@pytest.mark.shows("HS29")
def test_defaults_are_those_of_the_reference() -> None:
    policy = read(spec(actions=[]))
    assert (policy.interval_s, policy.grace_s, policy.quorum) == (60, 300, 1)
    assert (policy.delete_timeout_s, policy.force_recreate, policy.mode) == (20, False, Mode.AUTOMATIC)
    assert policy.actions == (RecoveryAction(ActionType.BUILT_IN, "RECREATE", {"fence_compute": False}),)
    assert (policy.fencing, policy.preserve, policy.max_unhealthy) == ((), frozenset(), "")
    without = spec()
    del without["properties"]["recovery"]["actions"]
    assert read(without) == policy


def test_a_url_without_options_of_its_own_has_the_defaults() -> None:
    (detection,) = read(spec([url()])).detections
    assert (detection.attempts, detection.pause_s, detection.verify_tls) == (3, 3, True)
    assert (detection.no_answer_is_unhealthy, detection.response) == (True, "")


@pytest.mark.shows("HS9")
def test_options_of_a_url() -> None:
    options = {
        "poll_url_ssl_verify": False,
        "poll_url_conn_error_as_unhealthy": "false",
        "poll_url_healthy_response": "pass(ed)?",
        "poll_url_retry_limit": 0,
        "poll_url_retry_interval": "0",
    }
    (detection,) = read(spec([url(**options)])).detections
    assert (detection.attempts, detection.pause_s, detection.verify_tls) == (1, 0, False)
    assert (detection.no_answer_is_unhealthy, detection.response) == (False, "pass(ed)?")


@pytest.mark.parametrize(
    ("modes", "detection", "unhealthy_from"),
    [
        ([STATUS, HYPERVISOR, url()], {}, 1),
        ([STATUS, HYPERVISOR, url()], {"recovery_conditional": "ANY_FAILED"}, 1),
        ([STATUS, HYPERVISOR, url()], {"recovery_conditional": "ALL_FAILED"}, 3),
        ([STATUS, HYPERVISOR, url(), EVENTS], {"recovery_conditional": "ALL_FAILED"}, 3),
        ([STATUS, HYPERVISOR, url(), EVENTS], {"quorum": 2}, 2),
        ([STATUS], {"recovery_conditional": "ALL_FAILED"}, 1),
        ([STATUS, HYPERVISOR], {"quorum": 2}, 2),
    ],
)
def test_so_many_modes_must_fail(modes: Any, detection: dict[str, Any], unhealthy_from: int) -> None:
    policy = read(spec(modes, detection=detection))
    assert [failed for failed in range(4) if policy.is_unhealthy(failed)] == list(range(unhealthy_from, 4))


def test_events_alone_make_no_poll() -> None:
    policy = read(spec([EVENTS]))
    assert (policy.polled, policy.takes_events, policy.is_unhealthy(1)) == ((), True, False)
    mixed = read(spec([EVENTS, STATUS]))
    assert [each.type for each in mixed.polled] == [DetectionType.STATUS]
    assert mixed.takes_events


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([{"name": "REBOOT"}], [("REBOOT", {"type": "HARD"})]),
        ([{"name": "REBOOT", "params": {"type": "soft"}}], [("REBOOT", {"type": "SOFT"})]),
        ([{"name": "reboot", "params": None}], [("REBOOT", {"type": "HARD"})]),
        (
            [{"name": "REBUILD", "params": {"image": "new"}}, {"name": "RECREATE", "params": {"fence_compute": True}}],
            [("REBUILD", {"image": "new"}), ("RECREATE", {"fence_compute": True})],
        ),
        (
            [{"name": "wf", "type": "MISTRAL_WORKFLOW", "params": {"node_id": "{{ node.physicalid }}"}}],
            [("wf", {"node_id": "{{ node.physicalid }}"})],
        ),
        (
            [{"name": "page", "type": "WEBHOOK", "params": {"url": "http://x/{nodeid}", "method": "put"}}],
            [("page", {"url": "http://x/{nodeid}", "method": "PUT", "headers": {}, "body": {}})],
        ),
    ],
)
def test_actions_get_their_parameters(actions: Any, expected: list[tuple[str, dict[str, Any]]]) -> None:
    assert [(each.name, each.params) for each in read(spec(actions=actions)).actions] == expected


def test_fencing_preserving_and_the_mode() -> None:
    policy = read(spec(fencing=["storage", "COMPUTE"], preserve=["name", "Ports"], mode="Propose", max_unhealthy=2))
    assert policy.fencing == (Fence.COMPUTE, Fence.STORAGE)
    assert policy.preserve == {Preserved.NAME, Preserved.PORTS}
    assert (policy.mode, policy.max_unhealthy) == (Mode.PROPOSE, "2")


@pytest.mark.parametrize(
    ("limit", "size", "most"),
    [
        (None, 7, 7),
        ("40%", 10, 4),
        ("40%", 4, 1),
        ("40%", 1, 1),
        ("1%", 200, 2),
        ("100%", 9, 9),
        ("999999", 5, 999999),
        ("3", 100, 3),
        (0, 5, 0),
    ],
)
def test_how_many_nodes_are_recovered(limit: Any, size: int, most: int) -> None:
    assert read(spec(max_unhealthy=limit)).most_recovered(size) == most


@pytest.mark.shows("HS7")
@pytest.mark.parametrize("name", ["poll_url_conn_error_as_unhealty", "poll_url_conn_error_as_unheathy"])
def test_a_misspelling_is_understood_with_a_warning(name: str) -> None:
    checked = check_policy(spec([url(**{name: False})]))
    assert not health_policy(checked).detections[0].no_answer_is_unhealthy
    assert checked.warnings == (
        f"detection_modes[0]: {name} is understood; it is spelt poll_url_conn_error_as_unhealthy",
    )
    assert name in checked.sent["properties"]["detection"]["detection_modes"][0]["options"]


@pytest.mark.shows("HP13", "HS23")
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_the_former_form_is_understood_with_a_warning(version: str) -> None:
    sent = spec(version=version)
    sent["properties"]["detection"] = {
        "type": "NODE_STATUS_POLL_URL",
        "options": {"interval": 90, "poll_url": "http://{nodename}/", "poll_url_conn_error_as_unhealty": False},
    }
    checked = check_policy(sent)
    policy = health_policy(checked)
    assert (policy.interval_s, policy.detections[0].url) == (90, "http://{nodename}/")
    assert not policy.detections[0].no_answer_is_unhealthy
    assert len(checked.warnings) == 2
    assert checked.sent == sent


@pytest.mark.shows("HS23")
def test_the_former_form_with_events() -> None:
    sent = spec()
    sent["properties"]["detection"] = {"type": "LIFECYCLE_EVENTS", "interval": 70}
    policy = read(sent)
    assert (policy.takes_events, policy.interval_s) == (True, 70)


def test_the_former_form_must_fit_the_schema() -> None:
    sent = spec()
    sent["properties"]["detection"] = {"type": "NODE_STATUS_POLLING", "options": "x"}
    assert refused(sent) == "400 ESchema: 'x' is not a Map (at properties.detection.detection_modes[0].options)"


@pytest.mark.parametrize(
    ("sent", "warning"),
    [
        (spec(modes=[]), "properties.detection.detection_modes is empty: nothing is checked"),
        (
            spec([{**STATUS, "options": {"poll_url": "x"}}]),
            "detection_modes[0]: poll_url has no effect on NODE_STATUS_PO",
        ),
        (
            spec(actions=[{"name": "RECREATE", "params": {"type": "x"}}]),
            "recovery.actions: type has no effect on RECREATE",
        ),
    ],
)
def test_what_has_no_effect_is_said(sent: dict[str, Any], warning: str) -> None:
    (found,) = check_policy(sent).warnings
    assert found.startswith(warning)


def without(*path: str) -> dict[str, Any]:
    sent = spec()
    inner = sent["properties"]
    for part in path[:-1]:
        inner = inner[part]
    del inner[path[-1]]
    return sent


@pytest.mark.shows("HS6", "HS37")
@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (spec(version="1.3"), "404 ResourceNotFound: The policy_type 'senlin.policy.health-1.3' could not be found."),
        (without("detection"), "400 ESchema: Required spec item 'detection' not provided (at properties)"),
        (without("recovery"), "400 ESchema: Required spec item 'recovery' not provided (at properties)"),
        (
            without("detection", "detection_modes"),
            "400 ESchema: Required spec item 'detection_modes' not provided (at properties.detection)",
        ),
        (
            spec([{}]),
            "400 ESchema: Required spec item 'type' not provided (at properties.detection.detection_modes[0])",
        ),
        (
            spec([{"type": "VM"}]),
            "400 ESchema: 'VM' must be one of the allowed values: LIFECYCLE_EVENTS, NODE_STATUS_P",
        ),
        (spec(["x"]), "400 ESchema: 'x' is not a Map (at properties.detection.detection_modes[0])"),
        (
            spec([url(poll_url_typo=1)]),
            "400 ESchema: Unrecognizable spec item 'poll_url_typo' (at properties.detection",
        ),
        (spec([{"type": "NODE_STATUS_POLL_URL"}]), "400 InvalidSpec: NODE_STATUS_POLL_URL needs a poll_url (at "),
        (
            spec([url("")]),
            "400 InvalidSpec: NODE_STATUS_POLL_URL needs a poll_url (at properties.detection.detection_mo",
        ),
        (
            spec([url("ftp://x/")]),
            "400 InvalidSpec: 'ftp://x/' is not a URL that can be asked: its scheme must be http ",
        ),
        (spec([url("http:///x")]), "400 InvalidSpec: 'http:///x' is not a URL that can be asked: it names no host"),
        (spec([url("http://x:99999/")]), "400 InvalidSpec: 'http://x:99999/' is not a URL that can be asked: "),
        (spec([url("http://x:0/")]), "400 InvalidSpec: 'http://x:0/' is not a URL that can be asked: its port is 0"),
        (spec([url("http://x/a b")]), "400 InvalidSpec: 'http://x/a b' is not a URL that can be asked: it has a blank"),
        (spec([url("http://[x/")]), "400 InvalidSpec: 'http://[x/' is not a URL that can be asked: "),
        (
            spec([url("http://{name}/")]),
            "400 InvalidSpec: There is no placeholder {name}; there is {nodename}, {nodeid",
        ),
        (spec([url("http://{{ node.size }}/")]), "400 InvalidSpec: There is no placeholder {{ node.size }}; there is "),
        (
            spec([url(poll_url_healthy_response="(")]),
            "400 InvalidSpec: poll_url_healthy_response is no regular express",
        ),
        (
            spec([url(poll_url_healthy_response="a{99999}{99999}")]),
            "400 InvalidSpec: poll_url_healthy_response is no r",
        ),
        (spec([url(poll_url_retry_limit=-1)]), "400 ESchema: -1 is out of range"),
        (spec([url(poll_url_retry_interval="x")]), "400 ESchema: The value 'x' is not a valid Integer"),
        (
            spec([url(poll_url_conn_error_as_unhealty=True, poll_url_conn_error_as_unhealthy=False)]),
            "400 InvalidSpec: poll_url_conn_error_as_unhealty is a misspelling of poll_url_conn_error_as_unhealthy; ",
        ),
        (spec([STATUS, STATUS]), "400 InvalidSpec: Duplicate detection modes are not allowed in health policy: NODE_S"),
        (spec([url(), STATUS, url()]), "400 InvalidSpec: Duplicate detection modes are not allowed in health policy: "),
        (spec(detection={"type": "LIFECYCLE_EVENTS"}), "400 InvalidSpec: type is the former form of detection_modes; "),
        (spec(detection={"interval": "abc"}), "400 ESchema: The value 'abc' is not a valid Integer (at properties.det"),
        (spec(detection={"node_update_timeout": -5}), "400 ESchema: -5 is out of range"),
        (spec(detection={"node_update_timeout": 10**30}), "400 ESchema: 1000000000000000000000000000000 is out of ran"),
        (
            spec(detection={"recovery_conditional": "SOME"}),
            "400 ESchema: 'SOME' must be one of the allowed values: ALL_FAILED, ANY_FAILED (at properties.det",
        ),
        (spec(detection={"quorum": 2}), "400 InvalidSpec: quorum is 2, but there are 1 modes that poll (at "),
        (spec([EVENTS], detection={"quorum": 1}), "400 InvalidSpec: quorum is 1, but there are 0 modes that poll (at "),
        (
            spec(detection={"quorum": 1, "recovery_conditional": "ANY_FAILED"}),
            "400 InvalidSpec: quorum and recovery_conditional say the same thing; leave one of them out",
        ),
        (
            spec(actions=[{"name": "wf"}]),
            "400 InvalidSpec: 'wf' must be one of the allowed values: REBOOT, REBUILD, RECREATE, EVACUATE; another",
        ),
        (spec(actions=[{}]), "400 ESchema: Required spec item 'name' not provided (at properties.recovery.actions[0])"),
        (spec(actions=[{"name": "x", "type": "SHELL"}]), "400 ESchema: 'SHELL' must be one of the allowed values: MI"),
        (
            spec(actions=[{"name": "REBOOT", "params": {"type": "MAYBE"}}]),
            "400 ESchema: 'MAYBE' must be one of the allowed values: SOFT, HARD (at properties.recovery.act",
        ),
        (spec(actions=[{"name": "x", "type": "WEBHOOK"}]), "400 ESchema: Required spec item 'url' not provided (at "),
        (
            spec(actions=[{"name": "x", "type": "WEBHOOK", "params": {"url": "file:///etc"}}]),
            "400 InvalidSpec: 'file:///etc' is not a URL that can be asked: its scheme must be http or https (at ",
        ),
        (
            spec(actions=[{"name": "x", "type": "WEBHOOK", "params": {"url": "http://x/{who}"}}]),
            "400 InvalidSpec: There is no placeholder {who}; there is ",
        ),
        (
            spec(
                actions=[{"name": "x", "type": "WEBHOOK", "params": {"url": "http://x", "headers": {"A": "b\r\nC: d"}}}]
            ),
            "400 InvalidSpec: A header has a name of letters, digits and -, and one line of ASCII characters (at ",
        ),
        (
            spec(actions=[{"name": "x", "type": "WEBHOOK", "params": {"url": "http://x", "headers": {"hOst": "y"}}}]),
            "400 InvalidSpec: The header hOst is set by this service; leave it out (at ",
        ),
        (spec(actions=[{"name": "x", "type": "MISTRAL_WORKFLOW", "timeout": 0}]), "400 ESchema: 0 is out of range"),
        (spec(actions=[{"name": "REBOOT"}] * 17), "400 InvalidSpec: There are 17; at most 16 are possible (at prop"),
        (spec(fencing=["POWER"]), "400 ESchema: 'POWER' must be one of the allowed values: COMPUTE, NETWORK, STORAGE"),
        (spec(mode="maybe"), "400 ESchema: 'maybe' must be one of the allowed values: observe, propose, automatic"),
        (spec(max_unhealthy="most"), "400 InvalidSpec: 'most' is neither a count nor a share such as 40%"),
        (spec(max_unhealthy="1000000"), "400 InvalidSpec: '1000000' is neither a count nor a share such as 40%"),
        (spec(max_unhealthy="-1"), "400 InvalidSpec: '-1' is neither a count nor a share such as 40%"),
        (spec(max_unhealthy="0%"), "400 InvalidSpec: A share lies between 1% and 100%"),
        (spec(max_unhealthy="101%"), "400 InvalidSpec: A share lies between 1% and 100%"),
        (spec(max_unhealthy="²"), "400 InvalidSpec: '²' is neither a count nor a share such as 40%"),
        (
            spec(preserve=["mood"]),
            "400 ESchema: 'mood' must be one of the allowed values: name, ports, addresses, volu",
        ),
        (spec(node_delete_timeout=-1), "400 ESchema: -1 is out of range"),
        (
            spec(preserve=["ports", "addresses"], quarantine=True),
            "400 InvalidSpec: A node in quarantine keeps its addresses, ports; leave quarantine or them out",
        ),
        (
            spec(detection={"vantage_points": [{"name": "a"}, {"name": "a", "weight": 2}]}),
            "400 InvalidSpec: Each place is named once; give it a weight instead",
        ),
        (
            spec(detection={"vantage_points": [{"name": "a"}, {"name": "b", "weight": 2}], "vantage_quorum": 4}),
            "400 InvalidSpec: vantage_quorum is 4, but all places together weigh 3",
        ),
        (
            spec(detection={"vantage_points": [{"name": f"a{number}"} for number in range(10)]}),
            "400 InvalidSpec: There are 10; at most 9 are possible",
        ),
        (spec(detection={"vantage_points": [{"name": "a b"}]}), "400 ESchema: "),
        (spec(detection={"vantage_points": [{"name": "a", "weight": 101}]}), "400 ESchema: "),
    ],
)
def test_these_are_refused_as_errors_of_the_caller(sent: Any, message: str) -> None:
    assert refused(sent).startswith(message)


@pytest.mark.shows("HS4")
@pytest.mark.parametrize(
    ("interval", "least_s", "most_s", "message"),
    [
        (5, 5, 3600, ""),
        (3600, 5, 3600, ""),
        (
            1,
            5,
            3600,
            "Specified interval of 1 seconds has to be larger than health_check_interval_min of 5 seconds set in "
            "configuration.",
        ),
        (
            3601,
            5,
            3600,
            "Specified interval of 3601 seconds has to be smaller than check_interval_max of 3600 seconds set in "
            "configuration.",
        ),
    ],
)
def test_the_operator_limits_the_interval(interval: int, least_s: int, most_s: int, message: str) -> None:
    sent, limits = spec(detection={"interval": interval}), Intervals(least_s, most_s)
    if message:
        assert refused(sent, limits) == f"400 InvalidSpec: {message}"
    else:
        assert health_policy(check_policy(sent, limits)).interval_s == interval


def shown(kind: str = "NODE_STATUS_POLLING", **more: Any) -> dict[str, Any]:
    return {
        "poll_url": "",
        "poll_url_conn_error_as_unhealthy": True,
        "poll_url_healthy_response": "",
        "poll_url_retry_interval": "",
        "poll_url_retry_limit": "",
        "poll_url_ssl_verify": True,
        "type": kind,
        **more,
    }


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ([STATUS], [shown()]),
        ([{**STATUS, "options": {}}], [shown(poll_url_retry_interval=3, poll_url_retry_limit=3)]),
        (
            [url("http://x", poll_url_conn_error_as_unheathy=False), EVENTS],
            [
                shown(
                    "NODE_STATUS_POLL_URL",
                    poll_url="http://x",
                    poll_url_conn_error_as_unhealthy=False,
                    poll_url_retry_interval=3,
                    poll_url_retry_limit=3,
                ),
                shown("LIFECYCLE_EVENTS"),
            ],
        ),
    ],
)
@pytest.mark.parametrize("version", ["1.0", "1.2"])
def test_a_binding_shows_what_senlin_shows(modes: Any, expected: Any, version: str) -> None:
    assert binding_data(check_policy(spec(modes, version=version))) == {
        "HealthPolicy": {
            "data": {
                "detection_modes": expected,
                "interval": 60,
                "node_delete_timeout": 20,
                "node_force_recreate": False,
                "node_update_timeout": 300,
                "recovery_conditional": "ANY_FAILED",
            },
            "version": "1.2",
        }
    }


def test_an_action_shows_how_nodes_are_recovered() -> None:
    sent = spec(actions=[{"name": "REBOOT", "params": {"type": "SOFT"}}], fencing=["COMPUTE"])
    assert recover_data(check_policy(sent)) == {
        "fencing": ["COMPUTE"],
        "recover_action": [{"name": "REBOOT", "params": {"type": "SOFT"}}],
    }
    assert recover_data(check_policy(spec(actions=[]))) == {"fencing": [], "recover_action": [{"name": "RECREATE"}]}


@pytest.mark.shows("HS30")
@pytest.mark.parametrize(
    ("sent", "profile", "attached", "problem"),
    [
        (spec(), SERVER, [], ""),
        (spec(), STACK, [], ""),
        (spec([EVENTS, url()]), STACK, [], ""),
        (spec(actions=[{"name": "w", "type": "MISTRAL_WORKFLOW"}]), STACK, [], ""),
        (
            spec(actions=[{"name": "REBUILD"}]),
            STACK,
            [],
            "Recovery action REBUILD is only applicable to os.nova.server clusters.",
        ),
        (
            spec([HYPERVISOR]),
            STACK,
            [],
            "Detection mode HYPERVISOR_STATUS_POLLING is only applicable to os.nova.server",
        ),
        (spec([BALANCER]), SERVER, [], "Detection mode LB_STATUS_POLLING needs a policy of type senlin.policy.loadbal"),
        (spec([BALANCER]), SERVER, ["senlin.policy.loadbalance-1.3"], ""),
        (spec(), SERVER, ["senlin.policy.scaling-1.0"], ""),
        (
            spec(),
            SERVER,
            ["senlin.policy.health-1.0"],
            "Only one instance of policy type (senlin.policy.health) can be attached to a cluster, but another "
            "instance (senlin.policy.health-1.0) is found attached to the cluster already.",
        ),
    ],
)
def test_which_clusters_a_policy_fits(sent: Any, profile: str, attached: list[str], problem: str) -> None:
    found = attach_problem(check_policy(sent), profile, attached)
    assert found.startswith(problem)
    assert bool(found) == bool(problem)
