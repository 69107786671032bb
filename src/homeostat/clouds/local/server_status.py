"""The status of a server, from its desired power and the state of its process."""

import time
from typing import Any

from homeostat.clouds.local import processes
from homeostat.clouds.local.family import Facts
from homeostat.clouds.local.tree import ThingRecord
from homeostat.model.errors import Terminal

BUILD_S = 10.0
"""Seconds for which a server without a process counts as being built; later, its builder must have died."""
STILL = {"paused": "unpause", "suspended": "resume"}
"""Power of a server with stopped processes -> the operation that continues them."""
LIVE = frozenset({"running", "rescue"})
"""Power of a server with running processes."""
SHOWN = {*STILL, "rescue"}
"""Power that is also the status, if the server's processes live."""


def status_of(record: ThingRecord, alive: processes.Life | None) -> tuple[str, str | None]:
    """Return status and fault."""
    facts = record.facts
    if facts.get("deleting"):
        return "deleting", None
    if alive and not facts["wipe"]:
        running = "active" if alive.booted else "building"
        return (facts["power"] if facts["power"] in SHOWN else running), None
    if facts["power"] == "stopped":
        return "stopped", None
    if facts["pid"] is not None:
        return "stopped", f"its process ended (was pid {facts['pid']})"
    if time.time() - facts["begun_at"] < BUILD_S:
        return "building", None
    return "stopped", "its start was interrupted"


def reborn(**facts: Any) -> Facts:
    """Return the facts of a server whose guest is about to start."""
    return {"begun_at": time.time(), "pid": None, **facts}


def refuse_if_locked(record: ThingRecord, participle: str) -> None:
    if record.facts.get("locked"):
        raise Terminal(f"server {record.id} is locked and cannot be {participle}: unlock it first")
