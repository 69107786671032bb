"""The ring with trees that are deleted while things vanish from them: none is made again for what will be deleted.

What is kept, or kept after all since an update overtakes the deletion, converges. Workers are killed and frozen,
answers lost. `HOMEOSTAT_SEEDS=1000` plays more.
"""

import json
import os
import random
from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.services.pipeline.request import StackRequest
from tests.simulation.playing import replay, with_story
from tests.simulation.templates import GROUP
from tests.simulation.world import SimulatedWorld

pytestmark = pytest.mark.heavy

SEEDS = int(os.environ.get("HOMEOSTAT_SEEDS", "12"))
FIRST = int(os.environ.get("HOMEOSTAT_FIRST_SEED", "0"))
MEMBER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f"}}
STEPS = 250
"""Steps while the deletion waits for the disk."""


def weather_of(rng: random.Random) -> CloudBehaviour:
    faults = Faults(unreachable=rng.choice((0.0, 0.05)), refused=rng.choice((0.0, 0.1)), lost=rng.choice((0.0, 0.1)))
    return CloudBehaviour(build_s=rng.choice((0.0, 3.0)), delete_s=rng.choice((200.0, 400.0)), faults=faults)


class DeletedAroundWorld(SimulatedWorld):
    """A tree of stacks around a group of servers, and a disk that needs it and is slow to go.

    kept — whether the tree under the stack at the top stays; overtaken — whether an update ends its deletion.
    """

    def __init__(self, seed: int) -> None:
        rng = random.Random(f"deleted around {seed}")
        # More may vanish at once than would be doubted: they are looked for all the same.
        super().__init__(
            seed, weather_of(rng), workers=rng.randint(1, 3), members_per_shard=rng.choice((2, 1000)), few=1000
        )
        self._rng = rng
        self._depth = rng.randint(1, 3)
        self._count = rng.randint(1, 5)
        self.kept = rng.random() < 0.25
        self.overtaken = not self.kept and rng.random() < 0.4
        self.vanished = 0
        self._before: set[str] = set()
        self._deleting = False

    def _request(self, **more: Any) -> StackRequest:
        def text(**resources: Any) -> dict[str, Any]:
            return {"heat_template_version": "2018-08-31", "resources": resources}

        group = {"type": GROUP, "properties": {"count": self._count, "resource_def": MEMBER}}
        files = {"stack0.yaml": json.dumps(text(alone=MEMBER, grp=group))}
        for level in range(1, self._depth):
            files[f"stack{level}.yaml"] = json.dumps(text(nested={"type": f"stack{level - 1}.yaml"}))
        policy = "Retain" if self.kept else "Delete"
        inner = {"type": f"stack{self._depth - 1}.yaml", "deletion_policy": policy}
        disk = {"type": "OS::Cinder::Volume", "properties": {"size": 1}, "depends_on": "inner"}
        return StackRequest(text(inner=inner, disk=disk, **more), files=files, disable_rollback=True)

    def servers(self) -> set[str]:
        return {handle for handle in self.things() if handle.startswith("server-")}

    @property
    def left(self) -> int:
        """How many servers there are in the end."""
        return self._count + 1 if self.kept or self.overtaken else 0

    def disturb(self) -> None:
        service = self.apis[0].stack_service
        stack_id = service.create("p", None, "web", self._request())
        self.settle()
        self._before = self.servers()
        assert len(self._before) == self._count + 1
        service.delete(stack_id)
        self.note("user: delete")
        self._deleting = True
        self._go_on()
        if self.overtaken:
            self._deleting = False
            more = {"type": "OS::Heat::RandomString"}
            self.apis[0].stack_service.update(stack_id, self._request(more=more))
            self.note("user: update")

    def _go_on(self) -> None:
        """Until the disk may be gone; things vanish, and a worker may be killed or frozen."""
        for _ in range(STEPS):
            if self._rng.random() < 0.02:
                self._vanish()
            self.go_on(self._rng)

    def _vanish(self) -> None:
        there = sorted(self.servers())
        if there:
            gone = self._rng.choice(there)
            self.clouds["p"].vanish(gone)
            self.vanished += 1
            self.note(f"{gone} vanishes")

    def check(self) -> None:
        super().check()
        if self._deleting and not self.kept:
            made = self.servers() - self._before
            assert not made, f"made in a tree that is being deleted: {sorted(made)}"


@pytest.mark.shows("CV12")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_nothing_is_made_for_what_will_be_deleted(seed: int) -> None:
    with with_story(DeletedAroundWorld(seed), seed, replay(seed, "deleted_around")) as world:
        world.run()
        assert len(world.servers()) == world.left
