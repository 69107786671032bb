"""The ring with groups that scale: signals in any state, several at once, during snapshots, and lost workers; and users
who change the own stacks of groups.

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import json
import os
import random
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import pytest

from homeostat.model.errors import Transient
from homeostat.resources import groups
from homeostat.resources.families.scaling_policies import POLICY_KIND
from homeostat.services.stacks import StackService
from homeostat.store.stacks import revisions
from tests.simulation.actors import Worker
from tests.simulation.listing import list_members
from tests.simulation.playing import play_until, replay, with_story
from tests.simulation.templates import GROUP, DesiredStack, Resources, TemplateMutator
from tests.simulation.trouble import TroubledWorld

pytestmark = pytest.mark.heavy

SEEDS = int(os.environ.get("HOMEOSTAT_SEEDS", "2"))
FIRST = int(os.environ.get("HOMEOSTAT_FIRST_SEED", "0"))
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


class ScalingWorker(Worker):
    """One that applies signals which have waited, too."""

    def _look(self) -> None:
        super()._look()
        try:
            self._engine.scaling.round()
        except Transient:
            return


class ScalingWorld(TroubledWorld):
    """scaled — signals that were answered; waited — how many of them had to wait at most at a time; listed — templates
    of the own stacks of groups that were accepted."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, snapshots=True)
        self._mutator = Scaler(self.rng, nested=True)
        self._acts += [(12.0, self._scale), (8.0, self._list)]
        self.scaled = 0
        self.waited = 0
        self.listed = 0

    def _worker(self) -> Worker:
        self._born += 1
        worker = f"w{self._born}"
        return ScalingWorker(worker, self.db, self.clouds, self.clock, self.entropy, self.rng, self.plugin_types)

    def next_due(self) -> float | None:
        (waiting,) = self.db.raw.execute(WAITING).fetchone()
        times = [at for at in (super().next_due(), waiting) if at is not None]
        return min(times, default=None)

    def _scale(self) -> None:
        """An alarm signals a policy, perhaps several times."""
        policies = sorted((each.project, each.id) for each in self.records() if each.kind == POLICY_KIND)
        alive = [api for api in self.apis if api.alive]
        if not policies or not alive:
            return
        project, handle = self.rng.choice(policies)
        api = self.rng.choice(alive)
        for _ in range(self.rng.choice((1, 1, 3))):
            api.requests.append(self._sender(api, project, handle))
        self.note(f"scale by {handle}")

    def _list(self) -> None:
        """A user gets the template of a group's own stack, and sends it back changed."""
        keys = {row.key for row in self.rows() if row.type in (SCALING_GROUP, GROUP) and row.handle}
        inside = sorted(each.id for each in self.all_stacks() if each.parent_key in keys and not each.deleted_at)
        if not inside:
            return
        stack_id, rng = self.rng.choice(inside), random.Random(self.rng.random())

        def send(stack_service: StackService) -> None:
            self.listed += list_members(rng, stack_service, stack_id)

        self._request(send, f"list the members of {stack_id[:6]}")

    def _sender(self, api: Any, project: str, handle: str) -> Callable[[Any], None]:
        def send(_: Any) -> None:
            api.signals.native(project, POLICY_KIND, handle, None)
            self.scaled += 1
            self.waited = max(self.waited, self.db.raw.execute("SELECT count(*) FROM deferred_signal").fetchone()[0])

        return send

    def check_sizes(self) -> None:
        """Each group at rest has as many members as its bounds allow, and no signal waits."""
        assert self.db.raw.execute("SELECT count(*) FROM deferred_signal").fetchone()[0] == 0
        with self.db.read() as tx:
            groups_made = (each for each in self.rows() if each.type == SCALING_GROUP and each.handle)
            for row in (each for each in groups_made if each.status == "COMPLETE"):
                (nested,) = [each for each in self.all_stacks() if each.parent_key == row.key and not each.deleted_at]
                group = revisions.group_of(tx, nested.id, nested.revision)
                assert group is not None
                properties = json.loads(self._properties_of(row.key))
                size = groups.size_of(group)
                assert properties["min_size"] <= size <= properties["max_size"], (row.name, size, properties)

    def _properties_of(self, key: str) -> str:
        return str(self.db.raw.execute("SELECT properties FROM resource WHERE key = ?", (key,)).fetchone()[0])


class Scaled(NamedTuple):
    """What one seed gave: the story, how many signals were answered, how many had to wait at a time, and how many
    templates of groups' own stacks were accepted."""

    lines: list[str]
    scaled: int
    waited: int
    listed: int


def play(seed: int) -> Scaled:
    with with_story(ScalingWorld(seed), seed, replay(seed, "scaling")) as world:
        world.run()
        world.check_sizes()
    return Scaled(world.story.lines, world.scaled, world.waited, world.listed)


played = cache(play)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_groups_that_are_signalled_converge_and_nothing_leaks_or_is_made_twice(seed: int) -> None:
    played(seed)


def test_there_are_signals_in_these_worlds_and_some_wait() -> None:
    play_until(played, range(36), {"scaled": 21, "waited": 1, "listed": 10})


def test_random_templates_have_policies_of_groups() -> None:
    rng = random.Random(1)
    grown = [Scaler(rng, nested=True).grow() for _ in range(40)]
    kinds = {each["type"] for desired in grown for each in desired.resources.values()}
    assert kinds >= {SCALING_GROUP, POLICY}
