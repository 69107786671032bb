"""Users who say what must not be done to resources, where they stop, and which are managed elsewhere."""

import copy
from typing import Any
from unittest.mock import patch

from homeostat.clouds.simulated import Faults
from homeostat.services.actions import StackActions
from homeostat.templates.registry import HOOKS
from tests.simulation.parts import Part
from tests.simulation.templates import DesiredStack
from tests.simulation.users import Users

AT_HOOKS = "SELECT stack_id, name, json_extract(hooks, '$.at') FROM resource WHERE json_extract(hooks, '$.at') <> ''"


class Wardens(Part):
    """Takes: certain — whether they are in all worlds."""

    def __init__(self, *, certain: bool) -> None:
        self._certain = certain

    def begin(self) -> None:
        self._dice = self.dice("warden")
        if self._dice.random() < 0.3 or self._certain:
            self._theirs = self._give()
            self.world.part(Users).hold = self._hold
            self.world.acts.append((10.0, self._clear))

    def _give(self) -> list[str]:
        """Volumes of others; one that a user may name is nowhere."""
        found = []
        for cloud in self.world.clouds.values():
            with patch.object(cloud.behaviour, "faults", Faults()), patch.object(cloud.behaviour, "quota", None):
                found += [cloud.give("volume", {"size": 1}) for _ in range(2)]
        self.world.watcher.retained.update([*found, "volume-999999"])
        return found

    def _waiting(self) -> list[tuple[str, str, str]]:
        """What waits at a hook: stack, resource, hook."""
        return sorted(self.db.raw.execute(AT_HOOKS))

    def _clear(self) -> None:
        waiting = self._waiting()
        if waiting:
            place = self.rng.choice(waiting)
            self.world.part(Users).ask(lambda api: api.actions.clear_hook(*place), f"clear {place}")
            self.world.happened["cleared"] += 1

    def clear_all(self) -> None:
        """All hooks of stacks that are not locked: nothing waits for ever."""
        for place in self._waiting():
            locked = any(each.id == place[0] and each.lock is not None for each in self.world.all_stacks())
            if not locked:
                StackActions(self.db, 900.0).clear_hook(*place)
                self.world.happened["cleared"] += 1

    # -- templates ---------------------------------------------------------------------------------------------------

    def _hold(self, desired: DesiredStack) -> DesiredStack:
        """The same, with some resources held back in another way than before."""
        rng, held = self._dice, copy.deepcopy(desired)
        for name in rng.sample([f"r{number}" for number in range(9)] + ["r*"], 2):
            held.held[name] = self._settings()
        for name in rng.sample(sorted(held.resources), min(1, len(held.resources))):
            self._give_or_take(held.resources[name])
        return held

    def _settings(self) -> dict[str, Any]:
        rng = self._dice
        settings: dict[str, Any] = {}
        if rng.random() < 0.7:
            settings["hooks"] = rng.sample(HOOKS, rng.choice((1, 1, 2, 6)))
        if rng.random() < 0.3:
            settings["restricted_actions"] = rng.choice(("update", "replace", ["update", "replace"]))
        if rng.random() < 0.3:
            part = rng.choice(("i0", "o0", "0", "*"))
            settings[part] = {"hooks": rng.sample(HOOKS, 1)}
        return settings

    def _give_or_take(self, resource: dict[str, Any]) -> None:
        """A volume becomes one that is managed elsewhere, or here again: only a volume that is new may."""
        rng = self._dice
        if resource["type"] == "OS::Cinder::Volume" and "depends_on" not in resource and rng.random() < 0.5:
            resource["external_id"] = rng.choice([*self._theirs, "volume-999999"])
        elif rng.random() < 0.3:
            resource.pop("external_id", None)
