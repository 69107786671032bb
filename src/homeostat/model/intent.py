"""Intents: the next act on a row's thing, stored before the request to the cloud (invariant 3, CONTRIBUTING.md).

A row has at most one intent; only `load` and `dump` know its JSON. The functions below accept an intent of any type.
Each tests the truth of the intent first: for a cell that cannot be decrypted, `bool` raises `Unreadable`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from homeostat.model.errors import Bug
from homeostat.model.record import record

AdoptionData = Mapping[str, Any]
"""Entry of a resource in an exported document: `{"action", "status", "metadata", "data"}`; of a nested stack
`{"document"}`."""


@record
class ChangeIntent:
    """The thing is created, updated or adopted.

    Attributes:
        changed: Names of the fields of the cloud's object that differ.
        stamp: Distinguishes acts on a nested stack, which ignores a repeated stamp; None for other things.
        adopts: Adoption data, until the adoption is complete.
        late_s: Seconds for which a creation without an answer may still be carried out, see `errors.Uncertain`.
    """

    changed: tuple[str, ...] = ()
    stamp: int | None = None
    adopts: AdoptionData | None = None
    late_s: float = 0.0


@dataclass(frozen=True, slots=True)
class OperationIntent:
    """An operation of the cloud port is carried out on the thing.

    Attributes:
        stamp: See `ChangeIntent`.
        token: The token of the snapshot that the operation takes.
        arguments: Arguments of the operation, see `kinds`; a repetition uses the same.
    """

    operation: str
    stamp: int | None = None
    token: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SnapshotMade:
    """The snapshot before the deletion is complete, with this id: the thing may be deleted."""

    snapshot: str


PARTS_FIRST = "delete_parts_first"
"""Operation of an intent if a thing could not be deleted together with its parts: the parts are deleted first."""


FENCE = "fence"
"""Operation of an intent that fences a thing before its replacement is created."""


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """The thing differs from the desired state for this reason, and is left alone."""

    reason: str


@dataclass(frozen=True, slots=True)
class AdoptionIntent:
    """The row is to adopt an existing thing; the adoption has not begun."""

    adopts: AdoptionData


Intent = ChangeIntent | OperationIntent | SnapshotMade | LeftAlone | AdoptionIntent


def load(stored: Mapping[str, Any]) -> Intent | None:
    """Return the intent of a row from its JSON."""
    if "operation" in stored:
        arguments = stored.get("arguments", {})
        return OperationIntent(stored["operation"], stored.get("stamp"), stored.get("token", ""), arguments)
    if "changed" in stored:
        late_s = float(stored.get("late_s", 0.0))
        return ChangeIntent(tuple(stored["changed"]), stored.get("stamp"), stored.get("given"), late_s)
    if "snapshot" in stored:
        return SnapshotMade(stored["snapshot"])
    if "left" in stored:
        return LeftAlone(stored["left"])
    if "given" in stored:
        return AdoptionIntent(stored["given"])
    if stored:
        raise Bug(f"a row has an intent that this version does not know: {sorted(stored)}")
    return None


def dump(intent: Intent) -> dict[str, Any]:
    """Return the JSON of an intent."""
    match intent:
        case OperationIntent(operation, stamp, token, arguments):
            stored: dict[str, Any] = {"operation": operation} | ({} if stamp is None else {"stamp": stamp})
            stored |= {"token": token} if token else {}
            return stored | ({"arguments": dict(arguments)} if arguments else {})
        case ChangeIntent(changed, stamp, adopts, late_s):
            stored = {"changed": list(changed)} | ({} if stamp is None else {"stamp": stamp})
            stored |= {"late_s": late_s} if late_s else {}
            return stored if adopts is None else {**stored, "given": adopts}
        case SnapshotMade(snapshot):
            return {"snapshot": snapshot}
        case LeftAlone(reason):
            return {"left": reason}
        case AdoptionIntent(adopts):
            return {"given": adopts}


def operation_of(intent: Intent | None) -> str:
    """Return the intended operation; "" for none."""
    return intent.operation if intent and isinstance(intent, OperationIntent) else ""


def arguments_of(intent: Intent | None) -> dict[str, Any]:
    """Return the arguments of the intended operation; empty for none."""
    return dict(intent.arguments) if intent and isinstance(intent, OperationIntent) else {}


def changed_of(intent: Intent | None) -> tuple[str, ...]:
    """Return the fields to change."""
    return intent.changed if intent and isinstance(intent, ChangeIntent) else ()


def late_s_of(intent: Intent | None) -> float:
    """Return the seconds for which a creation without an answer may still be carried out."""
    return intent.late_s if intent and isinstance(intent, ChangeIntent) else 0.0


def with_late_s(intent: Intent | None, late_s: float) -> Intent | None:
    """Return the intent of a creation with `late_s` set."""
    return replace(intent, late_s=late_s) if intent and isinstance(intent, ChangeIntent) else intent


def stamp_of(intent: Intent | None) -> int | None:
    """Return the stamp of an act on a nested stack; None for none."""
    return intent.stamp if intent and isinstance(intent, ChangeIntent | OperationIntent) else None


def token_of(intent: Intent | None, operation: str) -> str:
    """Return the token of an intended operation; "" for none, or for another operation."""
    return intent.token if intent and isinstance(intent, OperationIntent) and intent.operation == operation else ""


def snapshot_of(intent: Intent | None) -> str:
    """Return the id of the snapshot after which the thing may be deleted; "" for none."""
    return intent.snapshot if intent and isinstance(intent, SnapshotMade) else ""


def left_alone_for(intent: Intent | None) -> str:
    """Return the reason of a `LeftAlone`; "" for any other intent."""
    return intent.reason if intent and isinstance(intent, LeftAlone) else ""


def adoption_of(intent: Intent | None) -> AdoptionData | None:
    """Return the adoption data; None for no adoption."""
    return intent.adopts if intent and isinstance(intent, ChangeIntent | AdoptionIntent) else None


def with_adoption(intent: Intent | None, data: AdoptionData) -> Intent:
    """Return the intent with adoption data."""
    return replace(intent, adopts=data) if intent and isinstance(intent, ChangeIntent) else AdoptionIntent(data)


def without_adoption(intent: Intent | None) -> Intent | None:
    """Return the rest of an intent after its adoption is complete."""
    if intent and isinstance(intent, AdoptionIntent):
        return None
    return replace(intent, adopts=None) if intent and isinstance(intent, ChangeIntent) else intent
