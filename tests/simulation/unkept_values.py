"""Clouds that accept a value and keep another one: it is sent again once, and then said (ADR 0089)."""

from collections import Counter

from tests.simulation.disturbances import Disturbances
from tests.simulation.invariants import KEPT
from tests.simulation.parts import Part

LOOKED_AT_S = 1800.0
"""Within this time everything at rest is looked at again."""


class UnkeptValues(Part):
    """Things whose values the cloud does not keep. Takes: certain — whether they are in all worlds."""

    def __init__(self, *, certain: bool) -> None:
        self._certain = certain
        self._pinned: set[str] = set()

    def begin(self) -> None:
        self._dice = self.dice("unkept")
        if self._dice.random() < 0.2 or self._certain:
            self.world.acts.append((6.0, self._pin))

    def _pin(self) -> None:
        cloud = self.world.clouds[self._dice.choice(self.world.projects)]
        mine = cloud.things().keys() - cloud.theirs - self._pinned
        handles = sorted(each for each in mine if each.rpartition("-")[0] in KEPT)
        if not handles:
            return
        handle = self._dice.choice(handles)
        cloud.pin(handle, **KEPT[handle.rpartition("-")[0]])
        self._pinned.add(handle)
        self.note(f"{handle}: the cloud keeps {KEPT[handle.rpartition('-')[0]]}")
        self.world.part(Disturbances).sight(handle)

    def rested(self) -> None:
        """At rest nothing is sent again and again. The first look may find what no look has found so far."""
        for first in (True, False):
            self.world.happened["unkept"] = len(self._pinned & self.world.things().keys())
            if not self.world.happened["unkept"]:
                return
            before = self._sent()
            self.clock.time += LOOKED_AT_S
            self.world.rest()
            sent = self._sent() - before
            assert first or not sent, f"sent again, and not kept: {dict(sent)}"

    def _sent(self) -> Counter[str]:
        updates = sum((cloud.updates for cloud in self.world.clouds.values()), Counter[str]())
        return Counter({handle: updates[handle] for handle in self._pinned})
