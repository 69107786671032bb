"""What must hold of health policies, judged by what clouds and URLs have truly said, and by the rows of each commit.

What is wrong is noted, as by the watcher; and which stories have happened.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import greenlet

from homeostat.clouds.port import Answer, Operation
from homeostat.model.errors import Terminal
from homeostat.model.health_policy import AFTER_FENCING, ActionType, Built, DetectionType, HealthPolicy, Mode
from homeostat.model.observed import Observation
from homeostat.model.status import Action, Status
from homeostat.planner.lifecycle.recovery import JOINED
from tests.simulation.health_evidence import CheckedCloud, Evidence, may_run
from tests.simulation.health_keeping import KeepingInvariants
from tests.simulation.health_policies import sees
from tests.simulation.health_rows import Known, Member, Reader, Recovery, read
from tests.simulation.watched import WatchedDatabase

HOUR_S = 3600.0
SLACK_S = 60.0
"""So much longer than its looks a finding may take: rounds and passes are frozen, cut off, or taken over."""
LATE_S = 10.0
"""So much later than its interval a look may be."""
NOTICED_S = 3.0
"""So much earlier than its end was stored the service has decided that a change was over; grace counts from that."""
FENCE = "fence"
HINTS = ("START", "REBOOT", "RESTORE", "UNPAUSE")
BY_HINT = -1
UNCOUNTED = frozenset({FENCE, "unfence", "lock", "unlock", "suspend", "resume"})
"""Operations that may be repeated, or that are no actions of recoveries."""


@dataclass
class Ladder:
    """The actions of a policy for one finding: place — of the newest one, None before the first; fences — how often it
    was begun to be cut off since."""

    spec: str
    place: int | None = None
    fences: int = 0
    disturbed: bool = False


class Origin(NamedTuple):
    """What a row was made in the place of: fences — what had to be cut off of it before."""

    key: str
    handle: str
    fences: frozenset[str]


@dataclass
class Pass:
    """A pass of a thread: since — the commit at which it began; missing — handles of what was not found before; ended —
    it has come to its end, and stored all."""

    since: int
    missing: frozenset[str] = frozenset()
    ended: bool = False


@dataclass
class Sent:
    """Operations on the cloud for one action of a recovery: in which passes they had an answer that says that they were
    carried out."""

    passes: list[Pass | None] = field(default_factory=list)


class HealthInvariants:
    """Takes: db, cloud, now — what is watched, and the time of the world; lived — the same without the time that was
    leapt over; changes, wanted — whether a member has to be changed by the newest revision of its stack, or is there.

    wrong — what was seen that must not be; happened — how often each story happened.
    """

    def __init__(
        self,
        db: WatchedDatabase,
        cloud: CheckedCloud,
        now: Callable[[], float],
        lived: Callable[[], float],
        changes: Callable[[Member], bool],
        wanted: Callable[[Member], bool],
    ) -> None:
        self.wrong: list[str] = []
        self.happened: Counter[str] = Counter()
        self.evidence = Evidence(now, lived, cloud.hosts.down)
        self._reader = Reader(db.raw)
        self._cloud, self._now, self._lived = cloud, now, lived
        self._changes, self._wanted = changes, wanted
        self._rows: dict[str, Member] = {}
        self._known: list[tuple[int, dict[str, Known]]] = [(0, {})]
        self._since: dict[tuple[str, str, float], float] = {}
        self._commits = 0
        self._passes: dict[greenlet.greenlet, Pass] = {}
        self._begun: dict[str, list[float]] = defaultdict(list)
        self._ladders: dict[str, Ladder] = {}
        self._origins: dict[str, Origin] = {}
        self._sent: dict[tuple[str, int, str], Sent] = defaultdict(Sent)
        self._actions: Counter[str] = Counter()
        self._well_at: dict[str, float] = {}
        self._acted_at: dict[str, float] = {}
        self._intended: dict[str, str] = {}
        self._calls: set[str] = set()
        self._joining: set[str] = set()
        self._forced: set[str] = set()
        self.keeping = KeepingInvariants(self._reader, cloud, lived, self._demand, self.happened)
        cloud.on_answer = self._saw
        cloud.on_create = self._creating
        cloud.on_operate = self._operated

    def _saw(self, kind: str, seen: Observation) -> None:
        self.evidence.saw(kind, seen)
        if kind == "server" and seen.present:
            self.keeping.saw(seen.handle, seen.properties)

    # -- passes ------------------------------------------------------------------------------------------------------

    def pass_begins(self) -> None:
        self._passes[greenlet.getcurrent()] = Pass(self._commits, frozenset(self.evidence.missing))

    def pass_ends(self) -> None:
        self._passes.pop(greenlet.getcurrent()).ended = True

    def _in_pass(self, stack_id: str) -> list[Known | None]:
        """What this thread may know of a group: all that was true since its pass began."""
        mine = self._passes.get(greenlet.getcurrent())
        since = mine.since if mine is not None else self._commits
        found: list[Known | None] = []
        for commit, groups in reversed(self._known):
            found.append(groups.get(stack_id))
            if commit <= since:
                break
        return found

    # -- commits -----------------------------------------------------------------------------------------------------

    def committed(self) -> None:
        """Compare what is stored now with what was stored before."""
        before, after = self._rows, self._reader.members()
        self._rows = after
        begun = list(self._reader.recoveries())
        for each in begun:
            found = _recovered(each, before)
            if found is not None and found.recovery is None:
                self.keeping.begins(
                    found, [known.policy for known in self._in_pass(each.stack_id) if known is not None]
                )
        for key, row in after.items():
            if before.get(key) != row:
                self._changed(before.get(key), row, before)
                self.keeping.changed(row)
        for each in begun:
            self._recovers(each, before)
        self._commits += 1
        self._learn()

    def _learn(self) -> None:
        groups = self._reader.groups()
        if groups == self._known[-1][1]:
            return
        for id, known in groups.items():
            # One that was only switched off and on counts from before.
            self._since.setdefault((id, known.spec, known.since), self._lived())
        self.happened["taken away"] += len(self._known[-1][1].keys() - groups.keys())
        self._known.append((self._commits, groups))
        self._disturb(groups)

    def _disturb(self, groups: dict[str, Known]) -> None:
        """An action of its stack, or another policy, may have ended a recovery in its middle."""
        for key, ladder in self._ladders.items():
            row = self._rows.get(key)
            known = groups.get(row.stack_id) if row is not None else None
            if known is None or known.status == Status.IN_PROGRESS or known.spec != ladder.spec:
                ladder.disturbed = True

    def called(self, token: str, handle: str) -> None:
        """No webhook is called before that was stored, and each for its own server (8)."""
        meant = self._intended.get(token)
        self._demand(meant == handle, f"a webhook is called for {handle} with {token}, which is meant for {meant}")
        self.happened["called again" if token in self._calls else "called"] += 1
        self._calls.add(token)

    def _changed(self, before: Member | None, after: Member, rows: dict[str, Member]) -> None:
        intent = read(after.intent)
        if intent.get("operation") == ActionType.WEBHOOK.lower():
            self._intended[intent["arguments"]["token"]] = after.handle
        if after.handle:
            self.evidence.born.setdefault(after.handle, self._now())  # it may have been found by its token
        if JOINED in after.reason:
            self._joining.add(after.key)
            if after.key in self._ladders:
                self._ladders[after.key].fences = 0  # it was found well, and is cut off once more when it is not
        elif not after.busy:
            self._joining.discard(after.key)
        if before is not None and before.busy and not after.busy:
            self._acted_at[after.key] = self._lived()
        sick = before is not None and before.is_sick
        if after.is_sick and not sick and after.recovery is None:  # else its recovery goes on
            self._marked(after)
        if before is not None and before.is_ill and not after.is_ill:
            self._ladders.pop(after.key, None)
            self._actions[after.key] += 1000  # what follows is another finding
            if after.stands and before is not None and before.recovery is not None:
                self._well_at[after.key] = self._now()
                self.happened["recovered in place"] += 1
        if before is None and after.replaces is not None:
            self._succeeds(after, rows.get(after.replaces))

    # -- findings ----------------------------------------------------------------------------------------------------

    def _marked(self, row: Member) -> None:
        """Nothing is called unhealthy of which no detection of its policy had reason to say so (2)."""
        if not row.handle:
            failed = row.status == Status.FAILED or read(row.marks)["unhealthy"]["before"] is not None  # made again
            self._demand(failed, f"{row.name} is being made, and is called unhealthy: {row}")
            self.happened["unmade"] += 1
            return
        mates = frozenset(each.handle for each in self._rows.values() if each.stack_id == row.stack_id and each.handle)
        known, said = self._in_pass(row.stack_id), self.evidence.about(row.handle)
        seen = [self._accused(row, each, mates) for each in known if each is not None]
        self._demand(any(seen), f"{row.name} is called unhealthy without reason: {row}, {known}, {said}")
        self.happened[f"marked by {next(filter(None, seen), 'nothing')}"] += 1

    def _accused(self, row: Member, known: Known, mates: frozenset[str]) -> str:
        policy, turns = known.policy, self._reader.turns(row.key)
        attached = self._since.get((row.stack_id, known.spec, known.since), 0.0)
        memory_s = _memory_s(policy, turns)
        found = self.evidence.accuses(policy, row.handle, mates, attached, memory_s)
        well_since = max(self.evidence.born.get(row.handle, 0.0), self._well_at.get(row.key, 0.0))
        failed = read(row.marks)["unhealthy"]["before"] is not None  # what has failed has no grace
        if found == "polling" and not failed and self._now() < well_since + policy.grace_s - NOTICED_S:
            return ""
        return found

    # -- recoveries --------------------------------------------------------------------------------------------------

    def _recovers(self, begun: Recovery, before: dict[str, Member]) -> None:
        row = _recovered(begun, before)
        if row is None:
            self._demand(False, f"nothing is there to be recovered: {begun}")
            return
        known = [each for each in self._in_pass(begun.stack_id) if each is not None]
        self.happened[begun.what] += 1
        if not row.is_sick and row.is_ill:
            self.happened["recovered because a user has marked it"] += 1
        if begun.what == FENCE and not row.is_sick:
            self.happened["cut off because a user has marked it"] += 1
            return
        if not known:
            self._demand(False, f"{begun.name} is recovered, and no policy holds for it: {begun}")
            return
        what = f"{begun} of {row}, as known: {known}"
        earlier = row.recovery
        begins = earlier is None or (earlier["rounds"] > 0 and earlier["step"] == 0 and earlier["acted_at"] is None)
        modes = {each.policy.mode for each in known}
        asked = row.converge_requested_at is not None
        in_action = any(each.status == Status.IN_PROGRESS for each in known) and self._changes(row)
        lets = asked or in_action or not begins or modes != {Mode.OBSERVE}  # who has approved it wants it to go on
        self._demand(lets, f"a policy that observes recovers: {what}")
        if in_action:
            self.happened["made anew by an update"] += 1
        elif begins:
            self._begins(begun, row, known, what)
        else:
            self._in_vain(row, known, what)
        # A pass that began before another policy was attached goes by the one before.
        may = [each for each in known if _may_begin(each.policy, begun.what)]
        first = [each for each in may if begins and each.policy.actions[0].name == begun.what]
        fitting = (*first, *may, known[0])[0]
        self._climb(begun, row, fitting, what, begins=begins, free=in_action)

    def _in_vain(self, row: Member, known: list[Known], what: str) -> None:
        """No action follows another one unless as many places as it takes have found since that it was in vain (11)."""
        acted = row.recovery is not None and row.recovery["acted_at"] is not None
        failed = row.status == Status.FAILED and row.action != Action.CHECK
        if not acted or failed or not row.handle or row.handle in self.evidence.missing or not row.is_sick:
            return
        mates = frozenset(each.handle for each in self._rows.values() if each.stack_id == row.stack_id and each.handle)
        since = self._acted_at.get(row.key, 0.0)
        found = [self.evidence.found_since(each.policy, row.handle, mates, since) for each in known]
        self._demand(
            any(found), f"no place has found since that it was in vain: {what} {self.evidence.about(row.handle)}"
        )
        self.happened["in vain as places say"] += not all(each.policy.vantage_points == () for each in known)

    def _begins(self, begun: Recovery, row: Member, known: list[Known], what: str) -> None:
        """A recovery begins: its policy lets it (3), and not too many have begun (4)."""
        lately = [at for at in self._begun[begun.stack_id] if at > self._now() - HOUR_S]
        self._begun[begun.stack_id].append(self._now())
        if row.converge_requested_at is not None:
            self.happened["approved"] += 1
            return
        self._demand({each.policy.mode for each in known} != {Mode.PROPOSE}, f"recovered without approval: {what}")
        most = any(each.unhealthy <= each.most for each in known)
        self._demand(most, f"recovered although too many are unhealthy: {what}")
        limits = [each.policy.per_hour for each in known]
        enough = all(limits) and len(lately) >= max(limits)
        self._demand(not enough, f"{len(lately)} have begun in the last hour before this one: {what}")

    def _climb(self, begun: Recovery, row: Member, known: Known, what: str, *, begins: bool, free: bool) -> None:
        """The actions follow one another in the order of the policy, each once (5)."""
        ladder = self._ladders.get(row.key)
        if ladder is None or ladder.spec != known.spec:
            ladder = self._ladders[row.key] = Ladder(known.spec, disturbed=not begins)
        names = [each.name for each in known.policy.actions]
        place = 0 if ladder.place is None else (ladder.place + 1) % len(names)
        lost = not row.handle or row.handle in self.evidence.missing
        at = (row.recovery or {}).get("step", 0)
        if at > place and Built.RECREATE in names[at : at + 1]:
            # It was not found for a while: what no operation brings back is made again at once.
            ladder.place, place = at - 1, at
        if begun.what == FENCE:
            ladder.fences += 1
            lasts = ladder.disturbed or free
            apart = names[place] in AFTER_FENCING
            self._demand(lasts or apart, f"{names[place]} comes next, for which nothing is cut off: {what}")
            self._demand(lasts or ladder.fences == 1, f"cut off for the second time: {what}")
            return
        self._actions[row.key] += 1
        if begun.what in HINTS and known.policy.by_hint and ladder.place is None and begun.what not in names[:1]:
            ladder.place = BY_HINT
            self.happened["by hint"] += 1
            return
        if ladder.disturbed or free or (begun.what == Built.RECREATE and lost):
            place = names.index(begun.what) if begun.what in names else place
        else:
            self._demand(begun.what == names[place], f"{names[place]} comes next, not {begun.what}: {what}")
        self.happened["next action"] += ladder.place is not None
        ladder.place, ladder.fences, ladder.disturbed = place, 0, False

    # -- successors --------------------------------------------------------------------------------------------------

    def _succeeds(self, new: Member, old: Member | None) -> None:
        """Something is to be made in the place of something else: remember what has to be cut off before."""
        if old is None:
            return
        now = self._rows.get(old.key)
        recovers = old.recovery is not None or (now is not None and now.recovery is not None)
        self.keeping.succeeds(new, old, recovers=recovers)
        # One that was found recovered in the same pass may be replaced by an update.
        well = now is not None and not now.is_sick and now.status == Status.COMPLETE
        sick = (old.is_sick and not well) or (now is not None and now.is_sick)
        known = self._in_pass(new.stack_id)
        wanted = [frozenset(map(str, each.policy.fencing)) if each is not None else frozenset() for each in known]
        fences = frozenset.intersection(*wanted) if sick else frozenset()
        self._origins[new.key] = Origin(old.key, old.handle, fences)
        self.happened["succeeded after a fence"] += bool(fences)

    def _creating(self, token: str) -> None:
        """No other one is made while what it replaces may run, and is not confirmed cut off (1)."""
        row = next((each for each in self._rows.values() if each.token == token), None)
        origin = self._origins.get(row.key) if row is not None else None
        mine = self._passes.get(greenlet.getcurrent())
        missed = self.evidence.missing | (mine.missing if mine is not None else frozenset())
        while origin is not None:
            missing = origin.fences - self.evidence.confirmed[origin.handle]
            there = self._cloud.things("server").get(origin.handle)
            if there is None or origin.handle in missed | self.evidence.brought_back:
                pass  # as far as the cloud tells, there is nothing to cut off
            elif missing:
                self._demand(False, f"another {row} is made, and {origin} is not cut off: {missing}, {there}")
            elif origin.fences:
                self.happened["cut off, and another one is made"] += 1
                forced = there["host"] in self._cloud.hosts.forced
                runs = "COMPUTE" in origin.fences and may_run(there, forced=forced)
                self._demand(not runs, f"another {row} is made, and {origin} runs: {there}")
            # What one that was made has replaced was judged when that was made.
            origin = self._origins.get(origin.key) if not origin.handle else None

    def _operated(self, operation: Operation, answer: Answer) -> None:
        """Of each action of a recovery one request is carried out, unless no worker could store its answer (5)."""
        self.evidence.operated(operation, answer, sent=isinstance(answer, Observation | Terminal))
        row = next((each for each in self._rows.values() if each.handle == operation.handle and each.busy), None)
        if operation.verb == FENCE:
            self._cut_off(operation, answer, row)
        if row is None or operation.verb in UNCOUNTED or row.recovery is None or row.key in self._joining:
            return
        if read(row.intent).get("operation") != operation.verb or not isinstance(answer, Observation | Terminal):
            return
        sent, mine = (
            self._sent[row.key, self._actions[row.key], operation.verb],
            self._passes.get(greenlet.getcurrent()),
        )
        again = [each for each in sent.passes if each is None or each is mine or each.ended]
        self._demand(not again, f"{operation} was carried out before, and its answer stored: {row}")
        sent.passes.append(mine)

    def _cut_off(self, operation: Operation, answer: Answer, row: Member | None) -> None:
        """No host is declared down that works, and nothing healthy is cut off since its host is called down (9)."""
        hosts, server = self._cloud.hosts, self._cloud.before[operation.handle]
        working = hosts.forced - hosts.down - self._forced
        self._demand(not working, f"{working} work, and are declared down for {operation}: {hosts.unheard}")
        self._forced |= hosts.forced
        if row is None or not row.is_sick or not isinstance(answer, Observation):
            return
        self.happened["withheld"] += not answer.properties["fenced"]
        known = [each.policy for each in self._in_pass(row.stack_id) if each is not None]
        modes = {each.type for policy in known for each in policy.detections}
        well = server.get("status") == "active" and not hosts.is_down(server["host"])
        harmed = modes == {DetectionType.HYPERVISOR} and well and answer.properties["fenced"]
        self._demand(not harmed, f"{server} is well, and {harmed} is cut off for its host: {known}")

    # -- rest --------------------------------------------------------------------------------------------------------

    def sick(self) -> list[Member]:
        """Members on which a policy has left a mark."""
        return [each for each in self._rows.values() if each.stands and (each.is_sick or each.recovery is not None)]

    def askable(self) -> frozenset[str]:
        """Handles of the members that could be asked now."""
        return frozenset(each.handle for each in self._rows.values() if each.stands and each.handle and not each.busy)

    def unsettled(self) -> list[str]:
        """What policies have yet to bring to its end: marks on members, and members that were not found healthy."""
        groups = self._known[-1][1]
        standing = [each for each in self._rows.values() if each.stack_id in groups and each.stands]
        findings, waits = self._reader.findings(), self._left_to_users()
        marked = [f"{each.name} is marked: {each.marks}" for each in self.sick() if each.key not in waits]
        unwell = [each for each in standing if findings.get(each.key) != "healthy" and each.key not in waits]
        return marked + [f"{each.name} is found {findings.get(each.key)}: {each}" for each in unwell]

    def _left_to_users(self) -> set[str]:
        """Keys of what an action that has timed out leaves to its user: what was to go, and what was not made."""
        timed_out, rows = self._reader.timed_out(), self._rows.values()
        return {each.key for each in rows if each.stack_id in timed_out and not (each.handle and self._wanted(each))}

    def check_rest(self, cloud: CheckedCloud) -> None:
        """Every member is healthy, no mark is left, and all that is checked, and nothing else, was seen in time (7)."""
        assert not self.unsettled(), "; ".join(self.unsettled())
        groups, now = self._known[-1][1], self._now()
        for stack_id, number, health_at, looked_at in self._reader.shards():
            place, known = f"{stack_id}/{number}", groups.get(stack_id)
            if known is None:
                assert health_at is None, f"{place} has no policy, and is looked at: {health_at}"
                continue
            late_s = now - (looked_at or 0.0)
            assert late_s <= known.policy.interval_s + LATE_S, f"{place} was not looked at for {late_s} s: {known}"
        left = [key for key in self._reader.findings() if self._rows[key].stack_id not in groups]
        assert not left, f"findings are left of {left}"
        self._check_places(groups, now)
        servers, left_to_users = cloud.things("server"), self._left_to_users()
        for each in self._rows.values():
            known = groups.get(each.stack_id)
            if known is not None and each.stands and each.handle in servers and each.key not in left_to_users:
                server = servers[each.handle]
                dead = sees(known.policy, server, host_down=cloud.hosts.is_down(server["host"]))
                assert not dead, f"{each} is dead, and nothing is done about it: {server}, {known}"
            cut = self.evidence.cut[each.handle] if each.handle in servers and each.stands else set()
            assert "NETWORK" not in cut, f"{each} is well, and cut off"

    def _check_places(self, groups: dict[str, Known], now: float) -> None:
        """Each place that a policy names has looked in time, and no other one looks (10)."""
        looks = {each[:3]: each[3] for each in self._reader.vantage_looks()}
        shards = {(stack_id, number) for stack_id, number, *_ in self._reader.shards()}
        for stack_id, number, place in looks:
            known = groups.get(stack_id)
            named = () if known is None else {each.name for each in known.policy.vantage_points}
            there = place in named and (stack_id, number) in shards
            assert there, f"{place} looks at {stack_id}/{number}, and need not: {known}"
        for stack_id, number in (each for each in shards if each[0] in groups):
            for point in groups[stack_id].policy.vantage_points:
                late_s = now - (looks.get((stack_id, number, point.name)) or 0.0)
                longest_s = groups[stack_id].policy.interval_s + LATE_S
                assert late_s <= longest_s, f"{point.name} has not looked at {stack_id}/{number} for {late_s} s"

    def note(self, story: str) -> None:
        """Count what happens while a recovery is under way."""
        if self.sick():
            self.happened[story] += 1

    def _demand(self, condition: object, otherwise: str) -> None:
        if not condition:
            self.wrong.append(otherwise)


def _may_begin(policy: HealthPolicy, what: str) -> bool:
    named = what in {each.name for each in policy.actions}
    return named or what == FENCE or (policy.by_hint and what in HINTS)


def _memory_s(policy: HealthPolicy, turns: int) -> float:
    """For how long what was said may count: for the looks that a member needs which was unhealthy so often lately."""
    looks = (1 << turns) * (policy.failures + policy.successes)
    asks_s = sum(each.attempts * each.pause_s for each in policy.detections)
    return looks * (policy.interval_s + asks_s) + SLACK_S


def _recovered(begun: Recovery, before: dict[str, Member]) -> Member | None:
    """The row as it was before its recovery went on."""
    mine = [each for each in before.values() if (each.stack_id, each.name) == (begun.stack_id, begun.name)]
    standing: Iterable[Any] = (each for each in mine if each.stands)
    return next(iter(standing), None)
