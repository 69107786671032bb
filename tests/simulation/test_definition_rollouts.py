"""The ring with rollouts of a new definition: members change in steps while workers die and users change their minds.

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import copy
import json
import os
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from typing import Any, NamedTuple

import pytest

from homeostat.api.services.stacks import StackService
from homeostat.model.rollout import RolloutSettings, load
from homeostat.model.status import Status
from homeostat.resources import groups
from tests.simulation.defining import CONDITION, HANDLE, KEPT, Roller, RollingWorld
from tests.simulation.templates import GROUP, DesiredStack, Resources

SEEDS = int(os.environ.get("HOMEOSTAT_SEEDS", "16"))
FIRST = int(os.environ.get("HOMEOSTAT_FIRST_SEED", "0"))
ROUNDS, STEPS = 6, 200
"""How often each stack gets another definition in the end, and the steps before each time."""
NEWEST = """SELECT s.id, s.parent_key, s.revision, r.template FROM stack s
    JOIN revision r ON r.stack_id = s.id AND r.number = s.revision AND r.kind = 'group'
    WHERE s.deleted_at IS NULL AND s.parent_key IS NOT NULL"""
ROLLOUTS = "SELECT key, subject, state, step, step_at, active, settings FROM rollout WHERE subject IS NOT NULL"
FAILED = "SELECT stack_id, name FROM resource WHERE status = 'FAILED' AND replaced_by IS NULL"
SILENT = "SELECT step, count(*) FROM active_metadata_updates WHERE resource_id = ? AND status = '' GROUP BY step"


LEFT = """SELECT a.resource_id FROM active_metadata_updates a JOIN resource g ON g.key = a.resource_id
    LEFT JOIN rollout r ON r.key = a.resource_id WHERE g.new_metadata IS NULL AND r.subject IS NULL"""
UNWATCHED = """SELECT r.key FROM rollout r JOIN resource g ON g.key = r.key
    WHERE g.new_metadata IS NULL AND r.subject IS NULL"""
LAWS = {
    KEPT: "after a failure members keep what is new",
    LEFT: "members are noted of a group that has no rollout",
    UNWATCHED: "a rollout has nothing to roll out",
}


class Definer(Roller):
    """Its groups mostly get new definitions step by step."""

    def mutate(self, desired: DesiredStack) -> DesiredStack:
        changed = super().mutate(desired)
        group = changed.resources.get("r0")
        if group is not None and group["type"] == GROUP and self._rng.random() < 0.7:
            group["properties"]["resource_def"] = self._member()
        _fit(changed.resources)
        return changed

    def grow(self) -> DesiredStack:
        desired = super().grow()
        _fit(desired.resources)
        return desired

    def _group(self) -> dict[str, Any]:
        group = super()._group()
        if self._rng.random() < 0.8:
            group["properties"]["metadata_update_pattern"] = self._rng.choice(("rolling", "canary"))
            group["update_policy"]["rollout"]["applies_to"] = self._rng.choice(("definition", "both"))
        return group

    def defined(self) -> dict[str, Any]:
        group = self._group()
        group["properties"]["count"] = self._rng.randint(2, 6)
        return group

    def member(self) -> dict[str, Any]:
        return self._member()

    def gate(self) -> Resources:
        properties = {"handle": {"get_resource": "r1"}, "timeout": self._rng.choice((60, 600)), "count": 1}
        return {"r1": {"type": HANDLE}, "r2": {"type": CONDITION, "properties": properties, "depends_on": ["r0"]}}


def _fit(resources: Resources) -> None:
    """Take out of groups what says in another way how members change, which is refused."""
    for each in resources.values():
        rollout = each.get("update_policy", {}).get("rollout", {}) if each["type"] == GROUP else {}
        if rollout.get("applies_to", "metadata") != "metadata":
            each["update_policy"].pop("rolling_update", None)
            if each["properties"].get("metadata_update_pattern", "immediate") == "immediate":
                each["properties"]["metadata_update_pattern"] = "canary"


class Rolling(NamedTuple):
    """A rollout as one commit left it, without its key."""

    subject: int
    state: str
    step: int
    step_at: float
    active: int
    settings: RolloutSettings
    silent: Mapping[int, int]


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
        wanted, end = self.group["resource_def"], groups.names_end(self.group["count"], self.group["skip"])
        found = groups.definitions_between(self.group, 0, end)
        return frozenset(name for name, definition in found if definition == wanted)


class DefiningWorld(RollingWorld):
    """given — steps by which members got a new definition; back — groups that got the old one back."""

    laws = LAWS

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._gardener = self._definer = Definer(self.rng, nested=True)
        self.given = 0
        self.back = 0
        self._seen: dict[str, Seen] = {}
        self._before: dict[tuple[str, int], Mapping[str, Any]] = {}
        self._looked_at = -1

    # -- users -------------------------------------------------------------------------------------------------------

    def happen(self) -> None:
        """After the trouble of all rings users change the definitions of groups which nothing else holds back."""
        super().happen()
        self.replace_dead()
        for _ in range(2):
            self._create()
        for _ in range(ROUNDS):
            for _ in range(STEPS):
                self._go_on()
            self.replace_dead()
            self._free()
            for stack in self.all_stacks():
                busy = stack.status == Status.IN_PROGRESS and self.rng.random() < 0.7
                if stack.deleted_at is None and stack.id in self._desired and not busy:
                    self._redefine(stack.id)

    def _go_on(self) -> None:
        rng = self.rng
        self._end_outages()
        if rng.random() < 0.02:
            rng.choice((self._kill, self._die_inside, self._freeze))()
        if rng.random() < 0.1:
            self.replace_dead()
        if rng.random() < 0.3:
            self._report()
        if rng.random() < 0.02:
            self._steer()
        if not self.step():
            self._pass_time()
        self.clock.time += rng.choice((0.0, 0.0, 0.01, 0.1, 1.0))

    def _redefine(self, stack_id: str) -> None:
        """A user wants nothing but a group, with another definition of its members."""
        desired = copy.deepcopy(self._desired[stack_id])
        group, gated = desired.resources.get("r0", {}), "r1" in desired.resources
        if group.get("type") != GROUP or self.rng.random() < 0.3:
            group, gated = self._definer.defined(), self.rng.random() < 0.6
        group["properties"]["resource_def"] = self._definer.member()
        group.pop("depends_on", None)
        desired.held = {}
        desired.resources = {"r0": group, **(self._definer.gate() if gated else {})}
        _fit(desired.resources)

        def update(stack_service: StackService) -> None:
            stack_service.update(stack_id, desired.request())
            self._desired[stack_id] = desired

        self._request(update, f"redefine {stack_id[:6]} {desired}")

    # -- laws --------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        super().check()
        if self._looked_at == self.watcher.commits:
            return
        self._looked_at = self.watcher.commits
        now_seen = self._look()
        for stack_id, after in now_seen.items():
            before = self._seen.get(stack_id)
            if before is not None and after.revision != before.revision:
                self._judge(stack_id, before, after)
        self._seen = now_seen

    def _look(self) -> dict[str, Seen]:
        failed: dict[str, set[str]] = {}
        for stack_id, name in self.db.raw.execute(FAILED).fetchall():
            failed.setdefault(stack_id, set()).add(name)
        rolling = {}
        for key, subject, state, step, step_at, active, settings in self.db.raw.execute(ROLLOUTS).fetchall():
            silent = dict(self.db.raw.execute(SILENT, (key,)).fetchall())
            rolling[key] = Rolling(subject, state, step, step_at, active, load(json.loads(settings)), silent)
        return {
            stack_id: Seen(revision, json.loads(template), rolling.get(key), frozenset(failed.get(stack_id, ())))
            for stack_id, key, revision, template in self.db.raw.execute(NEWEST).fetchall()
        }

    def _judge(self, stack_id: str, before: Seen, after: Seen) -> None:
        if after.since is not None and after.since != before.since:
            self._judge_begin(stack_id, before, after)
        elif after.since is not None:
            self._judge_step(before, after)
        elif before.since is not None and after.rollout is not None and after.rollout.subject == before.since:
            self._judge_end(stack_id, before, after, after.rollout)

    def _judge_begin(self, stack_id: str, before: Seen, after: Seen) -> None:
        """When a new definition comes every member keeps what it has, and what it goes back to is known."""
        assert after.since is not None
        first = before.group if before.since is None else self._before[stack_id, before.since]
        self._before[stack_id, after.since] = first
        had, has = _definitions(before.group), _definitions(after.group)
        changed = [name for name in had.keys() & has.keys() if had[name] != has[name]]
        assert not changed, f"{changed} have another definition although no step has begun: {before} {after}"
        new = after.group["resource_def"]
        assert not [name for name in has.keys() - had.keys() if has[name] == new], f"new ones have it: {before} {after}"

    def _judge_step(self, before: Seen, after: Seen) -> None:
        """No more members have the new definition than the step allows, and the step before has passed its gates."""
        came = (after.given - before.given) & _definitions(before.group).keys()
        if not came:
            return
        self.given += 1
        rollout = before.rollout
        assert rollout is not None, f"{came} have it without a rollout: {before} {after}"
        assert (rollout.subject, rollout.state) == (before.since, "running"), f"{came} have it: {before} {after}"
        total = int(after.group["count"])
        allowed = max(rollout.settings.target(rollout.active, total), rollout.settings.target(len(before.given), total))
        extra = len(came & before.failed)
        assert len(after.given) <= allowed + extra, f"{len(after.given)} have it, {allowed} may: {before} {after}"
        late = rollout.settings.time_s is not None and rollout.step_at + rollout.settings.time_s <= self.clock.time
        # Reports of members that were made again, which came before their ids were known, count as the step begins.
        silent = after.rollout.silent.get(rollout.step, 0) if after.rollout is not None else 0
        heard = not silent or not rollout.settings.gates or late
        assert heard, f"a step begins before {silent} members have reported: {before} {after}"

    def _judge_end(self, stack_id: str, before: Seen, after: Seen, rollout: Rolling) -> None:
        """After a failed gate all have exactly the definition that they had before; after a success all the new one."""
        has = _definitions(after.group)
        if rollout.state == "rolled_back":
            self.back += 1
            assert before.since is not None
            had = _definitions(self._before[stack_id, before.since])
            wrong = [name for name in had.keys() & has.keys() if had[name] != has[name]]
            assert not wrong, f"{wrong} do not have the old definition again: {before} {after}"
            new = before.group["resource_def"]
            kept = [name for name in has.keys() - had.keys() if has[name] == new]
            assert not kept, f"{kept} keep the new definition: {before} {after}"
        elif rollout.state == "succeeded":
            assert "earlier" not in after.group, f"some members have the old definition: {before} {after}"
        elif rollout.state == "aborted":
            had = _definitions(before.group)
            assert had == has, f"members change although it was aborted: {before} {after}"

    def check_rollouts(self) -> None:
        super().check_rollouts()
        stopped = {each.id for each in self.all_stacks() if each.suspended or each.status == Status.FAILED}
        complete = {
            row.handle
            for row in self.rows()
            if row.type == GROUP and row.status == Status.COMPLETE and row.stack_id not in stopped
        }
        for stack_id, each in self._look().items():
            assert stack_id not in complete or each.since is None, f"{stack_id} is complete and staged: {each}"


def _definitions(group: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return dict(groups.definitions_between(group, 0, groups.names_end(group["count"], group["skip"])))


class Defined(NamedTuple):
    """What one seed gave: the story, how many steps there were, and how often a group went back."""

    lines: list[str]
    given: int
    back: int


def play(seed: int) -> Defined:
    with closing(DefiningWorld(seed)) as world:
        try:
            world.run()
            world.check_rollouts()
        except Exception as error:
            story = "\n".join(world.story.lines)
            raise AssertionError(f"seed {seed}: {error!r}\n{story}") from error
    return Defined(world.story.lines, world.given, world.back)


played = cache(play)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_groups_whose_definition_changes_converge_and_no_law_is_broken(seed: int) -> None:
    played(seed)


def test_there_are_rollouts_of_definitions_in_these_worlds() -> None:
    worlds = [played(seed) for seed in range(16)]
    assert sum(world.given for world in worlds) > 10
    assert sum(world.back for world in worlds) > 0
