"""The health policy: what is accepted, what is refused, and how the engine reads it."""

from typing import Any

import pytest

from homeostat.clustering.decisions.health_policy import health_policy, recover_data
from homeostat.clustering.decisions.policies import Intervals, attach_problem, binding_data, check_policy
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
    assert (policy.polled, policy.is_unhealthy(1)) == ((), False)
    mixed = read(spec([EVENTS, STATUS]))
    assert [each.type for each in mixed.polled] == [DetectionType.STATUS]


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
    assert ([detection.type for detection in policy.detections], policy.interval_s) == ([DetectionType.EVENTS], 70)


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
            "Specified interval of 1 seconds has to be at least health_check_interval_min of 5 seconds.",
        ),
        (
            3601,
            5,
            3600,
            "Specified interval of 3601 seconds has to be at most check_interval_max of 3600 seconds.",
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
