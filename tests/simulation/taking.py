"""Others take what a server that is made again is to keep: its address, or a volume that was attached to it."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from homeostat.clouds.simulated import Faults

if TYPE_CHECKING:
    from tests.simulation.checking import CheckedWorld

LENGTHS_S = (5.0, 20.0, 60.0, 200.0)


class Takers:
    """Users of a world who attach volumes to its servers, and who take what is to be kept, for a while."""

    def __init__(self, world: "CheckedWorld", rng: random.Random) -> None:
        self._world = world
        self._rng = rng

    def acts(self) -> list[tuple[float, Callable[[], None]]]:
        often = ((4.0, self._attach), (8.0, self._take_address), (4.0, self._take_volume))
        return [(weight * self._rng.choice((0, 1, 1)), act) for weight, act in often]

    def _attach(self) -> None:
        """A user attaches a volume by hand, to one server at a time."""
        handle = self._world.one()
        if handle is None:
            return
        volume, before = self._give("volume", {"size": 1}), self._world.cloud.things("server")[handle]["volumes"]
        entry = {"id": volume, "delete_on_termination": False}
        self._world.cloud.change(handle, volumes=[*before, entry])
        self._world.note(f"{volume} is attached to {handle}")
        self._world.sight(handle)

    def _take_address(self) -> None:
        """A user has a port with an address that was free, and is to be kept."""
        wanted = self._world.invariants.keeping.wanted()
        if wanted:
            network, address = self._rng.choice(wanted)
            port = self._give("port", {"network": network, "fixed_ips": [{"ip_address": address}]})
            self._for_a_while(port, f"{port} takes {address}")
            self._world.invariants.happened["an address is taken"] += 1

    def _take_volume(self) -> None:
        """A user attaches a volume that is to be kept to something else, where nothing has it."""
        cloud = self._world.cloud
        held = {
            device.get("volume_id")
            for server in cloud.things("server").values()
            for device in server.get("block_device_mapping") or ()
        }
        held |= {each["volume_id"] for each in cloud.things("volume_attachment").values()}
        wanted = [each for each in self._world.invariants.keeping.wanted_volumes() if each not in held]
        if wanted:
            volume = self._rng.choice(wanted)
            taken = self._give("volume_attachment", {"volume_id": volume, "instance_uuid": "another"})
            self._for_a_while(taken, f"{taken} takes {volume}")
            self._world.invariants.happened["a volume is taken"] += 1

    def _give(self, kind: str, spec: dict[str, Any]) -> str:
        cloud = self._world.cloud
        with patch.object(cloud.behaviour, "faults", Faults()), patch.object(cloud.behaviour, "quota", None):
            handle = cloud.give(kind, spec)
        self._world.watcher.retained.add(handle)
        return handle

    def _for_a_while(self, handle: str, story: str) -> None:
        self._world.until(LENGTHS_S, lambda: self._world.cloud.vanish(handle), story)
