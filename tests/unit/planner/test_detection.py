"""What detections say: of answers of URLs, of hosts, and of several looks together."""

from dataclasses import replace

import pytest

from homeostat.clustering.decisions.health_policy import health_policy
from homeostat.clustering.decisions.policies import stored_policy
from homeostat.convergence.health_checks.probes import Answer, judged
from homeostat.model.health_policy import Detection, DetectionType, HealthPolicy
from homeostat.model.node_health import Detected, Finding, Look, NodeHealth, dump, load
from homeostat.model.observed import Observation, Presence
from homeostat.planner.policies import detection
from homeostat.planner.policies.detection import Member

HEALTHY, UNHEALTHY, UNKNOWN = Finding.HEALTHY, Finding.UNHEALTHY, Finding.UNKNOWN
BAD, GOOD, NOTHING = Look(UNHEALTHY, "ill"), Look(HEALTHY), Look(UNKNOWN, "out of sight")


@pytest.mark.shows("HS10")
@pytest.mark.parametrize(
    ("status", "text", "strict", "expected"),
    [
        (200, "all is ok here", True, HEALTHY),
        (204, "", True, UNHEALTHY),
        (200, "hello", False, UNHEALTHY),
        (404, "ok", True, UNHEALTHY),
        (404, "ok", False, UNHEALTHY),
        (500, "ok", False, UNHEALTHY),
        (0, "refused", True, UNHEALTHY),
        (0, "refused", False, HEALTHY),
    ],
)
def test_the_answer_of_a_url(status: int, text: str, strict: bool, expected: Finding) -> None:
    """An error status is no missing connection: it is bad whatever poll_url_conn_error_as_unhealthy says."""
    wanted = Detection(DetectionType.URL, "http://x", no_answer_is_unhealthy=strict, response="[Oo]k")
    assert judged(wanted, Answer(status, text)).finding is expected


def test_an_expression_that_takes_too_long_finds_nothing() -> None:
    wanted = Detection(DetectionType.URL, "http://x", response="(a+)+$")
    assert judged(wanted, Answer(200, "a" * 50_000 + "!")).finding is UNKNOWN


@pytest.mark.shows("HS36")
@pytest.mark.parametrize(
    ("state", "status", "strict", "expected"),
    [
        ("up", "enabled", False, HEALTHY),
        ("down", "enabled", False, UNHEALTHY),
        ("down", "disabled", False, UNHEALTHY),
        ("up", "disabled", False, HEALTHY),
        ("up", "disabled", True, UNHEALTHY),
        ("", "", False, UNKNOWN),
    ],
)
def test_a_host_in_maintenance_is_not_down_unless_the_policy_says_so(
    state: str, status: str, strict: bool, expected: Finding
) -> None:
    host = Observation(Presence.PRESENT, "host-1", {"state": state, "status": status})
    member = Member("server", Observation(Presence.PRESENT, "server-1", {"host": "host-1"}), 0.0)
    wanted = Detection(DetectionType.HYPERVISOR, disabled_is_down=strict)
    assert detection.by_hypervisor(member, host, wanted).finding is expected


def policy(**detection: object) -> HealthPolicy:
    wanted = {"node_update_timeout": 0, "detection_modes": [{"type": "NODE_STATUS_POLLING"}], **detection}
    return health_policy(
        stored_policy(
            {
                "type": "senlin.policy.health",
                "version": "1.2",
                "properties": {"detection": wanted, "recovery": {"actions": [{"name": "RECREATE"}]}},
            }
        )
    )


def after(wanted: HealthPolicy, looks: list[Look], step_s: float = 10.0) -> list[Finding]:
    """What is found after each look."""
    member, health, findings = Member("server", None, 0.0), None, []
    for number, look in enumerate(looks):
        health = detection.health_after(wanted, member, {0: look}, health, 1000.0 + number * step_s)
        findings.append(health.finding)
    return findings


def test_so_many_looks_in_a_row_have_to_fail_or_to_be_well() -> None:
    wanted = policy(failures=2, successes=2)
    looks = [GOOD, BAD, GOOD, BAD, BAD, GOOD, BAD, GOOD, GOOD]
    expected = [HEALTHY, HEALTHY, HEALTHY, HEALTHY, UNHEALTHY, UNHEALTHY, UNHEALTHY, UNHEALTHY, HEALTHY]
    assert after(wanted, looks) == expected


def test_when_places_had_looked_last_is_kept_while_looks_in_a_row_are_counted() -> None:
    wanted, kept = policy(failures=2), list[float | None]()
    node: NodeHealth | None = None
    for counted_at, look in enumerate((BAD, GOOD, BAD, BAD, GOOD)):
        member = Member("server", None, 0.0)
        node = detection.health_after(
            wanted, member, {0: replace(look, counted_at=float(counted_at))}, node, 10.0 * counted_at
        )
        kept.append(node.detected[0].counted_at)
        assert load(dump(node)) == node
        assert ("counted_at" in dump(node)["detected"][0]) == (kept[-1] is not None)
    assert kept == [0.0, None, 2.0, None, None]


@pytest.mark.shows("HS34")
def test_a_member_that_flaps_needs_twice_as_many_looks_each_time() -> None:
    turns = after(policy(), [GOOD, BAD, GOOD, BAD, GOOD, BAD, GOOD, BAD, BAD, BAD, BAD])
    assert turns[:4] == [HEALTHY, UNHEALTHY, HEALTHY, UNHEALTHY]
    assert turns[4:].count(HEALTHY) < turns[4:].count(UNHEALTHY)
    assert turns[4] is UNHEALTHY, "one good look is not enough any more"


def test_nothing_seen_is_neither() -> None:
    assert after(policy(failures=2), [GOOD, BAD, NOTHING, BAD]) == [HEALTHY, HEALTHY, UNKNOWN, UNHEALTHY]


@pytest.mark.shows("HS5")
def test_the_verdict_of_each_detection_is_kept() -> None:
    modes = [{"type": "NODE_STATUS_POLLING"}, {"type": "HYPERVISOR_STATUS_POLLING"}]
    wanted = policy(detection_modes=modes, recovery_conditional="ALL_FAILED")
    health = detection.health_after(wanted, Member("server", None, 0.0), {0: BAD, 1: GOOD}, None, 1000.0)
    assert isinstance(health, NodeHealth)
    assert health.finding is HEALTHY
    assert [(each.type, each.finding) for each in health.detected] == [
        ("NODE_STATUS_POLLING", UNHEALTHY),
        ("HYPERVISOR_STATUS_POLLING", HEALTHY),
    ]


def test_a_url_that_could_not_be_asked_leaves_open_whether_a_member_is_healthy() -> None:
    url = {"type": "NODE_STATUS_POLL_URL", "options": {"poll_url": "http://x/"}}
    modes = [{"type": "NODE_STATUS_POLLING"}, url]
    member = Member("server", None, 0.0)
    either = policy(detection_modes=modes)
    assert detection.health_after(either, member, {0: GOOD, 1: NOTHING}, None, 1000.0).finding is UNKNOWN
    both = policy(detection_modes=modes, recovery_conditional="ALL_FAILED")
    assert detection.health_after(both, member, {0: GOOD, 1: NOTHING}, None, 1000.0).finding is HEALTHY
    assert detection.health_after(both, member, {0: BAD, 1: NOTHING}, None, 1000.0).finding is UNKNOWN
    hosts = policy(detection_modes=[{"type": "NODE_STATUS_POLLING"}, {"type": "HYPERVISOR_STATUS_POLLING"}])
    assert detection.health_after(hosts, member, {0: GOOD, 1: NOTHING}, None, 1000.0).finding is HEALTHY


def test_no_member_becomes_unhealthy_by_a_look_that_was_well() -> None:
    """Found by the simulation (seed 7464 of health): what was seen in the grace counted after it."""
    wanted, member, health = policy(successes=3, node_update_timeout=30), Member("server", None, 1000.0), None
    findings = []
    for number, look in enumerate([BAD, BAD, BAD, GOOD, GOOD, BAD, GOOD]):
        health = detection.health_after(wanted, member, {0: look}, health, 1001.0 + 10 * number)
        findings.append(health.finding)
    assert findings == [HEALTHY, HEALTHY, HEALTHY, HEALTHY, HEALTHY, UNHEALTHY, UNHEALTHY]


# -- hosts -------------------------------------------------------------------------------------------------------------

UP, SILENT, DECLARED, BLIND, HIDDEN = "up", "silent", "declared", "blind", "hidden"


def look_at_host(what: str, beat_at: float) -> Look:
    shown = {"state": "up" if what == UP else "down", "status": "enabled", "updated_at": beat_at}
    more = {"forced_down": what == DECLARED, "blind": "nothing is heard" if what == BLIND else ""}
    presence = Presence.UNKNOWN if what == HIDDEN else Presence.PRESENT
    member = Member("server", Observation(Presence.PRESENT, "server-1", {"host": "host-1"}), 0.0)
    wanted = Detection(DetectionType.HYPERVISOR)
    return detection.by_hypervisor(member, Observation(presence, "host-1", {**shown, **more}), wanted)


def found_of_host(*looks: tuple[float, str, float], **more: object) -> list[Finding]:
    """Findings after looks, each as its time, what it has seen, and the beat that was heard last."""
    wanted = policy(detection_modes=[{"type": "HYPERVISOR_STATUS_POLLING"}], **more)
    member = Member("server", Observation(Presence.PRESENT, "server-1", {"host": "host-1"}), 0.0)
    health: NodeHealth | None = None
    findings = []
    for at, what, beat_at in looks:
        health = detection.health_after(wanted, member, {0: look_at_host(what, beat_at)}, health, at)
        findings.append(health.finding)
    return findings


@pytest.mark.parametrize(
    ("looks", "expected", "reason"),
    [
        ([(0, UP, 0), (10, SILENT, 0), (20, SILENT, 0), (30, SILENT, 0)], UNHEALTHY, "three looks in 20 s"),
        ([(0, UP, 0), (30, SILENT, 0), (60, SILENT, 0)], HEALTHY, "two looks are too few"),
        ([(0, UP, 0), *((at, SILENT, 0) for at in range(1, 20))], HEALTHY, "it has stood still for less than 20 s"),
        ([(0, UP, 0), *((at, SILENT, at) for at in range(10, 90, 10))], HEALTHY, "it beats, whatever it is called"),
        ([(0, UP, 0), *((at, DECLARED, at) for at in range(10, 90, 10))], HEALTHY, "declared down, and it beats"),
        ([(0, UP, 0), *((at, BLIND, 0) for at in range(10, 90, 10))], UNKNOWN, "nothing is seen"),
        (
            [(0, UP, 0), (10, SILENT, 0), (20, SILENT, 0), (30, BLIND, 0), *((at, SILENT, 0) for at in (40, 80, 120))],
            UNKNOWN,
            "counted anew, and longer, after it was blind: those that come back last are no failed hosts",
        ),
        (
            [(0, UP, 0), (10, SILENT, 0), (20, HIDDEN, 0), *((at, SILENT, 0) for at in (40, 80, 120))],
            UNKNOWN,
            "counted anew after nothing was told",
        ),
        ([(0, BLIND, 0), *((at, SILENT, 0) for at in range(10, 120, 10))], UNHEALTHY, "it stood still for 90 s then"),
        (
            [(0, UP, 0), *((at, SILENT, 0) for at in (10, 20, 30)), (40, DECLARED, 38), (50, DECLARED, 38)],
            UNHEALTHY,
            "to declare it down is no beat",
        ),
        (
            [(0, UP, 0), *((at, SILENT, 0) for at in (10, 20, 30)), (40, DECLARED, 38), (50, DECLARED, 45)],
            UNKNOWN,
            "it is heard of again, and our own fence is no evidence",
        ),
        ([(0, UP, 0), *((at, SILENT, 0) for at in (10, 20, 30)), (40, BLIND, 0)], UNKNOWN, "it may not be down"),
        ([(0, UP, 0), *((at, SILENT, 0) for at in (10, 20, 30)), (40, UP, 40)], HEALTHY, "it is back"),
    ],
)
def test_a_host_is_down_once_it_stands_still_beside_others(
    looks: list[tuple[float, str, float]], expected: Finding, reason: str
) -> None:
    assert found_of_host(*looks)[-1] is expected, reason


def test_more_looks_are_needed_where_the_policy_says_so() -> None:
    looks = [(0.0, UP, 0.0), *((float(at), SILENT, 0.0) for at in range(10, 60, 10))]
    assert found_of_host(*looks, failures=5)[-2:] == [HEALTHY, UNHEALTHY]


def test_a_server_that_is_gone_does_not_wait_for_looks_at_its_host() -> None:
    wanted = policy(detection_modes=[{"type": "HYPERVISOR_STATUS_POLLING"}])
    member = Member("server", Observation(Presence.ABSENT, "server-1"), 0.0)
    look = detection.by_hypervisor(member, None, wanted.detections[0])
    assert detection.health_after(wanted, member, {0: look}, None, 1.0).finding is UNHEALTHY


@pytest.mark.parametrize(
    ("quorum", "detected", "expected"),
    [
        (1, [(UNHEALTHY, 0)], False),
        (1, [(UNHEALTHY, 1)], True),
        (1, [(UNHEALTHY, 1), (UNHEALTHY, 0)], False),
        (2, [(UNHEALTHY, 1), (UNHEALTHY, 0)], True),
        (2, [(UNHEALTHY, 0), (UNHEALTHY, 0)], False),
        (1, [(UNHEALTHY, 1), (UNKNOWN, 0)], True),
        (1, [(HEALTHY, 0)], False),
        (1, [], False),
    ],
)
def test_what_the_newest_looks_find_healthy_is_mending(
    quorum: int, detected: list[tuple[Finding, int]], expected: bool
) -> None:
    found = tuple(Detected("NODE_STATUS_POLLING", finding, 0.0, successes=well) for finding, well in detected)
    wanted = replace(policy(), quorum=quorum)
    assert detection.is_recovering(wanted, NodeHealth(UNHEALTHY, 0.0, detected=found)) is expected


def test_an_event_is_not_mended_by_other_looks() -> None:
    event = Detected("LIFECYCLE_EVENTS", UNHEALTHY, 0.0)
    polled = Detected("NODE_STATUS_POLLING", UNHEALTHY, 0.0, successes=1)
    assert not detection.is_recovering(policy(), NodeHealth(UNHEALTHY, 0.0, detected=(event, polled)))
