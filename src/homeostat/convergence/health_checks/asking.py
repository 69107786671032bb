"""The state of one round of health checks, and its URLs: called concurrently, and doubted if none answers."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from homeostat.clustering.decisions.placeholders import expanded_url, missing_in
from homeostat.convergence.facts.health_policies import node_names
from homeostat.convergence.health_checks import probes
from homeostat.convergence.health_checks.probes import UNASKED, Get, Probe, lacks_page, says_nothing
from homeostat.model.answers import Kind
from homeostat.model.health_policy import Detection, DetectionType, HealthPolicy
from homeostat.model.node_health import Finding, Look, NodeNames, policy_for
from homeostat.model.status import Status
from homeostat.planner.policies import verdicts
from homeostat.store.shards.health import Check, Shard, Taken, WatchedMember

FEW = 3
"""Members that may be out of reach at once before the observer doubts itself."""
OUT_OF_REACH = "none of its members answers any more, which is more likely a fault of the network of the observer"
CANARY = "the canary_url of its policy does not answer, so the observer may be cut off"
NO_PAGE = "no member has had this page yet, so the poll_url may be wrong"
DOUBTED_S = 600.0
"""Time for which the silence of all members is doubted; later it is believed."""
Place = tuple[str, int]
"""Row key of a member, and number of a detection of its policy."""


@dataclass(slots=True)
class Round:
    """State and observations of a round.

    Attributes:
        taken: The shards.
        now: Start of the round.
        until: Until when the shards are taken.
        checks: Id of a stack -> its stored policies.
        policies: Id of a stack -> its policies as values by name.
        members: Row key -> the member's row.
        places: Stack and name of a member -> row of its place in the pool of a load balancer.
        unseen: Row key -> why the thing could not be observed.
        inside: Row key of a member that is a stack -> the problem in the stack.
        looks: Row key -> number of a detection -> its look.
        lifted: Stacks and hosts that turned out to be no longer declared down.
    """

    taken: Mapping[Shard, Taken]
    now: float
    until: float
    checks: Mapping[str, Sequence[Check]]
    policies: Mapping[str, Mapping[str, HealthPolicy]]
    members: dict[str, WatchedMember] = field(default_factory=dict)
    places: dict[tuple[str, str], WatchedMember] = field(default_factory=dict)
    unseen: dict[str, str] = field(default_factory=dict)
    inside: dict[str, str] = field(default_factory=dict)
    looks: dict[str, dict[int, Look]] = field(default_factory=lambda: defaultdict(dict))
    lifted: list[tuple[str, str]] = field(default_factory=list)

    def policy(self, row: WatchedMember) -> HealthPolicy | None:
        return policy_for(self.policies.get(row.stack_id, {}), row.name)

    def project(self, row: WatchedMember) -> str:
        return self.taken[row.stack_id, row.shard].project

    def names(self, row: WatchedMember) -> NodeNames:
        return node_names(row, self.checks[row.stack_id])


def is_askable(row: WatchedMember) -> bool:
    """Return whether to call a member's URL: as in Senlin, not while it is being created, changed or recovered."""
    return bool(row.handle) and row.status != Status.IN_PROGRESS


def urls_of(current: Round, row: WatchedMember) -> list[tuple[int, Detection]]:
    """Return the detections of a member that call a URL, with their numbers in its policy."""
    policy = current.policy(row)
    if policy is None or not is_askable(row):
        return []
    return [
        (number, detection) for number, detection in enumerate(policy.detections) if detection.type is DetectionType.URL
    ]


def ask(current: Round, places: Collection[Place], get: Get, pool: Executor | None) -> dict[Place, Look]:
    """Call URLs of members, and the canary URLs that show whether the observer is cut off."""
    wanted: list[Probe] = []
    looks: dict[Place, Look] = {}
    for row in current.members.values():
        for number, detection in urls_of(current, row):
            place = (row.key, number)
            if place not in places:
                continue
            names = current.names(row)
            unknown = missing_in(detection.url, names)
            if unknown:
                looks[place] = verdicts.look(
                    DetectionType.URL, Kind.NO_DETECTOR, f"{UNASKED}: its {unknown} is not known"
                )
            else:
                wanted.append(Probe(place, current.project(row), expanded_url(detection.url, names), detection))
    return looks | _answers(current, wanted, get, pool) if wanted else looks


def _answers(current: Round, wanted: Sequence[Probe], get: Get, pool: Executor | None) -> dict[Place, Look]:
    blind, answers = _canaries(current, get), probes.ask(wanted, get, pool)
    by_stack: dict[str, list[tuple[Probe, Look]]] = defaultdict(list)
    for probe in wanted:
        by_stack[current.members[probe.place[0]].stack_id].append((probe, answers[probe.place]))
    results: dict[Place, Look] = {}
    for stack_id, looks in by_stack.items():
        doubt = blind.get(stack_id) or _doubt(current, looks)
        for probe, look in looks:
            doubted = doubt and look.finding is Finding.UNHEALTHY
            results[probe.place] = Look(Finding.UNKNOWN, doubt) if doubted else look
        results |= _wrong_pages(current, looks)
    return results


def _wrong_pages(current: Round, looks: Sequence[tuple[Probe, Look]]) -> dict[Place, Look]:
    """Return doubts about the looks with a missing page, unless a member is known to have had the page.

    A member that lost the page had answered before, or its siblings have the page. Otherwise the policy's URL may be
    wrong, and a replacement would not have the page either.
    """
    doubted: dict[Place, Look] = {}
    for probe, look in looks:
        key, number = probe.place
        stack_id = current.members[key].stack_id
        mates = [row for row in current.members.values() if row.stack_id == stack_id]
        others = (_finding(row, number) is Finding.HEALTHY for row in mates)
        now = (
            look_now.finding is Finding.HEALTHY and not says_nothing(look_now.evidence)
            for other, look_now in looks
            if other.place[1] == number
        )
        known = _finding(current.members[key], number) not in (None, Finding.UNKNOWN)
        if lacks_page(look) and not (known or any(others) or any(now)):
            doubted[probe.place] = verdicts.look(DetectionType.URL, Kind.NO_SUCH_PAGE, f"{look.evidence}; {NO_PAGE}")
    return doubted


def _finding(row: WatchedMember, number: int) -> Finding | None:
    """Return the last finding of a detection about a member; None without one."""
    if row.health is None or number >= len(row.health.detected):
        return None
    finding: Finding = row.health.detected[number].finding
    return finding


def _canaries(current: Round, get: Get) -> dict[str, str]:
    """Return the stacks whose canary does not answer, with the doubt that follows."""
    urls = {
        (stack_id, policy.canary_url)
        for stack_id, by_name in current.policies.items()
        for policy in by_name.values()
        if policy.canary_url
    }
    blind = {}
    for stack_id, url in sorted(urls):
        answer = get(url, True, probes.PATIENCE_S_MIN)
        if not 200 <= answer.status < 400:
            blind[stack_id] = CANARY
    return blind


def _doubt(current: Round, looks: Sequence[tuple[Probe, Look]]) -> str:
    """Return why the observer doubts itself, if no member of a stack answers any more at once; else "".

    Members that are being changed are not called, and so are no evidence.
    """
    silent = [probe for probe, look in looks if look.finding is not Finding.HEALTHY and says_nothing(look.evidence)]
    asked = {probe.place[0] for probe, _ in looks}
    stack_id = current.members[looks[0][0].place[0]].stack_id
    others = [row for key, row in current.members.items() if row.stack_id == stack_id and key not in asked]
    few = len({probe.place[0] for probe in silent}) < FEW
    if few or len(silent) < len(looks) or any(map(_has_answered, others)):
        return ""
    has_canary = any(policy.canary_url for policy in current.policies[stack_id].values())
    since = [_silent_since(current.members[probe.place[0]], probe.place[1], current.now) for probe in silent]
    return "" if has_canary or current.now - min(since) > DOUBTED_S else OUT_OF_REACH


def _has_answered(row: WatchedMember) -> bool:
    """Return whether the URL of a member that could be called now had answered its last call."""
    if row.health is None or not is_askable(row):
        return False
    asked = [detection for detection in row.health.detected if detection.type == DetectionType.URL]
    return any(detection.finding is not Finding.UNKNOWN and not says_nothing(detection.evidence) for detection in asked)


def _silent_since(row: WatchedMember, number: int, now: float) -> float:
    """Return the time since which a member has not answered a URL."""
    health_of = row.health
    if health_of is None or number >= len(health_of.detected):
        return now
    detected = health_of.detected[number]
    return float(detected.since) if detected.finding is not Finding.HEALTHY else now
