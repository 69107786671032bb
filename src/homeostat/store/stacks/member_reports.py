"""Reports of members to groups that wait for reports before their next batch, and their tally.

A report locks only its own row, so that many reports can be stored at once.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Executable, Select, delete, func, or_, select, update

from homeostat.model.group import GroupDefinition, Reports, Series, batch_of
from homeostat.model.status import Action, Status
from homeostat.planner.members.member_reports import Tally
from homeostat.resources import groups
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import MemberReportRow
from homeostat.store.sql import typed
from homeostat.store.sql.prepared import prepared
from homeostat.store.stacks import stacks

_report = schema.member_report
_resource = schema.resource
_stack = schema.stack


class WaitingGroup(NamedTuple):
    """A group that may take reports.

    Attributes:
        key, type, properties, action: Columns of the group's resource.
        stack_action, suspended: Columns of the stack around the group.
        size: Size of the stack with the members; None until this stack exists.
    """

    key: str
    type: str
    properties: Any
    action: str
    stack_action: str
    suspended: bool
    size: int | None


def group(tx: Transaction, key: str) -> WaitingGroup | None:
    """Return a group that may take reports; None if deleted."""
    return typed.rows(WaitingGroup, _group(tx, key)).first()


@prepared
def _group(key: str) -> Select[Any]:
    around, inside = _stack.alias("around"), _stack.alias("inside")
    columns = (_resource.c.key, _resource.c.type, _resource.c.properties, _resource.c.action)
    of_stacks = (around.c.action.label("stack_action"), around.c.suspended, inside.c.size)
    nested = (inside.c.parent_key == _resource.c.key) & inside.c.deleted_at.is_(None)
    joined = _resource.join(around, around.c.id == _resource.c.stack_id).outerjoin(inside, nested)
    return select(*columns, *of_stacks).select_from(joined).where(_resource.c.key == key)


class WaitingStack(NamedTuple):
    id: str
    status: str
    revision: int


def waiting(tx: Transaction, key: str) -> WaitingStack | None:
    """Return the stack of a group that may wait for reports, with its members at rest; None if absent."""
    return typed.rows(WaitingStack, _waiting(tx, key)).first()


@prepared
def _waiting(key: str) -> Select[Any]:
    columns = (_stack.c.id, _stack.c.status, _stack.c.revision)
    conditions = (_stack.c.parent_key == key, _stack.c.deleted_at.is_(None), _stack.c.step_at.is_not(None))
    return select(*columns).where(*conditions)


def expected(group: GroupDefinition, asked: Reports) -> int:
    """Return how many reports the members of the batch under way have to send."""
    if asked.count is not None:
        return asked.count
    return groups.count_in(batch_of(group), group.skip)


def repeat(tx: Transaction, key: str, member: str, now: float, *, failed: bool, reason: str = "") -> bool:
    """Store a further report of a member; return False without an earlier report."""
    if failed:
        return _fail_again(tx, key, member, reason, now).rowcount > 0
    return _succeed_again(tx, key, member, now).rowcount > 0


@prepared
def _succeed_again(key: str, member: str, now: float) -> Executable:
    return update(_report).where(_report.c.key == key, _report.c.member == member).values(succeeded_at=now)


@prepared
def _fail_again(key: str, member: str, reason: str, now: float) -> Executable:
    conditions = (_report.c.key == key, _report.c.member == member)
    return update(_report).where(*conditions).values(failed_at=now, said=reason)


def add(tx: Transaction, key: str, member: str, now: float, *, failed: bool, reason: str = "") -> None:
    """Store the first report of a member, or add to a report that another transaction has stored meanwhile."""
    values = {"failed_at": now, "said": reason} if failed else {"succeeded_at": now}
    new = tx.insert(_report).values(key=key, member=member, **{"said": "", **values})
    tx.execute(new.on_conflict_do_update(index_elements=["key", "member"], set_=values))


def of_member(tx: Transaction, key: str, member: str) -> MemberReportRow | None:
    conditions = (_report.c.key == key, _report.c.member == member)
    return typed.rows(MemberReportRow, tx.execute(select(_report).where(*conditions))).first()


def count(tx: Transaction, key: str, most: int, since: float = 0.0) -> int:
    """Return how many members have reported since a time, at most `most`."""
    return int(_count(tx, key, since, most).scalar_one())


@prepared
def _count(key: str, since: float, most: int) -> Select[Any]:
    some = select(_report.c.member).where(_report.c.key == key, *_reported_since(since)).limit(most).subquery()
    return select(func.count()).select_from(some)


def _reported_since(since: Any) -> tuple[Any, ...]:
    return (or_(_report.c.succeeded_at >= since, _report.c.failed_at >= since),)


def drop(tx: Transaction, key: str, before: float | None = None) -> None:
    """Delete the reports to a group, all or those from before a time."""
    late = () if before is None else (_report.c.succeeded_at >= before, _report.c.failed_at >= before)
    tx.execute(delete(_report).where(_report.c.key == key, *(condition.is_not(True) for condition in late)))


# -- the tally ---------------------------------------------------------------------------------------------------------


def tally(tx: Transaction, stack: Any, series: Series, asked: Reports, shards: Collection[int]) -> Tally:
    """Return the reports of the batch under way since it began.

    Args:
        series: The series of the group, with the batch under way.
        asked: The reports that its members have to send.
        shards: Shards with members of the batch.
    """
    succeeded, failed, silent = 0, {}, []
    ranges = series.batch if asked.count is None else None
    for member, report in _reported(tx, stack, ranges, asked.since, shards):
        if isinstance(report, str):
            failed[member.name] = report
        elif report:
            succeeded += 1
        else:
            silent.append(member.name)
    return Tally(succeeded, failed, tuple(silent))


def unreported(
    tx: Transaction, stack: Any, ranges: Sequence[Sequence[int]], since: float, shards: Collection[int]
) -> list[str]:
    """Return the names of the members that are not at rest, or did not report success yet.

    Args:
        since: Earlier reports do not count.
    """
    reports = _reported(tx, stack, ranges, since, shards)
    return [member.name for member, report in reports if report is not True or member.status != Status.COMPLETE]


class GroupMember(NamedTuple):
    name: str
    type: str
    handle: str
    status: str


def _reported(
    tx: Transaction, stack: Any, ranges: Sequence[Sequence[int]] | None, since: float, shards: Collection[int]
) -> Iterator[tuple[GroupMember, str | bool]]:
    """Yield the members that have to report, each with the reason of its failure, True for success, False without."""
    members = _members(tx, stack.id, ranges, sorted(shards))
    reports = {report.member: report for report in typed.rows(MemberReportRow, _reports(tx, stack.parent_key, since))}
    inside = _inside(tx, members) if reports.keys() - {member.handle for member in members} else {}
    for member in members:
        handles = (member.handle, *inside.get(member.handle, ()))
        own_reports = [reports[handle] for handle in handles if handle in reports]
        failures = [report for report in own_reports if (report.failed_at or 0.0) >= since]
        yield member, failures[0].said if failures else bool(own_reports)


def _members(
    tx: Transaction, stack_id: str, batch: Sequence[Sequence[int]] | None, shards: Sequence[int]
) -> list[GroupMember]:
    """Return the present members of a batch, in the order of their numbers; None stands for all members."""
    members = [member for member in typed.rows(GroupMember, _present(tx, stack_id, shards)) if member.name.isdigit()]
    if batch is not None:
        members = [member for member in members if any(low <= int(member.name) < high for low, high in batch)]
    return sorted(members, key=lambda member: int(member.name))


@prepared
def _present(stack_id: str, shards: Sequence[int]) -> Select[Any]:
    present = (_resource.c.replaced_by.is_(None), _resource.c.action != Action.DELETE)
    columns = (_resource.c.name, _resource.c.type, _resource.c.handle, _resource.c.status)
    return select(*columns).where(_resource.c.stack_id == stack_id, _resource.c.shard.in_(shards), *present)


@prepared
def _reports(key: str, since: float) -> Select[Any]:
    return select(_report).where(_report.c.key == key, *_reported_since(since))


def _inside(tx: Transaction, members: Sequence[GroupMember]) -> dict[str, list[str]]:
    """Return the handles inside members that are nested stacks: a server in such a member reports under its own id."""
    nested = [member.handle for member in members if member.handle and kind_of(member.type) == STACK]
    handles: dict[str, list[str]] = {}
    for start in range(0, len(nested), stacks.STACKS_PER_QUERY):
        some = nested[start : start + stacks.STACKS_PER_QUERY]
        chosen = select(_resource.c.stack_id, _resource.c.handle).where(_resource.c.stack_id.in_(some))
        for row in tx.execute(chosen):
            handles.setdefault(row.stack_id, []).append(row.handle)
    return handles
