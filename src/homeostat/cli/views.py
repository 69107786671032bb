"""Stacks and resources of the API, parsed into types for rendering."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

IN_PROGRESS = "IN_PROGRESS"
COMPLETE = "COMPLETE"
FAILED = "FAILED"
NO_REASON = "state changed"
"""The reason in the API if there is none."""

Key = tuple[str, str]
"""Stack id and resource name."""


@dataclass(frozen=True, slots=True)
class ResourceView:
    """A resource.

    Attributes:
        since: Last change, in seconds since the epoch.
        parent: Name of the owning resource in the parent stack.
        nested: Id of the nested stack.
        waiting: Reason to wait, in the service's words.
        presence: From the last observation with a change.
        seen: Reason of this observation.
        seen_at: Time of this observation, in seconds since the epoch.
        leftovers: Rows of the same name whose things are being removed.
    """

    stack: str
    name: str
    type: str
    action: str
    status: str
    reason: str = ""
    handle: str = ""
    required_by: tuple[str, ...] = ()
    since: float | None = None
    parent: str = ""
    nested: str = ""
    waiting: str = ""
    presence: str = ""
    seen: str = ""
    seen_at: float | None = None
    leftovers: "tuple[ResourceView, ...]" = ()

    @property
    def key(self) -> Key:
        return self.stack, self.name

    @property
    def at_rest(self) -> bool:
        return self.status == COMPLETE and not self.begins

    @property
    def begins(self) -> bool:
        """Whether the creation of the resource has not begun."""
        return self.action == "INIT" and self.status == COMPLETE

    @property
    def state(self) -> str:
        return "waiting to begin" if self.begins else f"{self.action} {self.status}".replace("_", " ")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stack at one moment.

    Attributes:
        stack: In the format of the API.
        resources: Parsed.
        wires: The same resources in the format of the API.
        explanation: In the format of the API, if requested.
    """

    stack: Mapping[str, Any]
    resources: Sequence[ResourceView] = ()
    wires: Sequence[Mapping[str, Any]] = ()
    explanation: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls,
        stack: Mapping[str, Any],
        wires: Sequence[Mapping[str, Any]],
        explanation: Mapping[str, Any] | None = None,
    ) -> "Snapshot":
        """Parse the API's response."""
        return cls(stack, [read_resource(wire) for wire in wires], wires, explanation)

    @property
    def name(self) -> str:
        return str(self.stack["stack_name"])

    @property
    def action(self) -> str:
        return str(self.stack["stack_status"]).partition("_")[0]

    @property
    def status(self) -> str:
        return str(self.stack["stack_status"]).partition("_")[2]

    @property
    def at_rest(self) -> bool:
        return self.status != IN_PROGRESS

    @property
    def gone(self) -> bool:
        return (self.action, self.status) == ("DELETE", COMPLETE)

    def succeeded(self) -> bool:
        """Return whether the stack is at rest in the state that the user wanted; after a rollback, it is not."""
        return self.status == COMPLETE and self.action != "ROLLBACK"


def read_resource(wire: Mapping[str, Any]) -> ResourceView:
    action, _, status = wire["resource_status"].partition("_")
    links = {link["rel"]: link["href"] for link in wire.get("links", ())}
    leftovers = ({"resource_name": wire["resource_name"], **leftover} for leftover in wire.get("leftovers") or ())
    observed = wire.get("observed") or {}
    waiting = wire.get("waiting") or ""
    return ResourceView(
        stack=last_part(links.get("stack", "")),
        name=wire["resource_name"],
        type=wire["resource_type"],
        action=action,
        status=status,
        reason=wire.get("resource_status_reason") or "",
        handle=wire.get("physical_resource_id") or "",
        required_by=tuple(wire.get("required_by") or ()),
        since=seconds(wire.get("updated_time") or wire.get("creation_time")),
        parent=wire.get("parent_resource") or "",
        nested=last_part(links.get("nested", "")),
        waiting="" if waiting == NO_REASON else waiting,
        presence=observed.get("presence") or "",
        seen=observed.get("reason") or "",
        seen_at=seconds(observed.get("seen_at")),
        leftovers=tuple(read_resource(leftover) for leftover in leftovers),
    )


def stack_of(resource: Mapping[str, Any]) -> dict[str, str]:
    """Return name and id of a resource's stack, from its links."""
    address = next(link["href"] for link in resource["links"] if link["rel"] == "stack").rstrip("/")
    rest, _, identity = address.rpartition("/")
    return {"stack_name": unquote(last_part(rest)), "id": identity}


def seconds(at: str | float | None) -> float | None:
    """Parse a time of the API into seconds since the epoch."""
    if at is None or isinstance(at, (int, float)):
        return at
    return datetime.fromisoformat(at).timestamp()


def lasting(duration_s: float) -> str:
    """Format a duration for a column: `0.4s`, `12s`, `3m 05s`, `2h 10m`, `3d 4h`."""
    if duration_s < 9.95:
        return f"{max(0.0, duration_s):.1f}s"
    whole = int(duration_s)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"


def last_part(url: str) -> str:
    """Return the last part of a URL's path."""
    return url.rstrip("/").rpartition("/")[2]
