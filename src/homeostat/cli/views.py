"""Values that the pictures are made of: stacks and resources as the wire gives them, read into types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

IN_PROGRESS = "IN_PROGRESS"
COMPLETE = "COMPLETE"
FAILED = "FAILED"
UNTOLD = "state changed"
"""What the wire says when there is no reason to give."""

Key = tuple[str, str]
"""Stack id and resource name."""


@dataclass(frozen=True, slots=True)
class ResourceView:
    """One resource. parent — key name of the owning resource in the parent stack; waiting — what it waits for, as the
    service says; presence, seen, seen_at — what the last look that brought news told; since, seen_at — seconds since
    the epoch; leftovers — of the same name, on their way out."""

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
        """Wanted, and nothing was done for it yet."""
        return self.action == "INIT" and self.status == COMPLETE

    @property
    def state(self) -> str:
        return "waiting to begin" if self.begins else f"{self.action} {self.status}".replace("_", " ")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stack at one moment. stack, wires — it and its resources as on the wire; resources — the same, read;
    explanation — of the stack, as on the wire, where it was asked for."""

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
        """From what the wire says."""
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
        """At rest where the user wanted it: a rollback is not."""
        return self.status == COMPLETE and self.action != "ROLLBACK"


def read_resource(wire: Mapping[str, Any]) -> ResourceView:
    action, _, status = wire["resource_status"].partition("_")
    links = {link["rel"]: link["href"] for link in wire.get("links", ())}
    leftovers = ({"resource_name": wire["resource_name"], **each} for each in wire.get("leftovers") or ())
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
        waiting="" if waiting == UNTOLD else waiting,
        presence=observed.get("presence") or "",
        seen=observed.get("reason") or "",
        seen_at=seconds(observed.get("seen_at")),
        leftovers=tuple(read_resource(each) for each in leftovers),
    )


def stack_of(resource: Mapping[str, Any]) -> dict[str, str]:
    """Name and id of the stack of a resource, as its links tell."""
    address = next(link["href"] for link in resource["links"] if link["rel"] == "stack").rstrip("/")
    rest, _, identity = address.rpartition("/")
    return {"stack_name": unquote(last_part(rest)), "id": identity}


def seconds(at: str | float | None) -> float | None:
    """Seconds since the epoch of a time on the wire."""
    if at is None or isinstance(at, (int, float)):
        return at
    return datetime.fromisoformat(at).timestamp()


def lasting(duration_s: float) -> str:
    """`0.4s`, `12s`, `3m 05s`, `2h 10m`, `3d 4h`: what fits in a column."""
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
    """Of the path of an address."""
    return url.rstrip("/").rpartition("/")[2]
