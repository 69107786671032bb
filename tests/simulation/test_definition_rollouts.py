"""The ring with rollouts of a new definition: members change in steps while workers die and users change their minds.

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import copy
from typing import Any

import pytest

from homeostat.model.rollout import CANARY, IMMEDIATE
from homeostat.model.status import Status
from tests.simulation.definition_invariants import DefinitionInvariants
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.rolling import Rollouts
from tests.simulation.rolling_templates import FLEET, FLEETS, Roller
from tests.simulation.rollout_invariants import RolloutInvariants
from tests.simulation.templates import GROUP, INNER, DesiredStack, Resources
from tests.simulation.trouble import troubled

pytestmark = pytest.mark.heavy

COUNTED = range(12)
"""Seeds of worlds that mostly step."""
STORIES = (
    *("reached rolling", "reached canary", "several steps", "succeeded", "rolled_back", "back", "held", "aborted"),
    *("gate: condition", "gate: bake time", "gate: checks", "gate: approval", "approved"),
    *(
        "a signal to scale in the middle",
        "a member dies in the middle",
        "a revision in the middle",
        "revised in the middle",
        "killed in the middle",
        "corrected",
    ),
)
"""What has to happen, each in one world at least; for the words see `definition_invariants` and `rolling`."""


APPLIES_TO = ("definition", "both")


class Definer(Roller):
    """Its groups mostly get new definitions step by step; fleets always do, and sometimes other metadata with them."""

    def grow(self) -> DesiredStack:
        desired = super().grow()
        _fit(desired.resources)
        return desired

    def mutate(self, desired: DesiredStack) -> DesiredStack:
        changed = super().mutate(desired)
        group = changed.resources.get(FLEET)
        if group is not None and group["type"] == GROUP and self._rng.random() < 0.7:
            group["properties"]["resource_def"] = self._member()
        _fit(changed.resources)
        return changed

    def _group(self) -> dict[str, Any]:
        group = super()._group()
        if self._rng.random() < 0.8:
            group["update_policy"]["rollout"]["applies_to"] = self._rng.choice(APPLIES_TO)
        return group

    def fleet(self) -> DesiredStack:
        desired = super().fleet()
        self._member_of(desired.resources[FLEET])["properties"] |= self._version(desired.resources[FLEET])
        return desired

    def turned(self, desired: DesiredStack) -> DesiredStack:
        changed = super().turned(desired)
        fleet = changed.resources[FLEET]
        if self._rng.random() < 0.7:
            fleet["metadata"] = copy.deepcopy(desired.resources[FLEET]["metadata"])
        member = self._member_of(fleet)
        before = copy.deepcopy(member)
        while member == before:
            member["properties"] |= self._version(fleet)
        return changed

    def _member_of(self, fleet: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = fleet["properties"]["resource_def" if fleet["type"] == GROUP else "resource"]
        return found

    def _version(self, fleet: dict[str, Any]) -> dict[str, Any]:
        """Properties in which definitions differ: some change a member in place, others make another."""
        rng, kind = self._rng, self._member_of(fleet)["type"]
        number = rng.randrange(3)
        if kind == INNER:
            return {"given": f"%index%-{number}"}
        if kind == "OS::Nova::Server":
            return {"name": f"m%index%-{number}"} if rng.random() < 0.5 else {"key_name": f"k{number}"}
        return {"value": f"%index%-{number}"}

    def _set(self, resources: Resources, alarms: list[str]) -> None:
        super()._set(resources, alarms)
        resources[FLEET]["update_policy"]["rollout"]["applies_to"] = self._rng.choice(APPLIES_TO)
        _fit(resources)


def _fit(resources: Resources) -> None:
    """Take out of groups what says in another way how members change, which is refused."""
    for each in resources.values():
        policy = each.get("update_policy", {}) if each["type"] in FLEETS else {}
        if policy.get("rollout", {}).get("applies_to", "metadata") != "metadata":
            policy.pop("rolling_update", None)
            if each["properties"].get("metadata_update_pattern", IMMEDIATE) == IMMEDIATE:
                each["properties"]["metadata_update_pattern"] = CANARY


class DefinitionRollouts(Rollouts):
    """Rollouts of definitions, which have invariants of their own."""

    def grown(self) -> Roller:
        return Definer(self.rng, nested=True)

    def judged(self) -> RolloutInvariants:
        self._definitions = DefinitionInvariants(self.db, lambda: self.clock.time)
        return self._definitions

    def ended(self) -> None:
        super().ended()
        stopped = {each.id for each in self.world.all_stacks() if each.suspended or each.status == Status.FAILED}
        complete = {
            row.handle
            for row in self.world.rows()
            if row.type in FLEETS and row.status == Status.COMPLETE and row.stack_id not in stopped
        }
        left = [each for stack_id, each in self._definitions.staged() if stack_id in complete]
        assert not left, f"complete, and still staged: {left}"


RING = Ring("definition_rollouts", lambda seed: troubled(seed, DefinitionRollouts()))


@pytest.mark.parametrize("seed", seeds_to_play(2))
def test_groups_whose_definition_changes_converge_and_no_invariant_is_broken(seed: int) -> None:
    RING.played(seed)


def test_most_worlds_step_and_each_story_happens() -> None:
    """In some a newer revision takes gates or steps away before the first."""
    RING.play_until(range(48), dict.fromkeys(STORIES, 1))
    stepped = [any(story.startswith("reached ") for story in RING.played(seed).happened) for seed in COUNTED]
    assert sum(stepped) >= len(COUNTED) - 1
