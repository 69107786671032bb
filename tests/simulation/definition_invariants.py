"""What must hold of rollouts of a new definition after every commit, judged from rows alone (ADR 0068).

Which members have which definition follows from the newest revision of the group's stack. What is wrong is noted, as by
`rollout_invariants`, which judges rollouts of metadata alone.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from homeostat.model.group import GroupDefinition
from homeostat.model.rollout import RolloutSettings, RolloutState, load
from homeostat.resources import groups
from tests.simulation.rollout_invariants import Member, Rolling, RolloutInvariants, reachable
from tests.simulation.watched import WatchedDatabase

_NEWEST = """SELECT s.id, s.parent_key, s.revision, r.template FROM stack s
    JOIN revision r ON r.stack_id = s.id AND r.number = s.revision AND r.kind = 'group'
    WHERE s.deleted_at IS NULL AND s.parent_key IS NOT NULL"""
_FAILED = "SELECT stack_id, name FROM resource WHERE status = 'FAILED' AND replaced_by IS NULL"
_ACTIVE = "active_metadata_updates a JOIN rollout r ON r.key = a.resource_id"
_KEPT = f"SELECT r.key FROM {_ACTIVE} WHERE r.state = 'rolled_back'"
_LEFT = """SELECT a.resource_id FROM active_metadata_updates a JOIN resource g ON g.key = a.resource_id
    LEFT JOIN rollout r ON r.key = a.resource_id WHERE g.new_metadata IS NULL AND r.subject IS NULL"""
_UNWATCHED = """SELECT r.key FROM rollout r JOIN resource g ON g.key = r.key
    WHERE g.new_metadata IS NULL AND r.subject IS NULL"""
INVARIANTS = {
    _KEPT: "after a failure members keep what is new",
    _LEFT: "members are noted of a group that has no rollout",
    _UNWATCHED: "a rollout has nothing to roll out",
}
"""Query that finds nothing -> what is wrong where it finds something."""


class Seen(NamedTuple):
    """A group as one commit left it."""

    revision: int
    group: Mapping[str, Any]
    rollout: Rolling | None
    failed: frozenset[str]

    @property
    def since(self) -> int | None:
        found: int | None = self.group.get("staged", {}).get("since")
        return found

    @property
    def given(self) -> frozenset[str]:
        """Names of the members with the newest definition."""
        wanted = self.group["resource_def"]
        return frozenset(name for name, definition in definitions(self.group).items() if definition == wanted)


class DefinitionInvariants(RolloutInvariants):
    """Judges rollouts of definitions in place of those of metadata alone."""

    def __init__(self, db: WatchedDatabase, now: Callable[[], float]) -> None:
        super().__init__(db, now)
        self._groups: dict[str, Seen] = {}
        self._before: dict[tuple[str, int], Mapping[str, Any]] = {}

    def committed(self) -> None:
        before, after = self._known, self._read()
        self._known = after
        for invariant, broken in INVARIANTS.items():
            found = self._db.raw.execute(invariant).fetchall()
            self._demand(not found, f"{broken}: {found}")
        for key, other in after.rollouts.items():
            one = before.rollouts.get(key)
            if other.subject is not None:
                self._happens(one if one is not None and one.subject == other.subject else None, other)
        seen = self._look()
        for stack_id, each in seen.items():
            former = self._groups.get(stack_id)
            if former is not None and each.revision != former.revision:
                self._judge(stack_id, former, each)
        self._groups = seen

    def staged(self) -> Iterator[tuple[str, Seen]]:
        """Yield the groups of which some members are to get a new definition, by the ids of their stacks."""
        return ((stack_id, each) for stack_id, each in self._groups.items() if each.since is not None)

    def _happens(self, before: Rolling | None, after: Rolling) -> None:
        if before is None:
            self.happened["begun"] += 1
            return
        self.happened["several steps"] += after.step > before.step > 0
        self.happened["approved"] += after.approved > before.approved
        if before.state != after.state:
            self._demand(not RolloutState(before.state).ended, f"one that has ended went on: {before} {after}")
            self.happened[after.state] += 1

    # -- groups ------------------------------------------------------------------------------------------------------

    def _look(self) -> dict[str, Seen]:
        failed: dict[str, set[str]] = {}
        for stack_id, name in self._db.raw.execute(_FAILED):
            failed.setdefault(stack_id, set()).add(name)
        rolling = {key: each for key, each in self._known.rollouts.items() if each.subject is not None}
        return {
            stack_id: Seen(revision, _loaded(template), rolling.get(key), frozenset(failed.get(stack_id, ())))
            for stack_id, key, revision, template in self._db.raw.execute(_NEWEST)
        }

    def _judge(self, stack_id: str, before: Seen, after: Seen) -> None:
        """Judge a new revision of a group."""
        if after.since is not None and after.since != before.since:
            self._begin(stack_id, before, after)
        elif after.since is not None:
            self._next_step(before, after)
        elif before.since is not None and after.rollout is not None and after.rollout.subject == before.since:
            self._end(stack_id, before, after, after.rollout)

    def _begin(self, stack_id: str, before: Seen, after: Seen) -> None:
        """When a new definition comes every member keeps what it has, and what it goes back to is known."""
        assert after.since is not None
        first = before.group if before.since is None else self._before[stack_id, before.since]
        self._before[stack_id, after.since] = first
        had, has = definitions(before.group), definitions(after.group)
        changed = [name for name in had.keys() & has.keys() if had[name] != has[name]]
        self._demand(not changed, f"{changed} change although no step has begun: {before} {after}")
        given = [name for name in has.keys() - had.keys() if has[name] != first["resource_def"]]
        self._demand(not given, f"{given} are new, and do not have the old definition: {before} {after}")

    def _next_step(self, before: Seen, after: Seen) -> None:
        """No more members have the new definition than the step allows, and the step before has passed its gates."""
        came = (after.given - before.given) & definitions(before.group).keys()
        if not came:
            return
        rollout, reached = before.rollout, after.rollout
        if rollout is None or reached is None:
            self._demand(False, f"{came} get the new definition without a rollout: {before} {after}")
            return
        self.happened[f"reached {rollout.how['pattern']}"] += 1
        of_this = rollout.subject == before.since and rollout.state == RolloutState.RUNNING
        self._demand(of_this, f"{came} get the new definition, and the rollout does not run: {before} {after}")
        settings, total = load(rollout.how), int(after.group["count"])
        allowed = max(reachable(settings.steps, each, total) for each in (rollout.active, len(before.given)))
        # Members that have failed come first, all of them.
        allowed += len(came & before.failed)
        self._demand(len(after.given) <= allowed, f"{len(after.given)} have it, {allowed} may: {before} {after}")
        if rollout.step and reached.step == rollout.step:
            left = [name for name, each in reached.members.items() if each.step == rollout.step]
            self._demand(not left, f"{came} get the new definition in a step that has members: {before} {after}")
            self.happened["repeated"] += 1
        elif rollout.step:
            self._passed_gates(rollout, reached, settings)

    def _passed_gates(self, before: Rolling, after: Rolling, settings: RolloutSettings) -> None:
        """All gates of a step said yes. Reports of members that were made again, which came before their ids were
        known, count as the next step begins."""
        now, step = self._now_of(), before.step
        what = f"{before} {after} at {now}"
        noted = after.members or before.members
        asked = [each for each in noted.values() if each.step == step]
        late = settings.time_s is not None and before.step_at + settings.time_s <= now
        heard = all(each.status for each in asked) or late
        self._demand(heard or not settings.gates, f"the next step has not waited for reports: {what}")
        self.happened["gate: condition"] += bool(settings.gates)
        failed, of_step = _failures(noted.values()), _failures(asked)
        self._demand(failed <= settings.failures_max + before.forgiven, f"too many have failed: {what}")
        most = settings.failures_of_step_max + before.forgiven
        self._demand(of_step <= most, f"too many of the step have failed: {what}")
        self.happened["went on with failures"] += bool(failed)
        if settings.bake_s:
            baked = before.reported_at is not None and now >= before.reported_at + settings.bake_s - 1e-6
            self._demand(baked, f"the step has not baked: {what}")
            self.happened["gate: bake time"] += 1
        self._demand(not before.alarm, f"an alarm was not heard: {what}")
        if settings.checks:
            answer = self._answer(before)
            self._demand(answer.startswith("2"), f"the URLs have not said yes, but {answer!r}: {what}")
            self.happened["gate: checks"] += 1
        if settings.approval and after.step > step:
            self._demand(before.approved >= step, f"nobody has approved the step: {what}")
            self.happened["gate: approval"] += 1

    def _end(self, stack_id: str, before: Seen, after: Seen, rollout: Rolling) -> None:
        """After a failed gate all have exactly the definition that they had before; after a success all the new one."""
        has = definitions(after.group)
        if rollout.state == RolloutState.ROLLED_BACK:
            assert before.since is not None
            first = self._before[stack_id, before.since]
            had, new = definitions(first), before.group["resource_def"]
            wrong = [name for name in had.keys() & has.keys() if had[name] != has[name]]
            self._demand(not wrong, f"{wrong} do not have the old definition again: {before} {after}")
            kept = [name for name in has.keys() - had.keys() if has[name] == new != first["resource_def"]]
            self._demand(not kept, f"{kept} keep the new definition: {before} {after}")
            self.happened["back"] += bool(before.given)
        elif rollout.state == RolloutState.SUCCEEDED:
            self._demand("earlier" not in after.group, f"some members have the old definition: {before} {after}")
            if before.rollout is not None and " by a user" not in rollout.reason:
                self._passed_gates(before.rollout, rollout, load(rollout.how))
        elif rollout.state == RolloutState.ABORTED:
            self._demand(definitions(before.group) == has, f"members change although it was aborted: {before} {after}")


def _failures(members: Iterable[Member]) -> int:
    return sum(each.status == "FAILURE" for each in members)


@lru_cache(maxsize=64)
def _loaded(template: str) -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads(template)
    return found


def definitions(stored: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Definitions of the members of a group, by their names."""
    group = GroupDefinition.decoded(stored)
    return dict(groups.definitions_between(group, 0, groups.end_of(group)))
