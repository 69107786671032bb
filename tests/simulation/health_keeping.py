"""What a server that is made again has to keep of the one before, judged by what was seen of that (`preserve`).

It is noted when a recovery begins, and judged when what takes the place is made, however often that was tried.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.health_policy import HealthPolicy, Preserved
from homeostat.model.observed import Presence
from homeostat.model.status import Action, Status
from tests.simulation.health_rows import Member, Reader

Spec = dict[str, Any]
NETWORK = "net"
"""Name of the network of servers whose addresses may be kept."""
CHOICES: tuple[tuple[str, ...], ...] = (
    *(("addresses",), ("addresses",), ("addresses", "volumes"), ("name", "addresses", "ports", "volumes")),
    *(("volumes",), ("ports",), ("name",)),
)
SHOWN_S = 90.0
"""A volume counts as seen by all workers so long after the cloud has shown it: a pass may have begun before."""


def preserving(spec: Spec, rng: random.Random) -> Spec:
    """The policy with what it is to keep, mostly; what is in quarantine keeps that itself."""
    if rng.random() < 0.25:
        return spec
    recovery = {**spec["properties"]["recovery"], "quarantine": False, "preserve": list(rng.choice(CHOICES))}
    return {**spec, "properties": {**spec["properties"], "recovery": recovery}}


class Kept(NamedTuple):
    """What is to be kept of a server; "" and nothing where its policy does not ask for it."""

    handle: str
    network: str = ""
    address: str = ""
    volumes: frozenset[str] = frozenset()

    def fitting(self, policies: list[HealthPolicy]) -> "Kept":
        """Without what one of these policies does not ask for: any of them may be known to who decides."""
        address = self.address if all(Preserved.ADDRESSES in each.preserve for each in policies) else ""
        volumes = self.volumes if all(Preserved.VOLUMES in each.preserve for each in policies) else frozenset()
        return Kept(self.handle, self.network, address, volumes)


class Noted(Protocol):
    """Counts stories."""

    def __setitem__(self, story: str, count: int, /) -> None: ...
    def __getitem__(self, story: str, /) -> int: ...


class KeepingInvariants:
    """Takes: reader, cloud — what is watched; lived — the time of the world; demand — notes what is wrong; happened —
    how often each story happened.

    shown — handle of a server -> volumes beside its own, with the time at which its cloud has shown them first.
    """

    def __init__(
        self,
        reader: Reader,
        cloud: SimulatedCloud,
        lived: Callable[[], float],
        demand: Callable[[object, str], None],
        happened: Noted,
    ) -> None:
        self._reader, self._cloud, self._lived = reader, cloud, lived
        self._demand, self._happened = demand, happened
        self._kept: dict[str, Kept] = {}
        self._unmade: dict[str, Kept] = {}
        self.shown: dict[str, dict[str, float]] = {}

    def saw(self, handle: str, properties: Mapping[str, Any]) -> None:
        """The cloud has shown a server."""
        mine = self.shown.setdefault(handle, {})
        for each in _volumes(properties):
            mine.setdefault(each, self._lived())

    def begins(self, row: Member, policies: list[HealthPolicy]) -> None:
        """A recovery begins: what is seen of the server then is kept; else what it is to keep itself."""
        presence, seen = self._reader.observed(row.key)
        found = self._unmade.get(row.key)
        if row.handle and presence == Presence.PRESENT:
            since = self._lived() - SHOWN_S
            shown = self.shown.get(row.handle, {})
            volumes = frozenset(each for each in _volumes(seen) if shown.get(each, since + 1.0) <= since)
            network = next(iter(seen.get("addresses") or {}), "")
            found = Kept(row.handle, network, str(seen.get("address") or ""), volumes)
        if found is not None and policies:
            self._kept[row.key] = found.fitting(policies)

    def succeeds(self, new: Member, old: Member, *, recovers: bool) -> None:
        """A row is to take the place of another one: recovers — in a recovery, else it counts what that was to keep
        which was never made."""
        kept = self._kept.get(old.key) if recovers else None
        kept = kept or self._unmade.get(old.key)
        if kept is not None and (kept.address or kept.volumes):
            self._unmade[new.key] = kept

    def changed(self, row: Member) -> None:
        """It is judged once it is made."""
        if row.action != Action.CREATE or row.status != Status.COMPLETE or row.key not in self._unmade:
            return
        kept, server = self._unmade.pop(row.key), self._cloud.things("server").get(row.handle)
        if server is None:
            return
        addresses = [each["addr"] for group in server["addresses"].values() for each in group]
        there = not kept.address or kept.address in addresses
        self._demand(there, f"{row.name} is made in the place of {kept}, and has {addresses}: {row}")
        missing = kept.volumes - set(_volumes(server))
        self._demand(not missing, f"{row.name} is made in the place of {kept}, and lacks {missing}: {row}")
        self._happened["kept an address"] += bool(kept.address)
        self._happened["kept a volume"] += bool(kept.volumes)

    def wanted(self) -> list[tuple[str, str]]:
        """Networks and addresses on them that nothing has now, and that are to be kept."""
        things = self._cloud.things()
        held = {
            each["addr"]
            for server in things.values()
            for group in (server.get("addresses") or {}).values()
            for each in group
        }
        held |= {str(each.get("ip_address")) for thing in things.values() for each in thing.get("fixed_ips") or ()}
        kept = (each for each in self._unmade.values() if each.address and each.address not in held)
        return sorted({(each.network, each.address) for each in kept})

    def wanted_volumes(self) -> list[str]:
        """Volumes that are to be kept."""
        return sorted({volume for each in self._unmade.values() for volume in each.volumes})


def _volumes(server: Mapping[str, Any]) -> list[str]:
    return [str(each["id"]) for each in server.get("volumes") or () if not each.get("delete_on_termination")]
