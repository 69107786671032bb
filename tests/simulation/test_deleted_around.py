"""The ring with trees that are deleted while things vanish from them: none is made again for what will be deleted.

What is kept, or kept after all since an update overtakes the deletion, converges. Workers are killed and frozen,
answers lost. `HOMEOSTAT_SEEDS=1000` plays more.
"""

import json
import random
from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.services.pipeline.request import StackRequest
from tests.simulation.parts import Part
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.templates import GROUP
from tests.simulation.world import World

pytestmark = pytest.mark.heavy

MEMBER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f"}}
STEPS = 250
"""Steps while the deletion waits for the disk."""


def weather_of(rng: random.Random) -> CloudBehaviour:
    faults = Faults(unreachable=rng.choice((0.0, 0.05)), refused=rng.choice((0.0, 0.1)), lost=rng.choice((0.0, 0.1)))
    return CloudBehaviour(build_s=rng.choice((0.0, 3.0)), delete_s=rng.choice((200.0, 400.0)), faults=faults)


class DeletedAround(Part):
    """A tree of stacks around a group of servers, and a disk that needs it and is slow to go: the tree under the stack
    at the top may stay, or an update end its deletion. Takes: rng — of its own."""

    def __init__(self, rng: random.Random) -> None:
        self._dice = rng
        self._depth = rng.randint(1, 3)
        self._count = rng.randint(1, 5)
        self._kept = rng.random() < 0.25
        self._overtaken = not self._kept and rng.random() < 0.4
        self._before: set[str] = set()
        self._deleting = False

    def _request(self, **more: Any) -> StackRequest:
        def text(**resources: Any) -> dict[str, Any]:
            return {"heat_template_version": "2018-08-31", "resources": resources}

        group = {"type": GROUP, "properties": {"count": self._count, "resource_def": MEMBER}}
        files = {"stack0.yaml": json.dumps(text(alone=MEMBER, grp=group))}
        for level in range(1, self._depth):
            files[f"stack{level}.yaml"] = json.dumps(text(nested={"type": f"stack{level - 1}.yaml"}))
        policy = "Retain" if self._kept else "Delete"
        inner = {"type": f"stack{self._depth - 1}.yaml", "deletion_policy": policy}
        disk = {"type": "OS::Cinder::Volume", "properties": {"size": 1}, "depends_on": "inner"}
        return StackRequest(text(inner=inner, disk=disk, **more), files=files, disable_rollback=True)

    def _servers(self) -> set[str]:
        return {handle for handle in self.world.things() if handle.startswith("server-")}

    def disturb(self) -> None:
        service = self.world.apis[0].stack_service
        stack_id = service.create("p", None, "web", self._request())
        self.world.settle()
        self._before = self._servers()
        assert len(self._before) == self._count + 1
        service.delete(stack_id)
        self.note("user: delete")
        self._deleting = True
        self._go_on()
        if self._overtaken:
            self._deleting = False
            more = {"type": "OS::Heat::RandomString"}
            self.world.apis[0].stack_service.update(stack_id, self._request(more=more))
            self.note("user: update")

    def _go_on(self) -> None:
        """Until the disk may be gone; things vanish, and a worker may be killed or frozen."""
        for _ in range(STEPS):
            if self._dice.random() < 0.02:
                self._vanish()
            self.world.go_on(self._dice)

    def _vanish(self) -> None:
        there = sorted(self._servers())
        if there:
            gone = self._dice.choice(there)
            self.world.clouds["p"].vanish(gone)
            self.note(f"{gone} vanishes")

    def check(self) -> None:
        if self._deleting and not self._kept:
            made = self._servers() - self._before
            assert not made, f"made in a tree that is being deleted: {sorted(made)}"

    def ended(self) -> None:
        left = self._count + 1 if self._kept or self._overtaken else 0
        assert len(self._servers()) == left


def deleted_around(seed: int) -> World:
    rng = random.Random(f"deleted around {seed}")
    behaviour, workers, members_per_shard = weather_of(rng), rng.randint(1, 3), rng.choice((2, 1000))
    # More may vanish at once than would be doubted: they are looked for all the same.
    sizes: dict[str, Any] = {"workers": workers, "members_per_shard": members_per_shard, "few": 1000}
    return World(seed, behaviour, [DeletedAround(rng)], **sizes)


RING = Ring("deleted_around", deleted_around)


@pytest.mark.shows("CV12")
@pytest.mark.parametrize("seed", seeds_to_play(12))
def test_nothing_is_made_for_what_will_be_deleted(seed: int) -> None:
    RING.played(seed)
