"""Reports of members to the rollout of their group, and alarms (RU6, RU7).

A single transaction stores many reports (ADR 0066). It locks only the rows of the members, and never waits for a row
while it holds another: so it cannot deadlock, whatever the lock order of concurrent transactions.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Executable, Select, Update, case, func, literal, select, update

from homeostat.model.rollout import GOING_ON, Rollout, RolloutState, StepReport
from homeostat.resources.signals import FAILURE, SUCCESS
from homeostat.store import schema
from homeostat.store.builtin import records, signal_tallies
from homeostat.store.builtin.records import Record
from homeostat.store.database import Transaction, row_lock
from homeostat.store.schema.rollouts import ALARM
from homeostat.store.sql import bulk
from homeostat.store.sql.bulk_statements import Change
from homeostat.store.sql.prepared import prepared
from homeostat.store.stacks import rollouts

_rollout = schema.rollout
_active = schema.active_metadata_updates
_gate = schema.rollout_gate
_record = schema.record
HANDED_ON_MAX = 10_000
"""Reports that are kept as signals of a handle."""
SAID_MAX = 10
"""Reasons of failed members to read."""
WITNESSES = 1000
"""Awaited members among which a witness is chosen."""
_COLUMNS = ("status", "reported", "said", "reported_at", "resource_id", "instance_id")
_MEMBER = Change(_COLUMNS[-2:], "t.resource_id = {resource_id} AND t.instance_id = {instance_id}")


@dataclass(frozen=True, slots=True)
class Gate:
    """A rollout that waits for signals to a handle; for the fields see `schema.rollout_gate`."""

    key: str
    bit: int
    gates: int


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a member.

    Attributes:
        names: Possible ids of the member, or of a server inside the member; the first known id counts.
    """

    names: Sequence[str]
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reported:
    """A stored report of a member, or of an alarm, to a rollout.

    Attributes:
        step: Step of the member; 0 for an alarm.
        is_done: Whether the member has reported to all gates.
    """

    key: str
    step: int
    failed: bool
    is_news: bool = True
    is_done: bool = True


@dataclass(frozen=True, slots=True)
class _Member:
    """A row of `active_metadata_updates`, which is locked."""

    step: int
    status: str
    reported: int
    reason: str

    def after(self, report: Report, bits: int, full: int) -> "_Member":
        """Return the row after a report: a failure is final, and counts after a success, too."""
        if report.status == FAILURE:
            return replace(self, status=FAILURE, reason=report.reason)
        reported = self.reported | bits
        done = SUCCESS if reported == full else ""
        return replace(self, status=FAILURE if self.status == FAILURE else done, reported=reported)


def addressed(tx: Transaction, id: str) -> tuple[Record | None, list[Gate]]:
    """Return the record of this id, and the rollouts waiting for its signals, with a single query."""
    rows = _addressed(tx, id).all()
    gates = [Gate(row.gate_key, row.gate_bit, row.gate_gates) for row in rows if row.gate_key is not None]
    return records.of_row(rows[0]) if rows else None, gates


@prepared
def _addressed(id: str) -> Select[Any]:
    gate = (_gate.c[name].label(f"gate_{name}") for name in ("key", "bit", "gates"))
    record = schema.record
    return select(*records.FIELDS, *gate).outerjoin(_gate, _gate.c.handle == record.c.id).where(record.c.id == id)


def only_rollout(gates: Sequence[Gate]) -> tuple[str, int, int] | None:
    """Return the only rollout that waits for members at a handle, its bits and all bits; None for several rollouts."""
    waiting = _rollouts(gates)
    return waiting[0] if len(waiting) == 1 else None


def succeed(
    tx: Transaction, handle: str, rollout: tuple[str, int, int], names: Collection[str], now: float
) -> dict[str, Reported]:
    """Store the success of members in a rollout, with a single statement if the database's UPDATE returns rows.

    Args:
        rollout: From `only_rollout`.

    Returns:
        Instance id -> the stored report. Missing: names without new metadata, members whose rows another transaction
        holds, and all members if a rollout with other gates has begun meanwhile.
    """
    key, bits, full = rollout
    places = [bit for bit in range(bits.bit_length()) if bits >> bit & 1]
    gates = (places, len(places), full.bit_length())
    if tx.dialect.update_returning:
        rows = _succeed(tx, handle, key, list(names), bits, full, *gates, now).all()
    else:
        # The condition of the UPDATE holds for other rows before and after it, so the rows are named.
        free = _lock_free(tx, handle, key, list(names), *gates).scalars().all()
        if free:
            _mark(tx, key, free, bits, full, now)
        rows = _marked(tx, key, free).all() if free else []
    return {
        row.instance_id: Reported(key, row.step, row.status == FAILURE, is_news=False, is_done=bool(row.status))
        for row in rows
    }


@prepared
def _succeed(
    handle: str,
    key: str,
    names: Sequence[str],
    bits: int,
    full: int,
    places: Sequence[int],
    members_max: int,
    gates: int,
    now: float,
) -> Executable:
    free = _free_members(handle, key, names, places, members_max, gates).cte("free")
    stored = _mark_success(bits, full, now).where(_active.c.resource_id == key)
    columns = (_active.c[name] for name in ("instance_id", "step", "status"))
    return stored.where(_active.c.instance_id.in_(select(free.c.instance_id))).returning(*columns)


def _free_members(
    handle: str, key: str, names: Sequence[str], places: Sequence[int], members_max: int, gates: int
) -> Select[Any]:
    """Lock the members that no other transaction holds, as long as the rollout has these gates."""
    present_gates = (_gate.c.handle == handle, _gate.c.key == key, _gate.c.bit.in_(places), _gate.c.gates == gates)
    unchanged = select(func.count()).where(*present_gates).scalar_subquery() == members_max
    chosen = (_active.c.resource_id == key, _active.c.instance_id.in_(names), unchanged)
    return select(_active.c.instance_id).where(*chosen).with_for_update(key_share=True, skip_locked=True)


def _mark_success(bits: int, full: int, now: float) -> Update:
    reported = _active.c.reported.op("|")(bits)
    status = case((_active.c.status == FAILURE, FAILURE), (reported == full, SUCCESS), else_="")
    return update(_active).values(reported=reported, status=status, reported_at=now)


_lock_free = prepared(_free_members)


@prepared
def _mark(key: str, names: Sequence[str], bits: int, full: int, now: float) -> Executable:
    return _mark_success(bits, full, now).where(_active.c.resource_id == key, _active.c.instance_id.in_(names))


@prepared
def _marked(key: str, names: Sequence[str]) -> Executable:
    columns = (_active.c[name] for name in ("instance_id", "step", "status"))
    return select(*columns).where(_active.c.resource_id == key, _active.c.instance_id.in_(names))


def store(tx: Transaction, gates: Sequence[Gate], reports: Sequence[Report], now: float) -> list[list[Reported] | None]:
    """Store reports of members to the rollouts in which they have the new metadata.

    Returns:
        For each report its stored forms by rollout; empty if the member has no new metadata. None if several reports
        are stored and another transaction holds the row of the member: store this report alone, which waits for the
        row.
    """
    outcomes: list[list[Reported] | None] = [[] for _ in reports]
    changed: list[tuple[Any, ...]] = []
    for key, bits, full in _rollouts(gates):
        members = _lock(tx, key, reports)
        # A server behind a load balancer is inside of its member, and knows only its own id.
        named = [report if members.keys() & report.names else _inside(tx, key, report) for report in reports]
        if named != list(reports):
            members = {**members, **_lock(tx, key, named)}
        touched: dict[str, _Member] = {}
        for place, report in enumerate(reports):
            name = next((name for name in named[place].names if name in members), None)
            outcome, before = outcomes[place], touched.get(name or "") or members.get(name or "")
            if name is None or outcome is None:
                continue
            if before is None:
                outcomes[place] = None
                continue
            after = touched[name] = before.after(report, bits, full)
            news = after.status != before.status or after.reported != before.reported
            outcome.append(Reported(key, after.step, after.status == FAILURE, news, bool(after.status)))
        changed += [(member.status, member.reported, member.reason, now, key, name) for name, member in touched.items()]
    bulk.update(tx, _active, _COLUMNS, changed, _MEMBER)
    return outcomes


def _rollouts(gates: Sequence[Gate]) -> list[tuple[str, int, int]]:
    """Return the rollouts whose members report, each with the bits of the handle, and the bits of all handles."""
    bits: dict[str, int] = {}
    full = {}
    for gate in gates:
        if gate.bit != ALARM:
            bits[gate.key] = bits.get(gate.key, 0) | 1 << gate.bit
            full[gate.key] = (1 << gate.gates) - 1
    # Sorted: a report stored alone may wait for its member's row of a rollout while it holds the row of another one.
    return [(key, bits[key], full[key]) for key in sorted(bits)]


def _lock(tx: Transaction, key: str, reports: Sequence[Report]) -> Mapping[str, _Member | None]:
    """Return the reporting members, with their rows locked; None for a row that another transaction holds."""
    if len(reports) > 1:
        names = list(dict.fromkeys(name for report in reports for name in report.names))
        rows = _free(tx, key, names).all()
        return {row.instance_id: None if row.step is None else _member(row) for row in rows}
    for name in reports[0].names if reports else ():
        row = _one(tx, key, name).first()
        if row is not None:
            return {name: _member(row)}
    return {}


def _inside(tx: Transaction, key: str, report: Report) -> Report:
    """Return the report under the names of the members that contain its things."""
    members = _members(tx, key).scalar()
    handles = [] if members is None else [rollouts.member_with(tx, members, name) for name in report.names]
    return replace(report, names=[handle for handle in handles if handle is not None])


@prepared
def _members(key: str) -> Select[Any]:
    return select(_rollout.c.members).where(_rollout.c.key == key)


def _member(row: Any) -> _Member:
    return _Member(row.step, row.status, row.reported, row.said)


def _state(key: str) -> Select[Any]:
    columns = (_active.c[name] for name in ("instance_id", "step", "status", "reported", "said"))
    return select(*columns).where(_active.c.resource_id == key)


@prepared
def _one(key: str, name: str) -> Select[Any]:
    return _state(key).where(_active.c.instance_id == name).with_for_update(key_share=True)


@prepared
def _free(key: str, names: Sequence[str]) -> Select[Any]:
    condition = _active.c.instance_id.in_(names)
    free = _state(key).where(condition).with_for_update(key_share=True, skip_locked=True).cte("free")
    columns = (free.c[name] for name in ("step", "status", "reported", "said"))
    members = select(_active.c.instance_id, *columns).outerjoin(free, free.c.instance_id == _active.c.instance_id)
    return members.where(_active.c.resource_id == key, condition)


def report_alarm(tx: Transaction, gates: Sequence[Gate], message: str, now: float) -> list[Reported]:
    """Store an alarm for the rollouts that listen; return a report for each rollout without an alarm so far.

    The alarm outlives this process, and counts once the rollout may proceed: the rollout may be paused, or its stack
    locked.
    """
    keys = sorted({gate.key for gate in gates})
    news = (_rollout.c.key.in_(keys), _rollout.c.state.in_(GOING_ON), _rollout.c.alarm == "")
    due_at = case((_rollout.c.state == RolloutState.RUNNING, now), else_=_rollout.c.due_at)
    alarmed = list(tx.execute(row_lock(select(_rollout.c.key).where(*news).order_by(_rollout.c.key))).scalars())
    if alarmed:
        tx.execute(update(_rollout).where(_rollout.c.key.in_(alarmed)).values(alarm=message, due_at=due_at))
    return [Reported(key, 0, failed=True) for key in alarmed]


def witness(tx: Transaction, key: str, step: int, known: str = "") -> str | None:
    """Return an awaited member of a step; None at the end of the step.

    Call this after the commit: of the last members that report at the same time, at least one then sees the end.

    Args:
        known: A former witness to try first: the search for a new one gets slower with each report since the last
            vacuum of the database.
    """
    member: str | None = _witness(tx, key, step, known).scalar_one()
    return member


@prepared
def _witness(key: str, step: int, known: str) -> Executable:
    conditions = (_active.c.resource_id == key, _active.c.step == step, _active.c.status == "")
    still = select(_active.c.instance_id).where(_active.c.instance_id == known, *conditions).scalar_subquery()
    # Not the first row: if members report in order, that member would be the first to report.
    some = select(_active.c.instance_id).where(*conditions).limit(WITNESSES).subquery()
    return select(func.coalesce(still, select(func.max(some.c.instance_id)).scalar_subquery()))


def report_of(tx: Transaction, rollout: Rollout) -> StepReport:
    """Return the reports of the members of the current step, and of all steps."""
    conditions = (_active.c.resource_id == rollout.key, _active.c.step == rollout.step)
    chosen = select(_active.c.status, func.count()).where(*conditions).group_by(_active.c.status)
    counts: Mapping[str, int] = {row[0]: row[1] for row in tx.execute(chosen)}
    failed = (_active.c.resource_id == rollout.key, _active.c.status == literal(FAILURE, literal_execute=True))
    in_all = int(tx.execute(select(func.count()).where(*failed)).scalar_one())
    reasons = {}
    if in_all:
        chosen = select(_active.c.instance_id, _active.c.said).where(*failed)
        rows = tx.execute(chosen.order_by(_active.c.reported_at.desc(), _active.c.instance_id).limit(SAID_MAX))
        reasons = {row.instance_id: row.said for row in rows}
    return StepReport(counts.get("", 0), counts.get(SUCCESS, 0), counts.get(FAILURE, 0), in_all, reasons)


def hand_on_reports(tx: Transaction, rollout: Rollout, now: float) -> None:
    """Copy the reports of a succeeded rollout to the handles as signals, as many as their conditions still need.

    A condition may be made only after the rollout, or wait for more signals than before, and members report only once.
    The row of the rollout is locked.
    """
    wanted: dict[str, int] = {}
    for gate in rollout.settings.gates:
        wanted[gate.handle] = max(gate.count, wanted.get(gate.handle, 0))
    # The same lock as a signal takes: both count the signals.
    handles = row_lock(select(_record.c.id).where(_record.c.id.in_(sorted(wanted))).order_by(_record.c.id))
    present = set(tx.execute(handles).scalars()) if wanted else set()
    signals = records.signals_of(tx, present)
    conditions = (_active.c.resource_id == rollout.key, _active.c.status == SUCCESS)
    reported = select(_active.c.instance_id).where(*conditions).order_by(_active.c.reported_at, _active.c.instance_id)
    for handle in sorted(present):
        signalled = {str(signal.object.get("id")) for signal in signals.get(handle, ())}
        missing = min(wanted[handle], HANDED_ON_MAX) - len(signalled)
        if missing <= 0:
            continue
        # A member may have signalled under its own id before: its report does not count twice.
        members = tx.execute(reported.limit(missing + len(signalled))).scalars().all()
        new = [member for member in members if member not in signalled][:missing]
        content = {"status": SUCCESS, "reason": "It was reported to a rollout", "data": None}
        records.add_signals(tx, handle, [records.Signal({"id": member, **content}, now) for member in new])
        signal_tallies.count(tx, handle)
