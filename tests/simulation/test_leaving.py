"""The ring with groups that get smaller while users name, or mark, who is to go: these go, and no others.

Updates overtake each other, some of them never begun; workers are killed and frozen, answers lost (ADR 0095).
`HOMEOSTAT_SEEDS=1000` plays more.
"""

import json
import random
from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.services.actions import ConvergenceSettings, StackActions
from homeostat.services.marks import MarkRequest
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.stacks import StackService
from tests.simulation.parts import Part
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.templates import GROUP
from tests.simulation.test_scaling import SCALING_GROUP
from tests.simulation.world import World

pytestmark = pytest.mark.heavy

MEMBER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f"}}
PARAMETERS = {"n": {"type": "number"}, "rm": {"type": "comma_delimited_list", "default": ""}}
GIVEN = {name: {"get_param": name} for name in PARAMETERS}
STEPS = 150
"""Steps after each request, at most."""


def weather_of(rng: random.Random) -> CloudBehaviour:
    faults = Faults(unreachable=rng.choice((0.0, 0.05)), refused=rng.choice((0.0, 0.1)), lost=rng.choice((0.0, 0.1)))
    return CloudBehaviour(build_s=rng.choice((0.0, 3.0)), delete_s=rng.choice((0.0, 2.0)), faults=faults)


class Leaving(Part):
    """One group that gets smaller, which may be nested in other stacks. Takes: rng — of its own."""

    def __init__(self, rng: random.Random) -> None:
        self._dice = rng
        self._kind = rng.choice((GROUP, GROUP, GROUP, SCALING_GROUP))
        self._depth = rng.choice((1, 1, 2))
        self._count = rng.randint(5, 9)
        self._first: dict[str, str] = {}
        self._gone: set[str] = set()

    # -- what users want ---------------------------------------------------------------------------------------------

    def _group(self) -> dict[str, Any]:
        if self._kind == SCALING_GROUP:
            bounds = {"min_size": 0, "max_size": 9, "desired_capacity": GIVEN["n"]}
            return {"type": self._kind, "properties": {**bounds, "resource": MEMBER}}
        listed = {"removal_policies": [{"resource_list": GIVEN["rm"]}]}
        return {"type": self._kind, "properties": {"count": GIVEN["n"], "resource_def": MEMBER, **listed}}

    def _request(self) -> StackRequest:
        def text(resources: dict[str, Any]) -> dict[str, Any]:
            return {"heat_template_version": "2018-08-31", "parameters": PARAMETERS, "resources": resources}

        inner = text({"grp": self._group()})
        whole = inner if self._depth == 1 else text({"inner": {"type": "inner.yaml", "properties": GIVEN}})
        files = {"inner.yaml": json.dumps(inner)}
        parameters = {"n": str(self._count)}
        return StackRequest(whole, parameters=parameters, files=files, disable_rollback=True)

    def _own_stacks(self) -> set[str]:
        """Ids of the groups' own."""
        stacks = self.world.all_stacks()
        return {each.id for each in stacks if each.parent_name == "grp" and each.deleted_at is None}

    def _members(self) -> dict[str, str]:
        """Name -> id."""
        groups = self._own_stacks()
        return {row.name: row.handle for row in self.world.rows() if row.stack_id in groups and row.replaced_by is None}

    # -- what happens ------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        service = self.world.apis[0].stack_service
        stack_id = service.create("p", None, "web", self._request())
        self.world.settle()
        self._first = self._members()
        assert len(self._first) == self._count
        actions = StackActions(self.db, 900.0)
        for each in self.world.all_stacks():
            actions.switch(each.id, ConvergenceSettings({"converge": False}))
        for _ in range(self._dice.randint(2, 5)):
            staying = sorted(set(self._first.values()) - self._gone)
            if len(staying) > 2:  # a group that scales takes a size of 0 for none
                self._ask(stack_id, self._dice.sample(staying, self._dice.randint(1, 2)))
            self._go_on()

    def _ask(self, stack_id: str, some: list[str]) -> None:
        """Ask some to go, by name or by marks."""
        api, marks = self.world.apis[0], self._kind == SCALING_GROUP or self._dice.random() < 0.15
        count = len(self._first) - len(self._gone) - len(some)
        given = {"n": str(count), "rm": "" if marks else ",".join(some)}
        if marks:
            # An update under way replaces what is marked, before it hears of the next one.
            self.world.settle()
            (group,) = self._own_stacks()
            names = {handle: name for name, handle in self._members().items()}
            for each in some:
                api.marks.mark(group, MarkRequest(True), {"": names[each]})

        def update(service: StackService) -> None:
            service.update(stack_id, StackRequest(None, parameters=given), patch=True)

        update(api.stack_service)
        self._gone.update(some)
        self.note(f"user: {'mark' if marks else 'name'} {some}, {given}")

    def _go_on(self) -> None:
        """For a while, in which a worker may be killed or frozen."""
        for _ in range(self._dice.choice((0, 0, 0, 5, STEPS))):
            self.world.go_on(self._dice)

    def ended(self) -> None:
        left = {handle for handle in self.world.things() if handle.startswith("server-")}
        assert left == set(self._first.values()) - self._gone


def leaving_world(seed: int) -> World:
    rng = random.Random(f"leaving {seed}")
    behaviour, workers, members_per_shard = weather_of(rng), rng.randint(1, 3), rng.choice((2, 1000))
    return World(seed, behaviour, [Leaving(rng)], workers=workers, members_per_shard=members_per_shard)


RING = Ring("leaving", leaving_world)


@pytest.mark.shows("MU8")
@pytest.mark.parametrize("seed", seeds_to_play(12))
def test_those_asked_to_go_go_and_no_others(seed: int) -> None:
    RING.played(seed)
