"""The ring with groups that say how many members may be away.

They are updated, scaled, healed and marked at once, while workers die. Each batch is judged by what was stored when it
was (ADR 0067).

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import copy
import random
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from homeostat.model.budget import Limit
from homeostat.model.group import GroupDefinition
from homeostat.model.status import Status
from homeostat.store.stacks import revisions
from tests.simulation.disturbances import Disturbances
from tests.simulation.groups_away import PREPARED_WITHIN, RELEASED_WITHIN, away_now, members_of
from tests.simulation.keeping import Keepers
from tests.simulation.parts import Act, Part
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.templates import GROUP, DesiredStack
from tests.simulation.test_scaling import SCALING_GROUP, Scaler, Scaling
from tests.simulation.transfers import Transfers
from tests.simulation.trouble import Trouble, troubled
from tests.simulation.users import Users
from tests.simulation.world import World

pytestmark = pytest.mark.heavy

UPDATES = 30.0
"""How often a template changes, in comparison with what else happens."""
GOING_ON = f"SELECT id, revision, updated_at FROM stack WHERE parent_id IS NOT NULL AND status = '{Status.IN_PROGRESS}'"
HELD_BACK = (
    "SELECT count(DISTINCT stack_id || reason) FROM event WHERE reason LIKE '%; the update goes on with at least %'"
)


class Budgeter(Scaler):
    """Each stack has a group of servers with a limit, and one that scales; most of the changes are about these."""

    def grow(self) -> DesiredStack:
        desired = super().grow() if self._rng.random() < 0.3 else DesiredStack({}, {})
        desired.resources |= {"g0": self._limited(), "g1": self._scaled()}
        return desired

    def mutate(self, desired: DesiredStack) -> DesiredStack:
        kept = {name: each for name, each in desired.resources.items() if name.startswith("g")}
        if kept and self._rng.random() < 0.8:
            changed = copy.deepcopy(desired)
            name = self._rng.choice(sorted(kept))
            changed.resources[name] = self._varied(name, changed.resources[name])
            return changed
        others = {name: each for name, each in desired.resources.items() if name not in kept}
        changed = super().mutate(DesiredStack(others, desired.nested, desired.held))
        changed.resources |= copy.deepcopy(kept)
        return changed

    def _varied(self, name: str, group: dict[str, Any]) -> dict[str, Any]:
        fresh = self._limited() if name == "g0" else self._scaled()
        draw, properties = self._rng.random(), group["properties"]
        if draw < 0.6:  # another definition
            one = "resource_def" if name == "g0" else "resource"
            return {**group, "properties": {**properties, one: fresh["properties"][one]}}
        if draw < 0.8 and name == "g0":  # another size
            return {**group, "properties": {**properties, "count": fresh["properties"]["count"]}}
        return fresh

    def _server(self) -> dict[str, Any]:
        """One that is changed in place, or replaced."""
        image = {"image": self._rng.choice(("i", "j")), "image_update_policy": "REPLACE"}
        return {"type": "OS::Nova::Server", "properties": {**image, "flavor": self._rng.choice(("small", "large"))}}

    def _limited(self) -> dict[str, Any]:
        rng = self._rng
        count = rng.randint(3, 6)
        rolling = {"max_batch_size": rng.randint(1, 3), "min_in_service": rng.randint(0, count + 1)}
        policy: dict[str, Any] = {"rolling_update": {**rolling, "pause_time": rng.choice((0, 0, 5))}}
        if rng.random() < 0.4:
            policy["max_unavailable"] = rng.choice(("1", "2", "40%"))
        if rng.random() < 0.2:
            policy = {"max_unavailable": rng.choice(("1", "50%"))}
        properties = {"count": count, "resource_def": self._server()}
        return {"type": GROUP, "properties": properties, "update_policy": policy}

    def _scaled(self) -> dict[str, Any]:
        rng = self._rng
        low = rng.randint(1, 3)
        rolling = {"max_batch_size": rng.randint(1, 2), "min_in_service": rng.randint(0, low)}
        bounds = {"min_size": low, "max_size": low + 3, "desired_capacity": low + 1}
        properties = {**bounds, "resource": self._server(), "rolling_updates": rolling}
        policy = {"update_policy": {"max_unavailable": "2"}} if rng.random() < 0.3 else {}
        return {"type": SCALING_GROUP, "properties": properties, **policy}


class _Standing(NamedTuple):
    """A group as the invariant last saw it."""

    revision: int
    updated_at: float | None
    group: GroupDefinition | None


class PatientUsers(Users):
    """Most wait for the end of an update before they ask for another: else no batch is followed by one."""

    def always(self) -> list[tuple[float, Act]]:
        return [(1.0, self.create), (UPDATES, self._update_in_turn), (0.2, self._delete)]

    def _update_in_turn(self) -> None:
        if self._at_rest() or self.rng.random() < 0.1:
            self.update()

    def stack(self) -> str | None:
        at_rest = self._at_rest()
        return self.rng.choice(at_rest) if at_rest and self.rng.random() < 0.9 else super().stack()

    def _at_rest(self) -> list[str]:
        every = self.world.all_stacks()
        gone = {each.id for each in every if each.deleted_at is not None}
        busy = {each.root_id for each in every if each.status == Status.IN_PROGRESS}
        return sorted(self.desired.keys() - busy - gone)


class Budgets(Part):
    """Groups with limits, and milder trouble. It counts the batches that were stored within a limit: the first of an
    update, and those after it; those that used all of it; those that were smaller than they might be, since members
    were away.

    Takes: steps — before the calm.
    """

    def __init__(self, steps: int = 3000) -> None:
        self._steps = steps
        self._stood: dict[str, _Standing] = {}
        self._recent: list[dict[str, set[str]]] = []

    def begin(self) -> None:
        world, users, disturbances = self.world, self.world.part(Users), self.world.part(Disturbances)
        users.gardener = Budgeter(self.rng, nested=False)
        trouble = world.part(Trouble)
        trouble.steps, trouble.rate, trouble.revival = self._steps, 0.04, 0.1
        left_out = (world.part(Keepers).snapshot, world.part(Transfers).adopt)
        world.acts = [(weight, act) for weight, act in world.acts if act not in left_out]
        world.acts += [(8.0, users.mark), (14.0, disturbances.disturb_thing), (1.0, disturbances.kill)]
        world.usual = replace(world.usual, error=world.usual.error / 5, refused=world.usual.refused / 5)
        for cloud in world.clouds.values():  # most updates get to their end
            cloud.behaviour.quota, cloud.behaviour.faults = None, world.usual

    def committed(self) -> None:
        """Judge each new revision of a group."""
        away = away_now(self.db)
        for stack_id, revision, updated_at in self.db.raw.execute(GOING_ON).fetchall():
            before = self._stood.get(stack_id)
            if before is not None and before.revision == revision:
                continue
            with self.db.read() as tx:
                group = revisions.group_of(tx, stack_id, revision)
            self._stood[stack_id] = _Standing(revision, updated_at, group)
            if before is not None and before.group and group and group.series is not None:
                # A revision that comes with no action of its own is one that a batch has come to rest for.
                first = before.updated_at != updated_at
                self._judge_batch(stack_id, before.group, group, away[stack_id], first=first)
        self._recent = [*self._recent[1 - PREPARED_WITHIN :], away]

    def _judge_batch(
        self, stack_id: str, before: GroupDefinition, after: GroupDefinition, away: set[str], *, first: bool
    ) -> None:
        plan, old, new = after.series, members_of(before), members_of(after)
        assert plan is not None
        limit = Limit(plan.min_in_service, plan.max_unavailable)
        there = old.keys() & new.keys()
        changed = {name for name in there if old[name] != new[name]}
        away, taken = away & there, changed - away
        # It is worked out before the stack is locked: members may have gone or come back meanwhile.
        recent = [each.get(stack_id, set()) for each in self._recent[0 if first else -RELEASED_WITHIN :]]
        taken = taken.difference(*recent)
        away = away.intersection(*recent)
        kept = min(limit.min_in_service, plan.target, before.count)
        most = min(len(there) - kept, limit.unavailable_max(plan.target))
        if not limit.binds or not taken:
            return
        self.world.happened["first"] += first
        self.world.happened["later"] += not first
        self.world.happened["full"] += len(away) + len(taken) == most
        self.world.happened["spared"] += bool(away) and len(changed) < plan.max_batch_size
        if len(away) + len(taken) > most:
            self.world.watcher.wrong.append(
                f"{sorted(away)} are away, and {sorted(taken)} are changed: at most {most} may be ({first=}, {plan})"
            )

    def ended(self) -> None:
        """How many batches have waited for members that were away."""
        self.world.happened["held back"] += int(self.db.raw.execute(HELD_BACK).fetchone()[0])


def budgeted(seed: int, *more: Part, steps: int = 3000) -> World:
    return troubled(seed, Scaling(), Budgets(steps), *more, users=PatientUsers, snapshots=True)


RING = Ring("budgets", budgeted)


@pytest.mark.parametrize("seed", seeds_to_play(2))
def test_groups_with_a_limit_converge_and_no_batch_exceeds_it(seed: int) -> None:
    RING.played(seed)


def test_there_are_batches_in_these_worlds_that_use_the_budget() -> None:
    RING.play_until(range(36), {"first": 1, "later": 11, "full": 1, "kills": 1})


def test_random_templates_have_limits_of_all_forms() -> None:
    grown = [Budgeter(random.Random(seed), nested=False).grow().resources["g0"] for seed in range(40)]
    forms = {tuple(sorted(each["update_policy"])) for each in grown}
    assert forms == {("max_unavailable",), ("rolling_update",), ("max_unavailable", "rolling_update")}
