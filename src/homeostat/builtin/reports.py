"""Reports to rollouts, from members of groups and from alarms: signals to a handle that a rollout waits for (RU6).

Those that come to a handle at the same time are stored by one transaction (ADR 0066). Each is answered after that.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from homeostat.model.errors import Rejected
from homeostat.resources import signals
from homeostat.resources.families.wait_conditions import HANDLE
from homeostat.store import events
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Record
from homeostat.store.database import Database, Statements
from homeostat.store.sql.group_commit import ALONE, Alone, GroupCommit
from homeostat.store.stacks import rollout_reports
from homeostat.store.stacks.rollout_reports import Gate, Report, Reported

LOG = logging.getLogger(__name__)
SAID_LENGTH_MAX = 1000
"""Letters of what a member says that are kept."""
ID_LENGTH_MAX = 1000
"""Letters of the id of a member; a longer text is none."""
STEPS_MAX = 10_000
"""Steps of rollouts whose witnesses are remembered."""
SIGNAL = "SIGNAL"
"""Action of the event about a signal."""
Body = Mapping[str, Any] | None
Check = Callable[[Record | None], Record]
"""Returns the record that a signal is for, if it may be sent to it; raises Rejected otherwise, and for None."""
Advance = Callable[[str], None]
"""Makes the rollout of a group go on whose members, or alarms, have reported; the argument is the key of its row."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A signal as it came in."""

    body: Body
    check: Check


@dataclass(frozen=True, slots=True)
class Taken:
    """A signal that may be sent.

    Attributes:
        record: The record that it is for.
        gates: Rollouts that wait for signals to this record.
        reports: What it is to these; empty where it is no report of a member, or an alarm that is yet to be stored.
        ended: Rollouts whose step was over after the transaction that stored it, with others perhaps.
    """

    record: Record
    gates: Sequence[Gate] = ()
    reports: Sequence[Reported] = ()
    ended: Sequence[str] = ()


class Reports:
    """Receiver of what members and alarms report."""

    def __init__(self, db: Database, advance: Advance) -> None:
        self._db = db
        self._commits: GroupCommit[_Sent, Taken] = GroupCommit(self._commit)
        # A rollout that many make go on at once goes on once for all of them.
        self._moves: GroupCommit[None, None] = GroupCommit(_once(advance))
        self._witnesses: dict[tuple[str, int], str] = {}

    def take(self, id: str, body: Body, check: Check) -> tuple[Record, bool]:
        """Take a signal to the record of this id, if it is a report; return after it is stored.

        A failure makes its rollouts go on, and so does the last report of a step.

        Args:
            id: Id of the record.
            body: Body of the signal.
            check: Returns the record.

        Returns:
            The record, and whether the signal was a report. Otherwise nothing has been done about it.

        Raises:
            Rejected: From `check`; for a body that is no signal.
        """
        answer = self._commits.ask(id, _Sent(body, check))
        self._go_on(key for taken in answer.led for key in taken.ended)
        gate_marks = answer.value()
        alarm = signals.alarm_of(body) if gate_marks.gates else None
        failed = gate_marks.reports if alarm is None else self._alarm(gate_marks.gates, one_line(alarm))
        for each in failed:
            if each.failed:
                self._moves.ask(each.key, None).value()
        return gate_marks.record, alarm is not None or bool(gate_marks.reports)

    def _commit(self, id: str, sent: Sequence[_Sent]) -> Sequence[Taken | Exception | Alone]:
        with self._db.statements() as at:
            with at.read() as tx:
                record, gates = rollout_reports.addressed(tx, id)
            answers, reports = _sorted(record, gates, sent)
            stored: dict[int, Sequence[Reported] | None] = {**self._succeed(at, id, gates, reports)}
            left = {place: each for place, each in reports.items() if place not in stored}
            ended = () if left else self._ended(nullcontext(at), stored.values())
        if left:  # Only now: threads that hold one connection while they wait for another could wait for each other.
            stored |= zip(left, self._store(id, list(left.values())), strict=True)
            ended = self._ended(self._db.statements(), stored.values())
        for place, found in stored.items():
            taken = answers[place]
            if isinstance(taken, Taken):
                answers[place] = ALONE if found is None else replace(taken, reports=found, ended=ended)
        return answers

    def _succeed(
        self, at: Statements, id: str, gates: Sequence[Gate], reports: Mapping[int, Report]
    ) -> dict[int, Sequence[Reported]]:
        """Store with one statement the successes of members that their reports name first."""
        only = rollout_reports.only_rollout(gates)
        first = {place: each.names[0] for place, each in reports.items() if each.status == signals.SUCCESS}
        if only is None or not first:
            return {}
        with at.write() as tx:
            done = rollout_reports.succeed(tx, id, only, set(first.values()), self._db.recent_now(tx))
        return {place: [done[name]] for place, name in first.items() if name in done}

    def _store(self, id: str, reports: Sequence[Report]) -> Sequence[Sequence[Reported] | None]:
        """Store failures with their events, and what is not as simple as the success of one member."""
        with self._db.write() as tx:
            # Read again: another rollout, with other gates, may have begun since.
            _, gates = rollout_reports.addressed(tx, id)
            now = self._db.now_of(tx)
            stored = rollout_reports.store(tx, gates, reports, now)
            said = [
                (each.key, f"status:{report.status} reason:{report.said} from {', '.join(report.names)}")
                for report, found in zip(reports, stored, strict=True)
                for each in found or ()
                if each.is_news and report.status == signals.FAILURE
            ]
            self._note(tx, said, now)
        return stored

    def _ended(
        self, connection: AbstractContextManager[Statements], reports: Iterable[Sequence[Reported] | None]
    ) -> Sequence[str]:
        """Return the rollouts whose step is over; what a failure leads to is seen to apart."""
        done = [one for each in reports for one in each or () if one.is_done and not one.failed]
        if not done:
            return ()
        try:
            with connection as at:
                steps = dict.fromkeys((each.key, each.step) for each in done)
                return list(dict.fromkeys(key for key, step in steps if self._is_over(at, key, step)))
        except Exception:
            # The reports are stored, and their rollout is due again within seconds: so they are answered.
            LOG.exception("whether the step of a rollout is over could not be seen")
            return ()

    def _is_over(self, at: Statements, key: str, step: int) -> bool:
        if len(self._witnesses) >= STEPS_MAX:
            self._witnesses.clear()
        with at.read() as tx:
            found = rollout_reports.witness(tx, key, step, self._witnesses.get((key, step), ""))
        if found is None:
            self._witnesses.pop((key, step), None)
            return True
        self._witnesses[key, step] = found
        return False

    def _alarm(self, gates: Sequence[Gate], said: str) -> Sequence[Reported]:
        """Store what an alarm says that fires."""
        if not said:
            return ()
        with self._db.write() as tx:
            now = self._db.now_of(tx)
            reports = rollout_reports.report_alarm(tx, gates, said, now)
            self._note(tx, [(each.key, said) for each in reports], now)
        return reports

    def _note(self, tx: Connection, said: Sequence[tuple[str, str]], now: float) -> None:
        """Record events of the groups to whose rollouts a member or an alarm said no: key of the row, what was said."""
        owners = records.owners(tx, {key for key, _ in said}) if said else {}
        for key, owner in owners.items():
            words = [each for to, each in said if to == key]
            events.append(tx, owner.stack_id, [owner.event(SIGNAL, f"Signal: {each}") for each in words], now)

    def _go_on(self, keys: Iterable[str]) -> None:
        """Make rollouts go on whose step is over: for all reports of a transaction one of their threads does it."""
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
    """Return which signals may be sent, and which of them, by number, are reports of members."""
    answers: list[Taken | Exception | Alone] = []
    reports: dict[int, Report] = {}
    for place, each in enumerate(sent):
        try:
            found = each.check(record)
            report = _report(found, each.body) if gates else None
        except Rejected as error:
            answers.append(error)
            continue
        answers.append(Taken(found, gates if found.kind == HANDLE else ()))
        if report is not None:
            reports[place] = report
    return answers, reports


def _report(record: Record, body: Body) -> Report | None:
    """Return what the signal reports; None for one that is not the report of a member.

    Raises:
        Rejected: The body is no signal.
    """
    if record.kind != HANDLE or signals.alarm_of(body) is not None:
        return None
    signal = signals.normal(record.object["form"], body, 0)
    found = signals.named(record.object["form"], body or {})
    names = [each for each in dict.fromkeys(found) if _may_be_member(each)]
    if signal is None or not names:
        return None
    return Report(names, signal["status"], one_line(str(signal["reason"])))


def one_line(text: str) -> str:
    """Return what a server says as one short line, without what would control a terminal."""
    return "".join(each if each.isprintable() else " " for each in text[:SAID_LENGTH_MAX])


def _may_be_member(name: str) -> bool:
    """Return whether a part of a signal may be the id of a member: databases can look for no other text."""
    return len(name) <= ID_LENGTH_MAX and "\0" not in name
