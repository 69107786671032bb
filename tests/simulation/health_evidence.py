"""The true answers of clouds and URLs about servers: evidence by which the invariants judge a health policy's findings.

It is taken where the answer is given, so that it does not depend on what the service makes of it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, NamedTuple

import greenlet

from homeostat.clouds.port import Answer as CloudAnswer
from homeostat.clouds.port import Creation, Operation
from homeostat.clouds.simulated.hosts import KIND as HOST
from homeostat.clouds.simulated.servers import UNSEEN
from homeostat.convergence.health_checks.probes import Answer
from homeostat.model.health_policy import Detection, DetectionType, HealthPolicy
from homeostat.model.hosts import LOOKS
from homeostat.model.observed import Observation, Presence
from tests.simulation.health_policies import SICK, is_bad
from tests.simulation.watched import WatchedCloud

FEW = 3
"""So many members, or more, have to be silent at once before silence is doubted."""
STARTS = frozenset({"start", "reboot", "rebuild", "evacuate", "resume", "unpause", "restore", "unrescue"})
"""Operations after which a server may run, though it was cut off before."""


class Said(NamedTuple):
    """An answer of a URL: round — in which round of which thread; cut_off — the observer reached nothing; place — where
    it is."""

    at: float
    answer: Answer
    round: int
    cut_off: bool
    place: str


class CheckedCloud(WatchedCloud):
    """A cloud that tells what it answers. on_create, on_operate — called before a server is made, and after an
    operation on one."""

    on_answer: Callable[[str, Observation], None] = lambda kind, seen: None
    on_create: Callable[[str], None] = lambda token: None
    on_operate: Callable[[Operation, CloudAnswer], None] = lambda operation, answer: None
    before: Mapping[str, Mapping[str, Any]]
    """Servers as they were before the operations on them."""

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        looks = super().observe(kind, handles)
        for each in looks:
            self.on_answer(kind, each)
        return looks

    def create(self, kind: str, intents: Sequence[Creation]) -> list[CloudAnswer]:
        if kind == "server" and self.behaviour.faults.unreachable < 1.0:
            for each in intents:
                self.on_create(each.token)
        return self._answered(kind, super().create(kind, intents))

    def delete(self, kind: str, handles: Sequence[str]) -> list[CloudAnswer]:
        return self._answered(kind, super().delete(kind, handles))

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[CloudAnswer]:
        self.before = {each.handle: dict(self.things("server").get(each.handle, {})) for each in operations}
        answers = super().operate(kind, operations)
        if kind == "server":
            for operation, answer in zip(operations, answers, strict=True):
                self.on_operate(operation, answer)
        return self._answered(kind, answers)

    def _answered(self, kind: str, answers: list[CloudAnswer]) -> list[CloudAnswer]:
        for each in answers:
            if isinstance(each, Observation):
                self.on_answer(kind, each)
        return answers


class Evidence:
    """Takes: now, lived — the time of the world, and the same without the time that was leapt over; failed — hosts that
    do not work now: what the cloud says of one that works is no evidence.

    rounds — thread -> the number of its round of looks; missing — handles of which the newest answer was that there is
    none; brought_back — handles of servers that people have brought back, or their hosts; born — handle -> when it was
    first seen; cut — handle -> what is cut off of it; confirmed — what the cloud has said to be cut off since it was
    last started.
    """

    def __init__(self, now: Callable[[], float], lived: Callable[[], float], failed: Collection[str]) -> None:
        self._failed_hosts = failed
        self._now, self._lived = now, lived
        self._words: dict[str, list[tuple[float, str]]] = defaultdict(list)
        self._well: dict[str, float] = {}
        self._up: dict[str, float] = {}
        self._hosts: dict[str, list[float]] = defaultdict(list)
        self._on: dict[str, set[str]] = defaultdict(set)
        self._said: dict[str, list[Said]] = defaultdict(list)
        self._asked: dict[int, set[str]] = defaultdict(set)
        self._askable: dict[int, frozenset[str]] = {}
        self.rounds: dict[greenlet.greenlet, int] = {}
        self._next_round = 0
        self.missing: set[str] = set()
        self.brought_back: set[str] = set()
        self.born: dict[str, float] = {}
        self.cut: dict[str, set[str]] = defaultdict(set)
        self.confirmed: dict[str, set[str]] = defaultdict(set)

    # -- answers -----------------------------------------------------------------------------------------------------

    def saw(self, kind: str, seen: Observation) -> None:
        if kind == HOST:
            down = seen.properties.get("state") == "down"
            if seen.presence is Presence.ABSENT or (down and seen.handle in self._failed_hosts):
                self._hosts[seen.handle].append(self._lived())
            elif seen.present and not down:
                self._up[seen.handle] = self._lived()
        elif kind == "server" and seen.presence is Presence.ABSENT:
            self.missing.add(seen.handle)
            self._words[seen.handle].append((self._lived(), ""))
        elif kind == "server" and seen.present:
            self.missing.discard(seen.handle)
            self.born.setdefault(seen.handle, self._now())
            self._on[seen.handle].add(str(seen.properties.get("host", "")))
            status = str(seen.properties.get("status", ""))
            if status in (*SICK, "paused"):
                self._words[seen.handle].append((self._lived(), status))
            elif status == "active":
                self._well[seen.handle] = self._lived()

    def begin_round(self) -> None:
        """This thread begins a round of looks."""
        self._next_round += 1
        self.rounds[greenlet.getcurrent()] = self._next_round

    @property
    def round(self) -> int:
        return self.rounds.get(greenlet.getcurrent(), 0)

    def said(self, handle: str, answer: Answer, *, cut_off: bool, askable: frozenset[str], place: str) -> None:
        """A URL has answered. askable — handles of all servers that could be asked now."""
        self._asked[self.round].add(handle)
        self._askable.setdefault(self.round, askable)
        self._said[handle].append(Said(self._lived(), answer, self.round, cut_off, place))

    def operated(self, operation: Operation, answer: CloudAnswer, *, sent: bool) -> None:
        handle, what = operation.handle, set(operation.arguments.get("what", ()))
        if operation.verb == "fence" and sent:
            seen = answer.properties if isinstance(answer, Observation) else {}
            withheld = {each for each, why in seen.get("not_fenced", {}).items() if why != UNSEEN}
            self.cut[handle] |= what - withheld
            if isinstance(answer, Observation):
                self.confirmed[handle] |= set(answer.properties.get("fenced", ()))
        elif operation.verb == "unfence" and sent:
            self.cut[handle] -= what
            self.confirmed[handle] -= what
        elif operation.verb in STARTS and sent:
            self.confirmed[handle].discard("COMPUTE")

    def about(self, handle: str) -> str:
        """All that was said of a server, newest last."""
        hosts = {each: self._hosts[each][-5:] for each in self._on[handle]}
        return f"words {self._words[handle][-8:]}, hosts {hosts}, URL {self._said[handle][-8:]}"

    # -- judging -----------------------------------------------------------------------------------------------------

    def accuses(
        self, policy: HealthPolicy, handle: str, mates: frozenset[str], attached: float, memory_s: float
    ) -> str:
        """Which detections of a policy had reason to find a server unhealthy: "events", "polling", or "" for too few.

        mates — handles of the members of its group; attached — what was said before does not count; memory_s — nor what
        is older, for URLs than the newest answer: one that is being changed is not asked.
        """
        since = max(attached, self._lived() - memory_s)
        if policy.polled != policy.detections and any(at >= since for at, _ in self._words[handle]):
            return "events"
        asked_at = self._said[handle][-1].at if self._said[handle] else 0.0
        asked_since = max(attached, asked_at - memory_s)
        failed = sum(
            self._failed(
                policy, each, handle, mates, asked_since if each.type is DetectionType.URL else since, attached
            )
            for each in policy.polled
        )
        return "polling" if policy.is_unhealthy(failed) else ""

    def found_since(self, policy: HealthPolicy, handle: str, mates: frozenset[str], since: float) -> bool:
        """Have so many places found a server unhealthy since as it takes? Always where something else may have."""
        if not policy.vantage_points or any(each.type is not DetectionType.URL for each in policy.detections):
            return True
        once = replace(policy, failures=1, detections=tuple(replace(each, attempts=1) for each in policy.detections))
        return all(self._failed(once, each, handle, mates, since, since) for each in once.detections)

    def _failed(
        self,
        policy: HealthPolicy,
        detection: Detection,
        handle: str,
        mates: frozenset[str],
        since: float,
        attached: float,
    ) -> bool:
        if detection.type is DetectionType.STATUS:
            # However long ago: looks in a row are those between which it was not seen well.
            first = min(since, max(attached, self._well.get(handle, 0.0)))
            bad = sum(at >= first and word != "paused" for at, word in self._words[handle])
        elif detection.type is DetectionType.HYPERVISOR:
            gone = sum(at >= since and word == "" for at, word in self._words[handle])
            firsts = {host: min(since, max(attached, self._up.get(host, 0.0))) for host in self._on[handle]}
            bad = gone + sum(at >= first for host, first in firsts.items() for at in self._hosts[host])
            if not gone:
                return bad >= max(policy.failures, LOOKS)
        else:
            said = [each for each in self._said[handle] if each.at >= attached]
            # An observer that is cut off has seen nothing: what it was answered stands between no two others.
            counts = [each for each in said if not each.cut_off or self._is_believed(policy, each, mates)]
            if policy.vantage_points:
                return _agree(policy, detection, counts, since)
            return _bad(detection, counts, since) >= policy.failures * detection.attempts
        return bad >= policy.failures

    def _is_believed(self, policy: HealthPolicy, said: Said, mates: frozenset[str]) -> bool:
        """May silence count although the observer is cut off? So it may where too few are asked to doubt it."""
        asked = self._asked[said.round] & mates
        return not policy.canary_url and (len(asked) < FEW or asked != self._askable[said.round] & mates)


def _bad(detection: Detection, said: Sequence[Said], since: float) -> int:
    """How often a URL has failed, lately or in a row."""
    counts = [(each.at, is_bad(each.answer, detection)) for each in said]
    return max(sum(bad for at, bad in counts if at >= since), len(list(takewhile(lambda each: each[1], counts[::-1]))))


def _agree(policy: HealthPolicy, detection: Detection, said: Sequence[Said], since: float) -> bool:
    """Have so many places found a URL failed, in as many looks as it takes, that they have the weight of the quorum?"""
    weight = 0
    for point in policy.vantage_points:
        bad = _bad(detection, [each for each in said if each.place == point.name], since)
        # Each look asks as often as the policy says before it finds so; those that follow find it at once.
        weight += point.weight * min(policy.failures, max(0, bad - detection.attempts + 1))
    return weight >= policy.vantage_quorum * policy.failures


def may_run(server: Mapping[str, Any] | None, *, forced: bool) -> bool:
    """May a server run? Not where there is none, it is stopped, or its host was declared down."""
    return server is not None and not forced and server["status"] not in ("stopped", "soft_deleted")
