"""The ring with groups that get smaller while users name, or mark, who is to go: these go, and no others.

Updates overtake each other, some of them never begun; workers are killed and frozen, answers lost (ADR 0095).
`HOMEOSTAT_SEEDS=1000` plays more.
"""

import json
import os
import random
from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.services.actions import ConvergenceSettings, StackActions
from homeostat.services.marks import MarkRequest
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.stacks import StackService
from tests.simulation.playing import replay, with_story
from tests.simulation.templates import GROUP
from tests.simulation.test_scaling import SCALING_GROUP
from tests.simulation.world import SimulatedWorld

pytestmark = pytest.mark.heavy

SEEDS = int(os.environ.get("HOMEOSTAT_SEEDS", "12"))
FIRST = int(os.environ.get("HOMEOSTAT_FIRST_SEED", "0"))
MEMBER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f"}}
PARAMETERS = {"n": {"type": "number"}, "rm": {"type": "comma_delimited_list", "default": ""}}
GIVEN = {name: {"get_param": name} for name in PARAMETERS}
STEPS = 150
"""Steps after each request, at most."""


def weather_of(rng: random.Random) -> CloudBehaviour:
    faults = Faults(unreachable=rng.choice((0.0, 0.05)), refused=rng.choice((0.0, 0.1)), lost=rng.choice((0.0, 0.1)))
    return CloudBehaviour(build_s=rng.choice((0.0, 3.0)), delete_s=rng.choice((0.0, 2.0)), faults=faults)


class LeavingWorld(SimulatedWorld):
    """One group that gets smaller, which may be nested in other stacks. gone — ids of those that were asked to go."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(f"leaving {seed}")
        super().__init__(seed, weather_of(rng), workers=rng.randint(1, 3), members_per_shard=rng.choice((2, 1000)))
        self._rng = rng
        self.kind = rng.choice((GROUP, GROUP, GROUP, SCALING_GROUP))
        self._depth = rng.choice((1, 1, 2))
        self._count = rng.randint(5, 9)
        self.first: dict[str, str] = {}
        self.gone: set[str] = set()

    # -- what users want ---------------------------------------------------------------------------------------------

    def _group(self) -> dict[str, Any]:
        if self.kind == SCALING_GROUP:
            bounds = {"min_size": 0, "max_size": 9, "desired_capacity": GIVEN["n"]}
            return {"type": self.kind, "properties": {**bounds, "resource": MEMBER}}
        listed = {"removal_policies": [{"resource_list": GIVEN["rm"]}]}
        return {"type": self.kind, "properties": {"count": GIVEN["n"], "resource_def": MEMBER, **listed}}

    def _request(self) -> StackRequest:
        def text(resources: dict[str, Any]) -> dict[str, Any]:
            return {"heat_template_version": "2018-08-31", "parameters": PARAMETERS, "resources": resources}

        inner = text({"grp": self._group()})
        whole = inner if self._depth == 1 else text({"inner": {"type": "inner.yaml", "properties": GIVEN}})
        files = {"inner.yaml": json.dumps(inner)}
        parameters = {"n": str(self._count)}
        return StackRequest(whole, parameters=parameters, files=files, disable_rollback=True)

    def _members(self) -> dict[str, str]:
        """Name -> id."""
        groups = {each.id for each in self.all_stacks() if each.parent_name == "grp" and each.deleted_at is None}
        return {row.name: row.handle for row in self.rows() if row.stack_id in groups and row.replaced_by is None}

    # -- what happens ------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        service = self.apis[0].stack_service
        stack_id = service.create("p", None, "web", self._request())
        self.settle()
        self.first = self._members()
        assert len(self.first) == self._count
        actions = StackActions(self.db, 900.0)
        for each in self.all_stacks():
            actions.switch(each.id, ConvergenceSettings({"converge": False}))
        for _ in range(self._rng.randint(2, 5)):
            staying = sorted(set(self.first.values()) - self.gone)
            if len(staying) > 2:  # a group that scales takes a size of 0 for none
                self._ask(stack_id, self._rng.sample(staying, self._rng.randint(1, 2)))
            self._go_on()

    def _ask(self, stack_id: str, some: list[str]) -> None:
        """Ask some to go, by name or by marks."""
        api, marks = self.apis[0], self.kind == SCALING_GROUP or self._rng.random() < 0.15
        count = len(self.first) - len(self.gone) - len(some)
        given = {"n": str(count), "rm": "" if marks else ",".join(some)}
        if marks:
            # An update under way replaces what is marked, before it hears of the next one.
            self.settle()
            (group,) = [each.id for each in self.all_stacks() if each.parent_name == "grp" and each.deleted_at is None]
            names = {handle: name for name, handle in self._members().items()}
            for each in some:
                api.marks.mark(group, MarkRequest(True), {"": names[each]})

        def update(service: StackService) -> None:
            service.update(stack_id, StackRequest(None, parameters=given), patch=True)

        update(api.stack_service)
        self.gone.update(some)
        self.note(f"user: {'mark' if marks else 'name'} {some}, {given}")

    def _go_on(self) -> None:
        """For a while, in which a worker may be killed or frozen."""
        for _ in range(self._rng.choice((0, 0, 0, 5, STEPS))):
            self.go_on(self._rng)


@pytest.mark.shows("MU8")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_those_asked_to_go_go_and_no_others(seed: int) -> None:
    with with_story(LeavingWorld(seed), seed, replay(seed, "leaving")) as world:
        world.run()
        left = {handle for handle in world.things() if handle.startswith("server-")}
        assert left == set(world.first.values()) - world.gone
