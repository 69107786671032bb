"""Progress of a resource through its hooks, as its row stores it. `load` and `dump` alone know its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class HookProgress:
    """State of a row's hooks, for one revision of its stack and for its later deletion.

    Attributes:
        revision: The revision concerned by all fields but `of_deletion`, if any.
        at: The hook at which the resource has stopped; "" for none.
        since: Time of that stop, in seconds since the epoch.
        cleared: The hooks already passed.
        due: The hook at which the resource stops once complete; "" for none.
        of_deletion: The hooks of its deletion.
    """

    revision: int | None = None
    at: str = ""
    since: float = 0.0
    cleared: tuple[str, ...] = ()
    due: str = ""
    of_deletion: tuple[str, ...] = ()


NO_HOOKS = HookProgress()


def load(stored: Mapping[str, Any]) -> HookProgress:
    """Return the progress of a row from its JSON."""
    return HookProgress(
        stored.get("revision"),
        stored.get("at", ""),
        stored.get("since", 0.0),
        tuple(stored.get("cleared", ())),
        stored.get("due", ""),
        tuple(stored.get("leaving", ())),
    )


def dump(progress: HookProgress) -> dict[str, Any]:
    """Return the JSON of the progress of a row."""
    stored: dict[str, Any] = {} if progress.revision is None else {"revision": progress.revision}
    if progress.at:
        stored |= {"at": progress.at, "since": progress.since}
    if progress.cleared:
        stored["cleared"] = list(progress.cleared)
    if progress.due:
        stored["due"] = progress.due
    if progress.of_deletion:
        stored["leaving"] = list(progress.of_deletion)
    return stored
