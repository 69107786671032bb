"""Reports of members and alarms to rollouts: signals to a handle that a rollout waits for (RU6).

Concurrent reports to a handle are stored by a single transaction (ADR 0066), and answered afterwards.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.resources import signals
from homeostat.resources.families.wait_conditions import HANDLE
from homeostat.store import events
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Record
from homeostat.store.database import Database, Statements, Transaction
from homeostat.store.sql.group_commit import ALONE, Alone, GroupCommit
from homeostat.store.stacks import rollout_reports
from homeostat.store.stacks.rollout_reports import Gate, Report, Reported

LOG = logging.getLogger(__name__)
SAID_LENGTH_MAX = 1000
"""Maximum length of the stored reason of a report."""
ID_LENGTH_MAX = 1000
"""Maximum length of the id of a member."""
STEPS_MAX = 10_000
"""Maximum of rollout steps with remembered witnesses."""
SIGNAL = "SIGNAL"
"""Action of the event about a signal."""
Body = Mapping[str, Any] | None
Check = Callable[[Record | None], Record]
"""Return the record of a signal if the signal is allowed; raise Rejected otherwise, and for None."""
Advance = Callable[[str], None]
"""Advance the rollout of a group after reports; the argument is the key of the group's row."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A received signal."""

    body: Body
    check: Check


@dataclass(frozen=True, slots=True)
class Taken:
    """An allowed signal.

    Attributes:
        record: The record of the signal.
        gates: Rollouts that wait for signals to this record.
        reports: Outcomes for the gates; empty for an alarm before its storage, and for any signal without a report.
        ended: Rollouts whose step was over after the transaction of the report, maybe with further reports.
    """

    record: Record
    gates: Sequence[Gate] = ()
    reports: Sequence[Reported] = ()
    ended: Sequence[str] = ()


class Reports:
    """Receiver of the reports of members and alarms."""

    def __init__(self, db: Database, advance: Advance) -> None:
        self._db = db
        self._commits: GroupCommit[_Sent, Taken] = GroupCommit(self._commit)
        # Concurrent requests to advance a rollout are served by a single call.
        self._moves: GroupCommit[None, None] = GroupCommit(_once(advance))
        self._witnesses: dict[tuple[str, int], str] = {}

    def take(self, id: str, body: Body, check: Check) -> tuple[Record, bool]:
        """Take a signal to the record of this id if the signal is a report; return after the commit.

        A failure, and the last report of a step, advance the rollout.

        Args:
            id: Id of the record.
            check: Returns the record.

        Returns:
            The record, and whether the signal was a report. Any other signal is ignored.

        Raises:
            Rejected: From `check`; the body is no signal.
        """
        answer = self._commits.ask(id, _Sent(body, check))
        self._go_on(key for taken in answer.led for key in taken.ended)
        gate_marks = answer.value()
        alarm = signals.alarm_of(body) if gate_marks.gates else None
        reported = gate_marks.reports if alarm is None else self._alarm(gate_marks.gates, one_line(alarm))
        for report in reported:
            if report.failed:
                self._moves.ask(report.key, None).value()
        return gate_marks.record, alarm is not None or bool(gate_marks.reports)

    def _commit(self, id: str, sent: Sequence[_Sent]) -> Sequence[Taken | Exception | Alone]:
        with self._db.statements() as at:
            with at.read() as tx:
                record, gates = rollout_reports.addressed(tx, id)
            answers, reports = _sorted(record, gates, sent)
            stored: dict[int, Sequence[Reported] | None] = {**self._succeed(at, id, gates, reports)}
            remaining = {place: report for place, report in reports.items() if place not in stored}
            ended = () if remaining else self._ended(nullcontext(at), stored.values())
        if remaining:  # After the connection is returned: threads that wait for a second connection could deadlock.
            stored |= zip(remaining, self._store(id, list(remaining.values())), strict=True)
            ended = self._ended(self._db.statements(), stored.values())
        for place, reported in stored.items():
            taken = answers[place]
            if isinstance(taken, Taken):
                answers[place] = ALONE if reported is None else replace(taken, reports=reported, ended=ended)
        return answers

    def _succeed(
        self, at: Statements, id: str, gates: Sequence[Gate], reports: Mapping[int, Report]
    ) -> dict[int, Sequence[Reported]]:
        """Store the successes of the first names in reports, with a single statement."""
        only = rollout_reports.only_rollout(gates)
        first = {place: report.names[0] for place, report in reports.items() if report.status == signals.SUCCESS}
        if only is None or not first:
            return {}
        with at.write() as tx:
            stored = rollout_reports.succeed(tx, id, only, set(first.values()), self._db.recent_now(tx))
        return {place: [stored[name]] for place, name in first.items() if name in stored}

    def _store(self, id: str, reports: Sequence[Report]) -> Sequence[Sequence[Reported] | None]:
        """Store failures with their events, and all reports that `_succeed` has not stored."""
        with self._db.write() as tx:
            # Read again: another rollout, with other gates, may have started since.
            _, gates = rollout_reports.addressed(tx, id)
            now = tx.now()
            stored = rollout_reports.store(tx, gates, reports, now)
            news = [
                (outcome.key, f"status:{report.status} reason:{report.reason} from {', '.join(report.names)}")
                for report, outcomes in zip(reports, stored, strict=True)
                for outcome in outcomes or ()
                if outcome.is_news and report.status == signals.FAILURE
            ]
            self._note(tx, news, now)
        return stored

    def _ended(
        self, connection: AbstractContextManager[Statements], reports: Iterable[Sequence[Reported] | None]
    ) -> Sequence[str]:
        """Return the rollouts whose step is over; `take` handles failures."""
        done = [outcome for outcomes in reports for outcome in outcomes or () if outcome.is_done and not outcome.failed]
        if not done:
            return ()
        try:
            with connection as at:
                steps = dict.fromkeys((outcome.key, outcome.step) for outcome in done)
                return list(dict.fromkeys(key for key, step in steps if self._is_over(at, key, step)))
        except Exception:
            # The reports are stored, and a pass handles the rollout within seconds anyway: answer the reports.
            LOG.exception("whether the step of a rollout is over could not be seen")
            return ()

    def _is_over(self, at: Statements, key: str, step: int) -> bool:
        if len(self._witnesses) >= STEPS_MAX:
            self._witnesses.clear()
        with at.read() as tx:
            witness = rollout_reports.witness(tx, key, step, self._witnesses.get((key, step), ""))
        if witness is None:
            self._witnesses.pop((key, step), None)
            return True
        self._witnesses[key, step] = witness
        return False

    def _alarm(self, gates: Sequence[Gate], alarm: str) -> Sequence[Reported]:
        """Store the report of a firing alarm."""
        if not alarm:
            return ()
        with self._db.write() as tx:
            now = tx.now()
            reports = rollout_reports.report_alarm(tx, gates, alarm, now)
            self._note(tx, [(report.key, alarm) for report in reports], now)
        return reports

    def _note(self, tx: Transaction, messages: Sequence[tuple[str, str]], now: float) -> None:
        """Record events for failures reported by members or alarms: (key of the group's row, text)."""
        owners = records.owners(tx, {key for key, _ in messages}) if messages else {}
        for key, owner in owners.items():
            texts = [text for recipient, text in messages if recipient == key]
            events.append(tx, owner.stack_id, [owner.event(SIGNAL, f"Signal: {text}") for text in texts], now)

    def _go_on(self, keys: Iterable[str]) -> None:
        """Advance the rollouts whose step is over; for all reports of a transaction a single thread does so."""
        try:
            for key in dict.fromkeys(keys):
                self._moves.ask(key, None).value()
        except Exception:
            LOG.exception("a rollout whose members have reported could not go on at once")


def _once(advance: Advance) -> Callable[[str, Sequence[None]], Sequence[None]]:
    def move(key: str, asked: Sequence[None]) -> Sequence[None]:
        advance(key)
        return asked

    return move


def _sorted(
    record: Record | None, gates: Sequence[Gate], sent: Sequence[_Sent]
) -> tuple[list[Taken | Exception | Alone], dict[int, Report]]:
    """Return the answers to signals, and number of a signal -> report of a member."""
    answers: list[Taken | Exception | Alone] = []
    reports: dict[int, Report] = {}
    for place, signal in enumerate(sent):
        try:
            addressed = signal.check(record)
            report = _report(addressed, signal.body) if gates else None
        except Rejected as error:
            answers.append(error)
            continue
        answers.append(Taken(addressed, gates if addressed.kind == HANDLE else ()))
        if report is not None:
            reports[place] = report
    return answers, reports


def _report(record: Record, body: Body) -> Report | None:
    """Return the report of a member in a signal; None for any other signal.

    Raises:
        Rejected: The body is no signal.
    """
    if record.kind != HANDLE or signals.alarm_of(body) is not None:
        return None
    signal = signals.normal(record.object["form"], body, 0)
    named = signals.named(record.object["form"], body or {})
    names = [name for name in dict.fromkeys(named) if _may_be_member(name)]
    if signal is None or not names:
        return None
    return Report(names, signal["status"], one_line(str(signal["reason"])))


def one_line(text: str) -> str:
    """Return a text from a server as a short line, without control characters."""
    return "".join(character if character.isprintable() else " " for character in text[:SAID_LENGTH_MAX])


def _may_be_member(name: str) -> bool:
    """Return whether a part of a signal may be the id of a member; databases cannot search for NUL characters."""
    return len(name) <= ID_LENGTH_MAX and "\0" not in name
