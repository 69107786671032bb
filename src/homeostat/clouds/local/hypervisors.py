"""This machine, the only host of the local cloud."""

import platform
import time
from collections.abc import Sequence

from homeostat.clouds.local.family import Family
from homeostat.clouds.port import Answer, Change, Creation, Operation
from homeostat.model.errors import Terminal
from homeostat.model.observed import Observation, Presence

HOST = platform.node() or "localhost"
"""Name of the host."""
READ_ONLY = Terminal("a hypervisor is only looked at")
ONE_HOST = Terminal(f"the local cloud has one host, {HOST}: there is no other one to evacuate a server to")


class Hypervisors(Family):
    """The host, which is always up; it has no record."""

    kind = "hypervisor"

    def observe(self, handles: Sequence[str]) -> list[Observation]:
        return [_seen(handle) for handle in handles]

    def find(self, tokens: Sequence[str]) -> list[Observation]:
        return [_seen("") for _ in tokens]

    def create(self, intents: Sequence[Creation]) -> list[Answer]:
        return [READ_ONLY] * len(intents)

    def update(self, changes: Sequence[Change]) -> list[Answer]:
        return [READ_ONLY] * len(changes)

    def delete(self, handles: Sequence[str]) -> list[Answer]:
        return [READ_ONLY] * len(handles)

    def operate(self, operations: Sequence[Operation]) -> list[Answer]:
        return [READ_ONLY] * len(operations)


def _seen(handle: str) -> Observation:
    now = time.time()
    if handle != HOST:
        return Observation(Presence.ABSENT, handle, seen_at=now, reason="there is no such hypervisor")
    fields = {
        "id": HOST,
        "name": HOST,
        "state": "up",
        "status": "enabled",
        "forced_down": False,
        "updated_at": now,
        "blind": "",
    }
    return Observation(Presence.PRESENT, HOST, fields, now)
