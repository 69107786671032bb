"""Others take what a server that is made again is to keep: its address, or a volume that was attached to it."""

import random
from typing import Any
from unittest.mock import patch

from homeostat.clouds.simulated import Faults
from tests.simulation.disturbances import Disturbances
from tests.simulation.health_faults import HealthFaults
from tests.simulation.parts import Part

LENGTHS_S = (5.0, 20.0, 60.0, 200.0)


class Takers(Part):
    """Users of a world who attach volumes to its servers, and who take what is to be kept, for a while. Takes: rng — of
    its own."""

    def __init__(self, rng: random.Random) -> None:
        self._dice = rng

    def begin(self) -> None:
        self._faults = self.world.part(HealthFaults)
        often = ((4.0, self._attach), (8.0, self._take_address), (4.0, self._take_volume))
        self.world.acts += [(weight * self._dice.choice((0, 1, 1)), act) for weight, act in often]

    def _attach(self) -> None:
        """A user attaches a volume by hand, to one server at a time."""
        handle = self._faults.one()
        if handle is None:
            return
        volume, before = self._give("volume", {"size": 1}), self._faults.cloud.things("server")[handle]["volumes"]
        entry = {"id": volume, "delete_on_termination": False}
        self._faults.cloud.change(handle, volumes=[*before, entry])
        self.note(f"{volume} is attached to {handle}")
        self.world.part(Disturbances).sight(handle)

    def _take_address(self) -> None:
        """A user has a port with an address that was free, and is to be kept."""
        wanted = self._faults.invariants.keeping.wanted()
        if wanted:
            network, address = self._dice.choice(wanted)
            port = self._give("port", {"network": network, "fixed_ips": [{"ip_address": address}]})
            self._for_a_while(port, f"{port} takes {address}")
            self._faults.invariants.happened["an address is taken"] += 1

    def _take_volume(self) -> None:
        """A user attaches a volume that is to be kept to something else, where nothing has it."""
        cloud = self._faults.cloud
        held = {
            device.get("volume_id")
            for server in cloud.things("server").values()
            for device in server.get("block_device_mapping") or ()
        }
        held |= {each["volume_id"] for each in cloud.things("volume_attachment").values()}
        wanted = [each for each in self._faults.invariants.keeping.wanted_volumes() if each not in held]
        if wanted:
            volume = self._dice.choice(wanted)
            taken = self._give("volume_attachment", {"volume_id": volume, "instance_uuid": "another"})
            self._for_a_while(taken, f"{taken} takes {volume}")
            self._faults.invariants.happened["a volume is taken"] += 1

    def _give(self, kind: str, spec: dict[str, Any]) -> str:
        cloud = self._faults.cloud
        with patch.object(cloud.behaviour, "faults", Faults()), patch.object(cloud.behaviour, "quota", None):
            handle = cloud.give(kind, spec)
        self.world.watcher.retained.add(handle)
        return handle

    def _for_a_while(self, handle: str, story: str) -> None:
        self.world.until(LENGTHS_S, lambda: self._faults.cloud.vanish(handle), story)
