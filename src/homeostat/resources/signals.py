"""What signals mean to a wait condition, and in which form they are kept (engine-semantics.md section 11). Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from homeostat.model.errors import Rejected

SUCCESS, FAILURE = "SUCCESS", "FAILURE"
NATIVE = {"status": "status", "reason": "reason", "data": "data", "id": "id"}
AWS = {"Status": "status", "Reason": "reason", "Data": "data", "UniqueId": "id"}
"""Key of a body -> key of a signal as it is kept: `{id, status, reason, data}`."""
FORMS: Mapping[str, Mapping[str, str]] = {"native": NATIVE, "aws": AWS}


class Transport(StrEnum):
    """Ways in which a server can signal."""

    CFN = "CFN_SIGNAL"
    TEMP_URL = "TEMP_URL_SIGNAL"
    HEAT = "HEAT_SIGNAL"
    NONE = "NO_SIGNAL"
    ZAQAR = "ZAQAR_SIGNAL"
    TOKEN = "TOKEN_SIGNAL"


def normal(form: str, body: Mapping[str, Any] | None, known: int) -> dict[str, Any] | None:
    """A signal as it is kept, None where there is nothing to keep.

    form — of FORMS: every key of `aws` is needed, and no body counts for nothing; none of `native` is needed.
    known — how many ids have signalled before. Fails: Rejected naming what is wrong.
    """
    keys = FORMS[form]
    if form == "aws" and not body:
        return None
    given = dict(body or {})
    unknown = sorted(given.keys() - keys.keys())
    missing = sorted(keys.keys() - given.keys()) if form == "aws" else []
    if unknown or missing:
        wrong = f"unknown are {', '.join(unknown)}" if unknown else f"missing are {', '.join(missing)}"
        raise Rejected("ValueError", f"Metadata format invalid: {wrong}; the keys are {', '.join(keys)}")
    number = known + 1
    signal = {"id": str(number), "status": SUCCESS, "reason": f"Signal {number} received", "data": None}
    signal |= {keys[name]: value for name, value in given.items()}
    if signal["status"] not in (SUCCESS, FAILURE):
        message = f"Metadata format invalid: the status is {SUCCESS} or {FAILURE}, not {signal['status']!r}"
        raise Rejected("ValueError", message)
    signal["id"] = str(signal["id"])
    return signal


def as_metadata(form: str, signals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Metadata of the handle: id -> its last signal, in the words of the form."""
    words = {kept: word for word, kept in FORMS[form].items()}
    names = ("status", "reason", "data")
    return {each["id"]: {words[name]: each.get(name) for name in names} for each in signals}


def of_metadata(form: str, metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a handle with such metadata was told: `as_metadata` the other way round. Anything else is left out."""
    words = {word: kept for word, kept in FORMS[form].items() if kept != "id"}
    told = {id: each for id, each in metadata.items() if isinstance(each, Mapping)}
    found = [{"id": id, **{kept: each.get(word) for word, kept in words.items()}} for id, each in told.items()]
    return [each for each in found if each["status"] in (SUCCESS, FAILURE)]


def data_of(signals: Sequence[Mapping[str, Any]]) -> str:
    """JSON of id -> data."""
    return json.dumps({each["id"]: each.get("data") for each in signals})


@dataclass(frozen=True, slots=True)
class SignalCount:
    """How far a wait condition is. count — ids that have told success; failures — reasons of those that have not."""

    count: int = 0
    reasons: Sequence[str] = ()
    failures: Sequence[str] = field(default_factory=tuple)


def standing(signals: Sequence[Mapping[str, Any]], wanted: int, until: float) -> SignalCount:
    """What has come by a time, up to the signal that has settled it: a failure, or enough successes.

    What comes later changes nothing: a condition that was met once stays met. signals — each with `at`.
    """
    latest: dict[str, Mapping[str, Any]] = {}
    for each in signals:
        if each["at"] > until:
            break
        latest[each["id"]] = each
        failed = [str(one.get("reason")) for one in latest.values() if one["status"] != SUCCESS]
        if failed or len(latest) >= wanted:
            return SignalCount(len(latest) - len(failed), _reasons(latest), failed)
    return SignalCount(len(latest), _reasons(latest))


def _reasons(latest: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [str(each.get("reason")) for each in latest.values()]
