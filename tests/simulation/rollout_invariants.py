"""What must hold of rollouts after every commit, judged from rows alone, and which stories have happened (RU3 to
RU8).

The invariants work out by themselves what a step may reach and when the next one may begin. What is wrong is noted, as
by the watcher.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import greenlet

from homeostat.model.rollout import CANARY, CANARY_STEPS, GOING_ON, IMMEDIATE, OnFailure, RolloutState
from homeostat.model.status import Action, Status
from homeostat.resources.nested import POLICY
from tests.simulation.watched import WatchedDatabase

GROUPS = ("OS::Heat::ResourceGroup", "OS::Heat::AutoScalingGroup")
"""Types of groups with metadata in these worlds."""
PATTERN = "metadata_update_pattern"
FRESH = (Action.INIT, Action.CREATE, Action.ADOPT)
"""Actions of a group that was never complete, unless it is now: its metadata change at once."""
EPSILON = 1e-6

_ROLLOUTS = """SELECT key, stack_id, members, state, settings, step, active, target, started_at, step_at, reported_at,
    approved, forgiven, alarm, reason, subject FROM rollout"""
_ACTIVE = "SELECT resource_id, instance_id, step, status, reported FROM active_metadata_updates"
_GROUPS = f"""SELECT key, handle, action, status, metadata, new_metadata, properties FROM resource
    WHERE type IN ({", ".join(map(repr, GROUPS))})"""
_MEMBERS = """SELECT handle FROM resource
    WHERE stack_id = ? AND handle <> '' AND replaced_by IS NULL AND action <> 'DELETE'"""
_STACK = "SELECT lock IS NOT NULL OR (suspended AND action <> 'DELETE') FROM stack WHERE id = ?"
_HANDLE = "SELECT count(*) FROM record WHERE id = ?"
_SIGNALS = "SELECT count(DISTINCT json_extract(object, '$.id')) FROM signal WHERE record_id = ?"
_SIZE = "SELECT size FROM stack WHERE id = ?"
_WANTED = """SELECT r.template FROM resource g JOIN revision r ON r.stack_id = g.stack_id AND r.number = g.revision
    WHERE g.key = ?"""


class Member(NamedTuple):
    """A member with new metadata; status — what it has reported, "" for nothing yet."""

    step: int
    status: str
    reported: int


class Group(NamedTuple):
    """The row of a group; metadata, new_metadata and properties are JSON."""

    key: str
    handle: str
    action: str
    status: str
    metadata: str | None
    new_metadata: str | None
    properties: str


class Rolling(NamedTuple):
    """A rollout as one commit left it: its row, and the members that have what is new."""

    key: str
    stack_id: str
    child: str
    state: str
    settings: str
    step: int
    active: int
    target: int
    started_at: float
    step_at: float
    reported_at: float | None
    approved: int
    forgiven: int
    alarm: str
    reason: str
    subject: int | None
    members: Mapping[str, Member]

    @property
    def goes_on(self) -> bool:
        return self.state in GOING_ON

    @property
    def how(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.settings)
        return found

    def of_step(self) -> dict[str, Member]:
        return {name: each for name, each in self.members.items() if each.step == self.step}

    def failed(self) -> int:
        return sum(each.status == "FAILURE" for each in self.members.values())


class Committed(NamedTuple):
    """What is stored: rollouts and groups by key, members with new metadata by the key of their group."""

    rollouts: Mapping[str, Rolling]
    groups: Mapping[str, Group]
    active: Mapping[str, Mapping[str, Member]]


class RolloutInvariants:
    """Takes: db, now — the database, and the time of the world.

    wrong — what was seen that must not be; happened — how often each story happened in this world.
    """

    def __init__(self, db: WatchedDatabase, now: Callable[[], float]) -> None:
        self.wrong: list[str] = []
        self.happened: Counter[str] = Counter()
        self._answers: dict[greenlet.greenlet, tuple[str, Mapping[str, int]]] = {}
        self._db = db
        self._now_of = now
        self._known = Committed({}, {}, {})
        self._sizes: dict[str, int] = {}
        self._old: dict[str, Group | None] = {}
        self._failed_last: set[str] = set()
        self._there: dict[str, set[str]] = {}

    # -- commits -----------------------------------------------------------------------------------------------------

    def committed(self) -> None:
        """Compare what is stored now with what was stored before."""
        before, after = self._known, self._read()
        self._known = after
        for key, members in after.active.items():
            self._reports(before.rollouts.get(key), after.rollouts.get(key), before.active.get(key, {}), members)
        for key in sorted(before.rollouts.keys() | after.rollouts.keys()):
            one, other = before.rollouts.get(key), after.rollouts.get(key)
            if other is not None:
                self._rollout(one, other, after.groups.get(key))
            elif one is not None:
                self._gone(one, after.active.get(key, {}), before.groups.get(key), after.groups.get(key))
        for key, group in after.groups.items():
            self._group(before.groups.get(key), group, before.rollouts.get(key), after)

    def _read(self) -> Committed:
        active: dict[str, dict[str, Member]] = {}
        for key, name, *rest in self._db.raw.execute(_ACTIVE):
            active.setdefault(key, {})[name] = Member(*rest)
        rows = self._db.raw.execute(_ROLLOUTS).fetchall()
        rolling = {row[0]: Rolling._make([*row, active.get(row[0], {})]) for row in rows}
        groups = {row[0]: Group(*row) for row in self._db.raw.execute(_GROUPS)}
        return Committed(rolling, groups, active)

    def under_way(self) -> list[Rolling]:
        """Rollouts that go on and have reached members."""
        return [each for each in self._known.rollouts.values() if each.goes_on and each.members]

    def going_on(self) -> list[Rolling]:
        return [each for each in self._known.rollouts.values() if each.goes_on]

    def asked(self, thread: greenlet.greenlet, answer: str) -> None:
        """The URLs of a rollout have answered a thread of a worker."""
        self._answers[thread] = answer, {each.key: each.step for each in self.going_on()}

    def _answer(self, rolling: Rolling) -> str:
        """What they said last to this thread about the step of this rollout; "" for nothing."""
        answer, steps = self._answers.get(greenlet.getcurrent(), ("", {}))
        return answer if steps.get(rolling.key) == rolling.step else ""

    def note(self, story: str) -> None:
        """Count what happens while a rollout is under way."""
        if self.under_way():
            self.happened[story] += 1

    # -- one rollout -------------------------------------------------------------------------------------------------

    def _rollout(self, before: Rolling | None, after: Rolling, group: Group | None) -> None:
        if before is None or after.step < before.step or after.started_at != before.started_at:
            self._begun(before, after, group)
            before = after._replace(members={})
        if not after.step:
            self._demand(not after.members, f"a rollout begins, and members have new metadata already: {after}")
        there = self._members_of(after.child) & after.members.keys()
        self._demand(len(there) <= after.target, f"more members have the new metadata than may: {after}")
        came = after.members.keys() - before.members.keys()
        went = before.members.keys() - after.members.keys()
        if came:
            self._held(before, after)
            self.happened[f"reached {self._kind(after, group)}"] += 1
        if went and after.goes_on:
            left = went & self._members_of(after.child)
            self._demand(not left, f"{left} lost the new metadata in the middle of a rollout: {before} {after}")
        if after.step > before.step:
            self._step(before, after)
        if after.goes_on and self._sizes.setdefault(after.key, self._size(after.child)) != self._size(after.child):
            self._sizes[after.key] = self._size(after.child)
            self.happened["scaled in the middle"] += bool(after.members)
        if before.state != after.state:
            self._turn(before, after)
        if after.approved > before.approved:
            self.happened["approved"] += 1

    def _begun(self, before: Rolling | None, after: Rolling, group: Group | None) -> None:
        self._demand(not after.members, f"a rollout begins, and members have new metadata already: {after}")
        self._demand(after.step == 0, f"a rollout begins in the middle: {after}")
        self._sizes[after.key] = self._size(after.child)
        self._there[after.key] = self._members_of(after.child)
        self._old[after.key] = group
        if group is not None:
            self._demand(after.how["steps"] == self._steps(group), f"it begins with other steps: {after} {group}")
        if before is not None and before.goes_on:
            self.happened["corrected in the middle"] += bool(before.members)
        self.happened["begun"] += 1

    def _step(self, before: Rolling, after: Rolling) -> None:
        """The next step has begun: all gates of the one before said yes, and it reaches no more than it may."""
        self._demand(after.step == before.step + 1, f"a step was left out: {before} {after}")
        self._demand(before.state == RolloutState.RUNNING, f"a rollout that did not run has gone on: {before} {after}")
        if before.step:
            self._passed(before, after)
            self.happened["several steps"] += 1
        allowed = reachable(before.how["steps"], before.active, self._size(after.child))
        self._demand(after.target <= allowed, f"the step may reach {allowed} members: {before} {after}")

    def _passed(self, before: Rolling, after: Rolling) -> None:
        """All gates of a step said yes."""
        how, now = before.how, self._now_of()
        what = f"{before} {after} at {now}"
        asked = {name: each for name, each in before.of_step().items() if name in after.members}
        waiting = sum(not each.status for each in asked.values())
        if how["gates"]:
            self.happened["gate: conditions" if len(how["gates"]) > 1 else "gate: condition"] += 1
            late = now >= before.step_at + _time_of(how) - EPSILON
            enough = sum(each.status == "SUCCESS" for each in asked.values()) >= _share(how, len(asked))
            self._demand(not waiting or (late and enough), f"the next step has not waited for reports: {what}")
            self.happened["went on without all"] += bool(waiting)
        failed = sum(each.status == "FAILURE" for each in asked.values())
        per_step = how["failures_max"] if how["failures_max_per_step"] is None else how["failures_max_per_step"]
        self._demand(before.failed() <= how["failures_max"] + before.forgiven, f"too many have failed: {what}")
        self._demand(failed <= per_step + before.forgiven, f"too many of the step have failed: {what}")
        self.happened["went on with failures"] += bool(before.failed())
        if how["bake_s"]:
            baked = before.reported_at is not None and now >= before.reported_at + how["bake_s"] - EPSILON
            self._demand(baked, f"the step has not baked: {what}")
            self.happened["gate: bake time"] += 1
        self._demand(not before.alarm, f"an alarm was not heard: {what}")
        self.happened["gate: alarm"] += bool(how["alarms"])
        if how["checks"]:
            answer = self._answer(before)
            self._demand(answer.startswith("2"), f"the URLs have not said yes, but {answer!r}: {what}")
            self.happened["gate: checks"] += 1
        if how["approval"] and after.step > before.step:
            self._demand(before.approved >= before.step, f"nobody has approved the step: {what}")
            self.happened["gate: approval"] += 1

    def _steps(self, group: Group) -> list[str]:
        """The steps that a group says."""
        properties = json.loads(group.properties)
        section = (properties.get(POLICY) or {}).get("rollout") or {}
        return list(section.get("steps") or (CANARY_STEPS if properties.get(PATTERN) == CANARY else ()))

    def _held(self, before: Rolling, after: Rolling) -> None:
        """No member gets new metadata while the stack is locked or suspended, or its rollout does not run."""
        for id in (after.stack_id, after.child):
            (held,) = self._db.raw.execute(_STACK, (id,)).fetchone()
            self._demand(not held, f"members get new metadata in a stack that is locked or suspended: {after}")
        self._demand(before.state == RolloutState.RUNNING, f"a rollout that did not run has gone on: {before} {after}")

    # -- turns -------------------------------------------------------------------------------------------------------

    def _turn(self, before: Rolling, after: Rolling) -> None:
        """It was paused, held, resumed, or has ended."""
        one, other = RolloutState(before.state), RolloutState(after.state)
        self._demand(not one.ended, f"a rollout that has ended went on: {before} {after}")
        by_user = " by a user" in after.reason
        if other is RolloutState.PAUSED or (other is RolloutState.RUNNING and not by_user):
            self._demand(by_user and other is RolloutState.PAUSED, f"nobody has asked for it: {before} {after}")
            self.happened["paused"] += 1
        elif other is RolloutState.RUNNING:
            self.happened[f"resumed when {one}"] += 1
        elif by_user:
            self.happened[f"{other} by a user"] += 1
        elif "is cancelled" in after.reason:
            self.happened["cancelled"] += 1
        elif other is RolloutState.SUCCEEDED:
            self._finished(before, after)
        else:
            self._refused(before, after)
        if other is RolloutState.ROLLED_BACK:
            self._demand(not after.members, f"after a failure members keep the new metadata: {after}")
            self._failed_last.add(after.key)
        elif other is RolloutState.ABORTED:
            changed = (after.members.keys() ^ before.members.keys()) & self._members_of(after.child)
            self._demand(not changed, f"an end changes members: {before} {after}")
            self._failed_last.add(after.key)

    def _finished(self, before: Rolling, after: Rolling) -> None:
        """All members have the new metadata, and have reported: those that came meanwhile get the group's."""
        self._demand(before.state == RolloutState.RUNNING, f"a rollout that did not run has ended: {before} {after}")
        if before.step:
            self._passed(before, after)
        missed = (self._members_of(after.child) & self._there[after.key]) - after.members.keys()
        self._demand(not missed, f"{missed} were left out: {before} {after}")
        self._counted(before, after)
        self.happened["succeeded"] += 1
        if after.key in self._failed_last and before.step:
            self.happened["repaired by a corrected template"] += 1

    def _counted(self, before: Rolling, after: Rolling) -> None:
        """What members have reported counts for each condition that waits for so many."""
        succeeded = sum(each.status == "SUCCESS" for each in after.members.values())
        for gate in before.how["gates"]:
            (there,) = self._db.raw.execute(_HANDLE, (gate["handle"],)).fetchone()
            (signals,) = self._db.raw.execute(_SIGNALS, (gate["handle"],)).fetchone()
            wanted = min(gate["count"], succeeded)
            what = f"{signals} of {wanted} reports count for {gate['condition']}: {before} {after}"
            self._demand(not there or signals >= wanted, what)
            self.happened["counted for a condition"] += bool(there and gate["count"] > 1)

    def _refused(self, before: Rolling, after: Rolling) -> None:
        """A gate said no, and what follows is what the template says."""
        how, now = before.how, self._now_of()
        expected = {
            OnFailure.ROLLBACK: RolloutState.ROLLED_BACK,
            OnFailure.HOLD: RolloutState.HELD,
            OnFailure.ABORT: RolloutState.ABORTED,
        }[how["on_failure"]]
        self._demand(after.state == expected, f"after a failure it is to be {expected}: {after}")
        step = before.of_step().values()
        per_step = how["failures_max"] if how["failures_max_per_step"] is None else how["failures_max_per_step"]
        failed = sum(each.status == "FAILURE" for each in step)
        waiting = sum(not each.status for each in step)
        late = now >= before.step_at + _time_of(how) - EPSILON
        short = sum(each.status == "SUCCESS" for each in step) < _share(how, len(step))
        causes = {
            "failures": before.failed() > how["failures_max"] + before.forgiven or failed > per_step + before.forgiven,
            "time": bool(how["gates"] and waiting and late and short),
            "alarm": bool(before.alarm),
            "checks": bool(how["checks"]) and not self._answer(before).startswith("2"),
        }
        self._demand(any(causes.values()), f"no gate said no at {now}: {before} {after}")
        for cause in (name for name, found in causes.items() if found):
            self.happened[f"refused: {cause}"] += 1
        self.happened[f"on failure: {how['on_failure']}"] += 1

    def _gone(self, before: Rolling, members: Mapping[str, Member], was: Group | None, group: Group | None) -> None:
        """The row of a rollout is gone: only what was aborted leaves members with new metadata."""
        kept = members and before.state != RolloutState.ABORTED
        self._demand(not kept, f"members keep new metadata without a rollout: {before} {members}")
        if group is None or before.state != RolloutState.ROLLED_BACK:
            return
        corrected = was is not None and group.new_metadata != was.new_metadata
        what = f"after a failure there are still new metadata: {before} {group}"
        self._demand(group.new_metadata is None or corrected, what)
        begun = self._old[before.key]
        old = begun.metadata if begun is not None else None
        same = group.metadata == old or self._is_immediate(group)
        self._demand(same, f"after a failure members have other metadata than {old}: {group}")

    # -- members and groups ------------------------------------------------------------------------------------------

    def _reports(
        self,
        before: Rolling | None,
        after: Rolling | None,
        old: Mapping[str, Member],
        new: Mapping[str, Member],
    ) -> None:
        """What a member has reported is not forgotten, and a failure stays one."""
        if before is None or after is None or before.started_at != after.started_at or after.step < before.step:
            return
        full = (1 << len(after.how["gates"])) - 1
        for name, each in new.items():
            was = old.get(name)
            if was is None or was == each:
                continue
            kept = was.status != "FAILURE" or each.status == "FAILURE"
            self._demand(kept and (not was.status or each.status != ""), f"{name} went from {was} to {each}")
            kept = before.how["gates"] != after.how["gates"] or each.reported & was.reported == was.reported
            self._demand(kept, f"reports of {name} are lost: {was} {each}")
            self._demand(each.step == was.step, f"{name} is in another step: {was} {each}")
            passed = each.status != "SUCCESS" or each.reported == full
            self._demand(passed, f"{name} has not reported to all conditions: {each} {after}")
            if each.status == "SUCCESS" and each.step < after.step:
                self.happened["reported late"] += 1
            self.happened["reported after a failure"] += was.status == "FAILURE"
            if was.status == "SUCCESS" and each.status == "FAILURE":
                self.happened["failed after a success"] += 1

    def _group(self, before: Group | None, after: Group, rolling: Rolling | None, now: Committed) -> None:
        """The metadata of a group change by a rollout that has succeeded, or at once where its pattern says so."""
        if after.new_metadata is None:
            left = now.active.get(after.key)
            self._demand(not left, f"members have new metadata of a group that has none: {after} {left}")
            self._demand(after.key not in now.rollouts, f"a rollout has nothing to roll out: {after}")
        if before is None or before.metadata == after.metadata:
            return
        if self._is_immediate(after):
            self.happened["changed at once"] += 1
            return
        fresh = not before.handle or (before.action in FRESH and before.status != Status.COMPLETE)
        if fresh or after.metadata in (None, "null"):
            return
        done = rolling is not None and rolling.state == RolloutState.SUCCEEDED
        self._demand(done, f"members have got new metadata at once: {before} {after} {rolling}")
        self._demand(after.metadata == before.new_metadata, f"members have got other metadata: {before} {after}")
        self._failed_last.discard(after.key)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _is_immediate(self, group: Group) -> bool:
        """Does the revision to which it is being changed, or was, give new metadata to all members at once? Other
        properties of the group are stored once its members are changed."""
        row = self._db.raw.execute(_WANTED, (group.key,)).fetchone()
        resources = json.loads(row[0]).get("resources", {}) if row is not None else {}
        named = self._db.raw.execute("SELECT name FROM resource WHERE key = ?", (group.key,)).fetchone()
        properties = resources.get(named[0], {}).get("properties", {})
        return bool(properties.get(PATTERN, IMMEDIATE) == IMMEDIATE)

    def _kind(self, rolling: Rolling, group: Group | None) -> str:
        properties = json.loads(group.properties) if group is not None else {}
        custom = bool(((properties.get(POLICY) or {}).get("rollout") or {}).get("steps"))
        return f"{rolling.how['pattern']}{' with own steps' if custom else ''}"

    def _members_of(self, stack_id: str) -> set[str]:
        return {handle for (handle,) in self._db.raw.execute(_MEMBERS, (stack_id,))}

    def _size(self, stack_id: str) -> int:
        row = self._db.raw.execute(_SIZE, (stack_id,)).fetchone()
        return int(row[0]) if row is not None else 0

    def _demand(self, condition: object, otherwise: str) -> None:
        if not condition:
            self.wrong.append(otherwise)


def reachable(steps: Iterable[str], active: int, size: int) -> int:
    """How many members of so many may have what is new after the step that follows on `active` ones."""
    sizes = [_part(each, size) for each in steps]
    if not sizes:
        return min(active + 1, size)
    return min([each for each in sizes if each > active], default=size)


def _part(step: str, total: int) -> int:
    if not step.endswith("%"):
        return min(int(step), total)
    return min(max(math.ceil(Fraction(step.removesuffix("%")) * total / 100), 1), total)


def _time_of(how: Mapping[str, Any]) -> float:
    """Seconds that the members of a step have."""
    if how["progress_s"]:
        return float(how["progress_s"])
    return min((float(each["timeout_s"]) for each in how["gates"]), default=600.0)


def _share(how: Mapping[str, Any], members: int) -> int:
    """How many of so many members have to report success."""
    return math.ceil(Fraction(str(how["success_share"])) * members)
