"""The ring with groups that scale: signals in any state, several at once, during snapshots, and lost workers; and users
who change the own stacks of groups.

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import random
from typing import Any

import pytest

from homeostat.model.errors import Transient
from homeostat.resources import groups
from homeostat.resources.families.scaling_policies import POLICY_KIND
from homeostat.store.stacks import revisions
from tests.simulation.actors import Api, Worker
from tests.simulation.listing import list_members
from tests.simulation.parts import Part
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.templates import GROUP, DesiredStack, Resources, TemplateMutator
from tests.simulation.trouble import troubled
from tests.simulation.users import Users

pytestmark = pytest.mark.heavy

SCALING_GROUP, POLICY = "OS::Heat::AutoScalingGroup", "OS::Heat::ScalingPolicy"
WAITING = "SELECT min(due_at) FROM deferred_signal"


class Scaler(TemplateMutator):
    """Most groups that it grows scale, and have policies; the first resources of each stack are such."""

    def grow(self) -> DesiredStack:
        desired = super().grow()
        group = {"type": SCALING_GROUP, "properties": self._properties(SCALING_GROUP, {})}
        policy = {"type": POLICY, "properties": self._properties(POLICY, {"r0": group})}
        desired.resources |= {"r0": group, "r1": policy}
        return desired

    def _group(self) -> dict[str, Any]:
        if self._rng.random() < 0.2:
            return super()._group()
        return {"type": SCALING_GROUP, "properties": self._properties(SCALING_GROUP, {})}

    def _simple(self, earlier: Resources) -> dict[str, Any]:
        scaling = [name for name, each in earlier.items() if each["type"] == SCALING_GROUP]
        if scaling and self._rng.random() < 0.5:
            return {"type": POLICY, "properties": self._properties(POLICY, earlier)}
        return super()._simple(earlier)

    def _properties(self, kind: str, earlier: Resources) -> dict[str, Any]:
        rng = self._rng
        if kind == SCALING_GROUP:
            low = rng.randint(0, 2)
            rolling = {"max_batch_size": rng.randint(1, 2), "min_in_service": rng.randint(0, 2)}
            bounds = {"min_size": low, "max_size": low + rng.randint(0, 4), "cooldown": rng.choice((0, 0, 5, 60))}
            return {**bounds, "resource": self._member(), "rolling_updates": rolling}
        if kind == POLICY:
            adjustment = rng.choice((("change_in_capacity", 1), ("change_in_capacity", -2), ("exact_capacity", 3)))
            return {
                "auto_scaling_group_id": self._one_of(SCALING_GROUP, earlier),
                "adjustment_type": adjustment[0],
                "scaling_adjustment": adjustment[1],
                "cooldown": rng.choice((0, 0, 10)),
            }
        return super()._properties(kind, earlier)


class Scaling(Part):
    """Alarms that signal policies, users who change the own stacks of groups, and workers that apply signals which have
    waited."""

    def begin(self) -> None:
        self.world.part(Users).gardener = Scaler(self.rng, nested=True)
        self.world.acts += [(12.0, self._scale), (8.0, self._list)]

    def looked(self, worker: Worker) -> None:
        try:
            worker.engine.scaling.round()
        except Transient:
            return

    def next_due(self) -> float | None:
        (waiting,) = self.db.raw.execute(WAITING).fetchone()
        return float(waiting) if waiting is not None else None

    def _waiting(self) -> int:
        return int(self.db.raw.execute("SELECT count(*) FROM deferred_signal").fetchone()[0])

    def _scale(self) -> None:
        """An alarm signals a policy, perhaps several times."""
        policies = sorted((each.project, each.id) for each in self.world.records() if each.kind == POLICY_KIND)
        if not policies or not self.world.serving:
            return
        project, handle = self.rng.choice(policies)
        api = self.rng.choice(self.world.serving)

        def send(api: Api) -> None:
            api.signals.native(project, POLICY_KIND, handle, None)
            self.world.happened["scaled"] += 1
            self.world.happened["waited"] = max(self.world.happened["waited"], self._waiting())

        api.requests.extend([send] * self.rng.choice((1, 1, 3)))
        self.note(f"scale by {handle}")

    def _list(self) -> None:
        """A user gets the template of a group's own stack, and sends it back changed."""
        keys = {row.key for row in self.world.rows() if row.type in (SCALING_GROUP, GROUP) and row.handle}
        inside = sorted(each.id for each in self.world.all_stacks() if each.parent_key in keys and not each.deleted_at)
        if not inside:
            return
        stack_id, rng = self.rng.choice(inside), random.Random(self.rng.random())

        def send(api: Api) -> None:
            self.world.happened["listed"] += list_members(rng, api.stack_service, stack_id)

        self.world.part(Users).ask(send, f"list the members of {stack_id[:6]}")

    def ended(self) -> None:
        """Each group at rest has as many members as its bounds allow, and no signal waits."""
        assert self._waiting() == 0
        stacks = self.world.all_stacks()
        with self.db.read() as tx:
            groups_made = (each for each in self.world.rows() if each.type == SCALING_GROUP and each.handle)
            for row in (each for each in groups_made if each.status == "COMPLETE"):
                (nested,) = [each for each in stacks if each.parent_key == row.key and not each.deleted_at]
                group = revisions.group_of(tx, nested.id, nested.revision)
                assert group is not None
                size, properties = groups.size_of(group), row.properties
                assert properties["min_size"] <= size <= properties["max_size"], (row.name, size, properties)


RING = Ring("scaling", lambda seed: troubled(seed, Scaling(), snapshots=True))


@pytest.mark.parametrize("seed", seeds_to_play(2))
def test_groups_that_are_signalled_converge_and_nothing_leaks_or_is_made_twice(seed: int) -> None:
    RING.played(seed)


def test_there_are_signals_in_these_worlds_and_some_wait() -> None:
    RING.play_until(range(36), {"scaled": 21, "waited": 1, "listed": 10})


def test_random_templates_have_policies_of_groups() -> None:
    rng = random.Random(1)
    grown = [Scaler(rng, nested=True).grow() for _ in range(40)]
    kinds = {each["type"] for desired in grown for each in desired.resources.values()}
    assert kinds >= {SCALING_GROUP, POLICY}
