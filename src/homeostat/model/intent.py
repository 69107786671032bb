"""Intents: what is about to be done for a row, stored before the cloud hears of it (invariant 3, CONTRIBUTING.md).

A row has at most one. `load` and `dump` alone know its JSON. The functions below read a part of an intent whatever its
type is. They look at the truth of the intent first: one whose cell cannot be decrypted raises `Unreadable` then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from homeostat.model.errors import Bug

AdoptionData = Mapping[str, Any]
"""Entry of a resource in an exported document: `{"action", "status", "metadata", "data"}`; of a nested stack
`{"document"}`."""


@dataclass(frozen=True, slots=True)
class ChangeIntent:
    """The thing is created, updated or adopted.

    Attributes:
        changed: Names of the fields of the cloud's object that differ.
        stamp: Tells this act from an earlier one on the same nested stack, which would not repeat it; None for none.
        adopts: What is adopted, until that is done.
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
        operation: The operation.
        stamp: See `ChangeIntent`.
        token: The token of the snapshot that the operation makes.
        arguments: Arguments of the operation, see `kinds`: it is repeated with the same ones.
    """

    operation: str
    stamp: int | None = None
    token: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SnapshotMade:
    """The snapshot that comes before the deletion is complete, with this id: the thing may be deleted."""

    snapshot: str


PARTS_FIRST = "delete_parts_first"
"""Operation of the intent of a thing that could not be deleted together with its parts: they are deleted before it."""


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """The thing is not as it should be for this reason, and is left so."""

    reason: str


@dataclass(frozen=True, slots=True)
class AdoptionIntent:
    """The row is to adopt an existing thing; nothing was begun."""

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
    """Return the operation that is intended; "" for none."""
    return intent.operation if intent and isinstance(intent, OperationIntent) else ""


def arguments_of(intent: Intent | None) -> dict[str, Any]:
    """Return the arguments of the operation that is intended; empty for none."""
    return dict(intent.arguments) if intent and isinstance(intent, OperationIntent) else {}


def changed_of(intent: Intent | None) -> tuple[str, ...]:
    """Return the fields that are to be changed."""
    return intent.changed if intent and isinstance(intent, ChangeIntent) else ()


def late_s_of(intent: Intent | None) -> float:
    """Return the seconds for which a creation without an answer may still be carried out."""
    return intent.late_s if intent and isinstance(intent, ChangeIntent) else 0.0


def with_late_s(intent: Intent | None, late_s: float) -> Intent | None:
    """Return the intent of a creation that may still be carried out for so long."""
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
    """Return why a thing that is not as it should be is left so; "" for none."""
    return intent.reason if intent and isinstance(intent, LeftAlone) else ""


def adoption_of(intent: Intent | None) -> AdoptionData | None:
    """Return what is to be adopted; None for nothing."""
    return intent.adopts if intent and isinstance(intent, ChangeIntent | AdoptionIntent) else None


def with_adoption(intent: Intent | None, data: AdoptionData) -> Intent:
    """Return the intent, to adopt this as well."""
    return replace(intent, adopts=data) if intent and isinstance(intent, ChangeIntent) else AdoptionIntent(data)


def without_adoption(intent: Intent | None) -> Intent | None:
    """Return what is left of an intent once the adoption is done."""
    if intent and isinstance(intent, AdoptionIntent):
        return None
    return replace(intent, adopts=None) if intent and isinstance(intent, ChangeIntent) else intent
