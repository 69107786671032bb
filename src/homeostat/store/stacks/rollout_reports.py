"""What members, and alarms, report to rollouts of metadata (RU6, RU8).

A report locks nothing but the row of the member, so that many of them may come at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Executable, Row, Select, case, func, literal, select, update
from sqlalchemy.sql.dml import ReturningUpdate

from homeostat.model.rollout import GOING_ON, Rollout, RolloutState, StepReport
from homeostat.resources.families.wait_conditions import CONDITION
from homeostat.resources.signals import FAILURE, SUCCESS
from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.sql.prepared import prepared
from homeostat.store.stacks import rollouts
from homeostat.store.stacks.rollouts import ALARM

_rollout = schema.rollout
_active = schema.active_metadata_updates
_gate = schema.rollout_gate
_record = schema.record
HANDED_ON_MAX = 10_000
"""Reports that are kept as signals of one handle."""
SAID_MAX = 10
"""Reasons of failed members that are read."""
MANY = 100
"""Members that are waited for, from which on a report cannot be the last of its step."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A member has reported to a rollout, or an alarm has.

    Attributes:
        key: Key of the row of the group.
        step: Step of the member; 0 for an alarm.
        failed: Whether it said no.
        ends_step: Whether it may be the last of the step.
    """

    key: str
    step: int
    failed: bool
    ends_step: bool = False


def gates_of(tx: Connection, handle: str) -> Sequence[Row[Any]]:
    """Return the rollouts that wait for signals to a handle: rows of `rollout_gate`."""
    return _gates_of(tx, handle).all()


@prepared
def _gates_of(handle: str) -> Select[Any]:
    return select(_gate).where(_gate.c.handle == handle)


def report(
    tx: Connection, gates: Sequence[Row[Any]], names: Sequence[str], status: str, said: str, now: float
) -> list[Reported]:
    """Store what a member reports to the rollouts in which it has the new metadata.

    Args:
        tx: The transaction.
        gates: From `gates_of`.
        names: What may be the instance id of the member, or the id of a server in it; the first that is one counts. So
            a signal is the report of one member, and locks one row of a rollout: two of them cannot deadlock.
        status: `SUCCESS` or `FAILURE`.
        said: The reason in the signal.
        now: The time.

    Returns:
        The reports; none where the member has no new metadata. A second report changes nothing but to a failure.
    """
    found = []
    for key in dict.fromkeys(gate.key for gate in gates):
        mine = [gate for gate in gates if gate.key == key and gate.bit != ALARM]
        if not mine:
            continue
        bits, full = sum(1 << gate.bit for gate in mine), (1 << mine[0].gates) - 1
        for name in _possible(tx, key, names):
            if status == SUCCESS:
                row = _succeed(tx, key, name, bits, full, now).first()
            else:
                row = _fail(tx, key, name, said, now).first()
            if row is not None:
                # So many others that are waited for cannot all be reporting just now.
                ends_step = bool(row.status) and len(_waiting(tx, key, row.step, MANY).all()) < MANY
                found.append(Reported(key, row.step, row.status == FAILURE, ends_step))
                break
    return found


def _possible(tx: Connection, key: str, names: Sequence[str]) -> Iterator[str]:
    """Yield what may be the instance id of a member: the names, and then the members in which a thing of a name is."""
    yield from names
    members = _members(tx, key).scalar()
    for name in names:
        member = None if members is None else rollouts.member_with(tx, members, name)
        if member is not None:
            yield member


@prepared
def _members(key: str) -> Select[Any]:
    return select(_rollout.c.members).where(_rollout.c.key == key)


def report_alarm(tx: Connection, gates: Sequence[Row[Any]], said: str, now: float) -> list[Reported]:
    """Store what an alarm says for the rollouts that listen to it; return those for which it is news.

    So it is not lost with this process, and counts once the rollout may go on: it may be paused, or its stack locked.

    Args:
        tx: The transaction.
        gates: From `gates_of`.
        said: What the alarm says.
        now: The time.
    """
    keys = sorted({gate.key for gate in gates})
    news = (_rollout.c.key.in_(keys), _rollout.c.state.in_(GOING_ON), _rollout.c.alarm == "")
    due_at = case((_rollout.c.state == RolloutState.RUNNING, now), else_=_rollout.c.due_at)
    stored = update(_rollout).where(*news).values(alarm=said, due_at=due_at).returning(_rollout.c.key)
    return [Reported(key, 0, failed=True) for key in tx.execute(stored).scalars()]


@prepared
def _succeed(key: str, member: str, bits: int, full: int, now: float) -> Executable:
    reported = _active.c.reported.op("|")(bits)
    status = case((_active.c.status == FAILURE, FAILURE), (reported == full, SUCCESS), else_="")
    return _changed(key, member).values(reported=reported, status=status, reported_at=now)


@prepared
def _fail(key: str, member: str, said: str, now: float) -> Executable:
    return _changed(key, member).values(status=FAILURE, said=said, reported_at=now)


def _changed(key: str, member: str) -> ReturningUpdate[Any]:
    mine = (_active.c.resource_id == key, _active.c.instance_id == member)
    return update(_active).where(*mine).returning(_active.c.step, _active.c.status)


@prepared
def _waiting(key: str, step: int, most: int) -> Executable:
    mine = (_active.c.resource_id == key, _active.c.step == step, _active.c.status == "")
    return select(_active.c.instance_id).where(*mine).limit(most)


def step_is_over(tx: Connection, report: Reported) -> bool:
    """Return whether no member of the step is waited for any more."""
    return _waiting(tx, report.key, report.step, 1).first() is None


def report_of(tx: Connection, rollout: Rollout) -> StepReport:
    """Return what the members of the current step, and of all steps, have reported."""
    mine = (_active.c.resource_id == rollout.key, _active.c.step == rollout.step)
    chosen = select(_active.c.status, func.count()).where(*mine).group_by(_active.c.status)
    counts: Mapping[str, int] = {row[0]: row[1] for row in tx.execute(chosen)}
    failed = (_active.c.resource_id == rollout.key, _active.c.status == literal(FAILURE, literal_execute=True))
    in_all = int(tx.execute(select(func.count()).where(*failed)).scalar_one())
    said = {}
    if in_all:
        chosen = select(_active.c.instance_id, _active.c.said).where(*failed)
        rows = tx.execute(chosen.order_by(_active.c.reported_at.desc(), _active.c.instance_id).limit(SAID_MAX))
        said = {row.instance_id: row.said for row in rows}
    return StepReport(counts.get("", 0), counts.get(SUCCESS, 0), counts.get(FAILURE, 0), in_all, said)


def hand_on_reports(tx: Connection, rollout: Rollout, now: float) -> None:
    """Keep what members have reported as signals of handles whose conditions are made only now, after the rollout.

    Args:
        tx: The transaction; the row of the rollout is locked.
        rollout: The rollout, which has succeeded.
        now: The time.
    """
    wanted: dict[str, int] = {}
    for gate in rollout.settings.gates:
        wanted[gate.handle] = max(gate.count, wanted.get(gate.handle, 0))
    new = wanted.keys() - {each.link for each in records.linked(tx, wanted, CONDITION)}
    there = set(tx.execute(select(_record.c.id).where(_record.c.id.in_(sorted(new)))).scalars()) if new else set()
    mine = (_active.c.resource_id == rollout.key, _active.c.status == SUCCESS)
    reported = select(_active.c.instance_id).where(*mine).order_by(_active.c.reported_at, _active.c.instance_id)
    for handle in sorted(there):
        members = tx.execute(reported.limit(min(wanted[handle], HANDED_ON_MAX))).scalars().all()
        signal = {"status": SUCCESS, "reason": "It was reported to a rollout", "data": None}
        records.add_signals(tx, handle, [records.Signal({"id": each, **signal}, now) for each in members])
