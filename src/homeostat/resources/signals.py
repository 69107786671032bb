"""Signals: their stored form, and their meaning for wait conditions, as in Heat. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from homeostat.model.errors import Rejected

SUCCESS, FAILURE = "SUCCESS", "FAILURE"
REASON_MAX, REASONS_SHOWN = 1000, 10
"""Characters of a reason that a wait condition shows, and how many reasons."""
NATIVE = {"status": "status", "reason": "reason", "data": "data", "id": "id"}
AWS = {"Status": "status", "Reason": "reason", "Data": "data", "UniqueId": "id"}
"""Key of a body -> key of a stored signal, which is `{id, status, reason, data}`."""
FORMS: Mapping[str, Mapping[str, str]] = {"native": NATIVE, "aws": AWS}


class Transport(StrEnum):
    """Way in which a server sends signals."""

    CFN = "CFN_SIGNAL"
    TEMP_URL = "TEMP_URL_SIGNAL"
    HEAT = "HEAT_SIGNAL"
    NONE = "NO_SIGNAL"
    ZAQAR = "ZAQAR_SIGNAL"
    TOKEN = "TOKEN_SIGNAL"


def normal(form: str, body: Mapping[str, Any] | None, known: int) -> dict[str, Any] | None:
    """Convert the body of a signal to the stored form; None where there is nothing to store.

    Args:
        form: Key of `FORMS`. In `aws` every key is needed, and an empty body is ignored; in `native` none is needed.
        body: The body; None or empty for none.
        known: Number of ids that have signalled before; gives a signal without an id its id.

    Raises:
        Rejected: The body has unknown or missing keys, or a wrong status.
    """
    keys = FORMS[form]
    if form == "aws" and not body:
        return None
    values = dict(body or {})
    unknown = sorted(values.keys() - keys.keys())
    missing = sorted(keys.keys() - values.keys()) if form == "aws" else []
    if unknown or missing:
        wrong = f"unknown are {', '.join(unknown)}" if unknown else f"missing are {', '.join(missing)}"
        raise Rejected("ValueError", f"Metadata format invalid: {wrong}; the keys are {', '.join(keys)}")
    number = known + 1
    signal = {"id": str(number), "status": SUCCESS, "reason": f"Signal {number} received", "data": None}
    signal |= {keys[name]: value for name, value in values.items()}
    if signal["status"] not in (SUCCESS, FAILURE):
        message = f"Metadata format invalid: the status is {SUCCESS} or {FAILURE}, not {signal['status']!r}"
        raise Rejected("ValueError", message)
    signal["id"] = str(signal["id"])
    return signal


def named(form: str, body: Mapping[str, Any]) -> list[str]:
    """Return what the body of a signal gives as its data and as its id: either may be the id of a member of a group."""
    given = {field: body.get(name) for name, field in FORMS[form].items()}
    return [str(given[field]) for field in ("data", "id") if given[field] not in (None, "")]


def alarm_of(body: Mapping[str, Any] | None) -> str | None:
    """Return what an alarm says that fires, "" for an alarm that does not, None for a body that is no alarm's.

    Alarms of Aodh say which state they have come to (`current`); those of Prometheus' Alertmanager whether they fire
    (`status`), and which they are (`alerts`).
    """
    values = body or {}
    if isinstance(values.get("current"), str):
        named = values.get("alarm_name") or values.get("alarm_id") or "an alarm"
        return f"{named}: {values.get('reason', 'it fires')}" if values["current"] == "alarm" else ""
    if values.get("status") in ("firing", "resolved") and isinstance(values.get("alerts"), list):
        if values["status"] == "resolved":
            return ""
        labels = [each.get("labels") for each in values["alerts"] if isinstance(each, Mapping)]
        names = [str(each.get("alertname")) for each in labels if isinstance(each, Mapping)]
        return f"{', '.join(dict.fromkeys(names)) or 'an alert'} fires"
    return None


def as_metadata(form: str, signals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metadata of a handle: id -> its last signal, with the keys of the form."""
    words = {field: word for word, field in FORMS[form].items()}
    names = ("status", "reason", "data")
    return {each["id"]: {words[name]: each.get(name) for name in names} for each in signals}


def of_metadata(form: str, metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the signals that such metadata of a handle stands for, the inverse of `as_metadata`.

    Entries that are not signals are left out.
    """
    words = {word: field for word, field in FORMS[form].items() if field != "id"}
    shown = {id: each for id, each in metadata.items() if isinstance(each, Mapping)}
    found = [{"id": id, **{field: each.get(word) for word, field in words.items()}} for id, each in shown.items()]
    return [each for each in found if each["status"] in (SUCCESS, FAILURE)]


def data_of(signals: Sequence[Mapping[str, Any]]) -> str:
    """Return id -> data of the signals as JSON."""
    return json.dumps({each["id"]: each.get("data") for each in signals})


@dataclass(frozen=True, slots=True)
class SignalCount:
    """Progress of a wait condition.

    Attributes:
        count: Number of ids that signalled success.
        reasons: Reasons of the first of them.
        failures: Reason of the first signal of a failure.
    """

    count: int = 0
    reasons: Sequence[str] = ()
    failures: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """What is counted of the signals of a handle. Times are seconds since the epoch.

    Attributes:
        signals: How many came.
        senders: How many different ids they have.
        size: Their bytes as JSON.
        failed_at: When the first of a failure came; None where none did.
        failed_after: How many ids had signalled before that one.
        failure: Its reason, shortened.
    """

    signals: int = 0
    senders: int = 0
    size: int = 0
    failed_at: float | None = None
    failed_after: int = 0
    failure: str = ""

    def with_signal(self, signal: Mapping[str, Any], at: float, size: int, *, is_new: bool) -> "Tally":
        """Count one more signal, in the stored form; is_new: whether it is the first one with its id."""
        failed = self.failed_at is None and signal["status"] != SUCCESS
        return Tally(
            self.signals + 1,
            self.senders + is_new,
            self.size + size,
            at if failed else self.failed_at,
            self.senders if failed else self.failed_after,
            shortened(signal.get("reason")) if failed else self.failure,
        )


def shortened(reason: Any) -> str:
    """Return what a signal says as it is shown where others are shown, too."""
    text = str(reason)
    return text if len(text) <= REASON_MAX else f"{text[:REASON_MAX]}…"


def heard(tally: Tally, wanted: int, reached_at: float | None, reasons: Sequence[str]) -> dict[str, Any]:
    """Return what a wait condition shows of the signals that came, however many and large they are.

    Args:
        tally: What is counted of them.
        wanted: Number of ids that the condition waits for.
        reached_at: When the last of these came; None before.
        reasons: Reasons of the first ids.
    """
    failure = {"failed_at": tally.failed_at, "failed_after": tally.failed_after, "failure": tally.failure}
    return {
        **{"signals": tally.signals, "senders": tally.senders, "wanted": wanted, "reached_at": reached_at},
        **({} if tally.failed_at is None else failure),
        "reasons": list(reasons)[:REASONS_SHOWN],
    }


def count_heard(shown: Mapping[str, Any], wanted: int, until: float) -> SignalCount:
    """Count the signals up to a time, or up to the one that settled the condition: a failure, or enough successes.

    Later signals change nothing: a condition that was met stays met.

    Args:
        shown: See `heard`.
        wanted: Number of successes needed.
        until: Time up to which signals count.
    """
    senders, reasons = int(shown["senders"]), shown["reasons"]
    # Where the condition has just begun to wait for another number, what it shows follows in a moment.
    reached_at = shown["reached_at"] if shown["wanted"] == wanted else None
    failed_at = shown.get("failed_at")
    is_met = reached_at is not None and reached_at <= until
    if failed_at is not None and failed_at <= until and not (is_met and wanted <= shown["failed_after"]):
        return SignalCount(int(shown["failed_after"]), reasons, [shown["failure"]])
    # Those that came too late are not told apart: there are fewer than enough that did not.
    return SignalCount(wanted if is_met else min(senders, max(wanted - 1, 0)), reasons)


def tallied(signals: Sequence[Mapping[str, Any]], wanted: int) -> dict[str, Any]:
    """Return what a condition shows (`heard`) of signals in the stored form, each with `at`, in order of arrival."""
    tally, senders = Tally(), dict[str, Mapping[str, Any]]()
    for each in signals:
        tally = tally.with_signal(each, each["at"], 0, is_new=each["id"] not in senders)
        senders.setdefault(each["id"], each)
    first = list(senders.values())
    reached_at = first[wanted - 1]["at"] if 0 < wanted <= len(first) else None
    return heard(tally, wanted, reached_at, [shortened(each.get("reason")) for each in first[:REASONS_SHOWN]])
