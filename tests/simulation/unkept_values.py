"""Clouds that accept a value and keep another one: it is sent again once, and then said (ADR 0089)."""

import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.invariants import KEPT
from tests.simulation.world import SimulatedWorld

if TYPE_CHECKING:
    from tests.simulation.trouble import TroubledWorld

LOOKED_AT_S = 1800.0
"""Within this time everything at rest is looked at again."""


class UnkeptValues:
    """Things whose values the cloud does not keep. rng — of its own, so that worlds without this stay as they are;
    left — how many are there in the end."""

    def __init__(self, world: "TroubledWorld", rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._pinned: set[str] = set()
        self.left = 0

    def acts(self, *, certain: bool) -> list[tuple[float, Callable[[], None]]]:
        """With their weights; none in four worlds of five, unless it is certain."""
        return [(6.0, self._pin)] if self._rng.random() < 0.2 or certain else []

    def _pin(self) -> None:
        cloud = self._world.clouds[self._rng.choice(self._world.projects)]
        mine = cloud.things().keys() - cloud.theirs - self._pinned
        handles = sorted(each for each in mine if each.rpartition("-")[0] in KEPT)
        if not handles:
            return
        handle = self._rng.choice(handles)
        cloud.pin(handle, **KEPT[handle.rpartition("-")[0]])
        self._pinned.add(handle)
        self._world.note(f"{handle}: the cloud keeps {KEPT[handle.rpartition('-')[0]]}")
        self._world.sight(handle)

    def check(self) -> None:
        """At rest nothing is sent again and again. The first look may find what no look has found so far."""
        for first in (True, False):
            self.left = len(self._pinned & self._world.things().keys())
            if not self.left:
                return
            before = self._sent()
            self._world.clock.time += LOOKED_AT_S
            SimulatedWorld.settle(self._world)
            sent = self._sent() - before
            assert first or not sent, f"sent again, and not kept: {dict(sent)}"

    def _sent(self) -> Counter[str]:
        updates = sum((cloud.updates for cloud in self._world.clouds.values()), Counter[str]())
        return Counter({handle: updates[handle] for handle in self._pinned})
