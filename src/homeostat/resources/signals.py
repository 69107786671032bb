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
    """Convert the body of a signal to the stored form; None if there is nothing to store.

    Args:
        form: Key of `FORMS`. In `aws` every key is needed, and an empty body is ignored; in `native` none is needed.
        body: The body; None or empty for none.
        known: Number of ids that have signalled before; numbers a signal without an id.

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
    """Return data and id of a signal's body: either may be the id of a member of a group."""
    fields = {field: body.get(name) for name, field in FORMS[form].items()}
    return [str(fields[field]) for field in ("data", "id") if fields[field] not in (None, "")]


def alarm_of(body: Mapping[str, Any] | None) -> str | None:
    """Return the message of a firing alarm, "" for an alarm that does not fire, None for any other body.

    Alarms of Aodh report their new state (`current`); Prometheus' Alertmanager reports whether its alerts fire
    (`status`), and their names (`alerts`).
    """
    values = body or {}
    if isinstance(values.get("current"), str):
        named = values.get("alarm_name") or values.get("alarm_id") or "an alarm"
        return f"{named}: {values.get('reason', 'it fires')}" if values["current"] == "alarm" else ""
    if values.get("status") in ("firing", "resolved") and isinstance(values.get("alerts"), list):
        if values["status"] == "resolved":
            return ""
        labels = [alert.get("labels") for alert in values["alerts"] if isinstance(alert, Mapping)]
        names = [str(entry.get("alertname")) for entry in labels if isinstance(entry, Mapping)]
        return f"{', '.join(dict.fromkeys(names)) or 'an alert'} fires"
    return None


def as_metadata(form: str, signals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metadata of a handle: id -> its last signal, with the keys of the form."""
    words = {field: word for word, field in FORMS[form].items()}
    names = ("status", "reason", "data")
    return {signal["id"]: {words[name]: signal.get(name) for name in names} for signal in signals}


def of_metadata(form: str, metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the signals in the metadata of a handle, the inverse of `as_metadata`.

    Entries that are not signals are left out.
    """
    words = {word: field for word, field in FORMS[form].items() if field != "id"}
    entries = {id: entry for id, entry in metadata.items() if isinstance(entry, Mapping)}
    signals = [{"id": id, **{field: entry.get(word) for word, field in words.items()}} for id, entry in entries.items()]
    return [signal for signal in signals if signal["status"] in (SUCCESS, FAILURE)]


def data_of(signals: Sequence[Mapping[str, Any]]) -> str:
    """Return id -> data of the signals as JSON."""
    return json.dumps({signal["id"]: signal.get("data") for signal in signals})


@dataclass(frozen=True, slots=True)
class SignalCount:
    """Progress of a wait condition.

    Attributes:
        count: Number of ids that signalled success.
        reasons: Reasons of the first ids.
        failures: Reason of the first failure.
    """

    count: int = 0
    reasons: Sequence[str] = ()
    failures: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over the signals of a handle. Times are seconds since the epoch.

    Attributes:
        signals: Number of signals.
        senders: Number of different ids.
        size: Total size as JSON, in bytes.
        failed_at: Time of the first failure; None if all succeeded.
        failed_after: Number of ids that had signalled before the first failure.
        failure: Reason of the first failure, shortened.
    """

    signals: int = 0
    senders: int = 0
    size: int = 0
    failed_at: float | None = None
    failed_after: int = 0
    failure: str = ""

    def with_signal(self, signal: Mapping[str, Any], at: float, size: int, *, is_new: bool) -> "Tally":
        """Count another signal, in the stored form; `is_new`: no earlier signal has its id."""
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
    """Return the reason of a signal, cut to `REASON_MAX` characters."""
    text = str(reason)
    return text if len(text) <= REASON_MAX else f"{text[:REASON_MAX]}…"


def heard(tally: Tally, wanted: int, reached_at: float | None, reasons: Sequence[str]) -> dict[str, Any]:
    """Return the summary of signals that a wait condition shows, bounded however many and large the signals are.

    Args:
        tally: Counts over the signals.
        wanted: Number of ids that the condition waits for.
        reached_at: Time of the last id waited for; None before.
        reasons: Reasons of the first ids.
    """
    failure = {"failed_at": tally.failed_at, "failed_after": tally.failed_after, "failure": tally.failure}
    return {
        **{"signals": tally.signals, "senders": tally.senders, "wanted": wanted, "reached_at": reached_at},
        **({} if tally.failed_at is None else failure),
        "reasons": list(reasons)[:REASONS_SHOWN],
    }


def count_heard(report: Mapping[str, Any], wanted: int, until: float) -> SignalCount:
    """Count the signals up to a time, or up to the signal that settled the condition: a failure, or enough successes.

    Later signals change nothing: a condition that was met stays met.

    Args:
        report: See `heard`.
        wanted: Number of successes needed.
        until: Time up to which signals count.
    """
    senders, reasons = int(report["senders"]), report["reasons"]
    # Right after `wanted` has changed, the stored report still belongs to the former number: ignore its time.
    reached_at = report["reached_at"] if report["wanted"] == wanted else None
    failed_at = report.get("failed_at")
    is_met = reached_at is not None and reached_at <= until
    if failed_at is not None and failed_at <= until and not (is_met and wanted <= report["failed_after"]):
        return SignalCount(int(report["failed_after"]), reasons, [report["failure"]])
    # Signals after `until` are included in `senders`, but cannot meet the condition: `reached_at` says it is not met.
    return SignalCount(wanted if is_met else min(senders, max(wanted - 1, 0)), reasons)


def tallied(signals: Sequence[Mapping[str, Any]], wanted: int) -> dict[str, Any]:
    """Return the report of a condition (`heard`) on signals in the stored form, each with `at`, in order of arrival."""
    tally, senders = Tally(), dict[str, Mapping[str, Any]]()
    for signal in signals:
        tally = tally.with_signal(signal, signal["at"], 0, is_new=signal["id"] not in senders)
        senders.setdefault(signal["id"], signal)
    first = list(senders.values())
    reached_at = first[wanted - 1]["at"] if 0 < wanted <= len(first) else None
    return heard(tally, wanted, reached_at, [shortened(signal.get("reason")) for signal in first[:REASONS_SHOWN]])
