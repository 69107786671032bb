"""Reports of members to a group that waits for them before its next batch: authorization, storage and wake-ups.

A report locks only its own row. After the commit, the process wakes the group if the batch may be decided by now. If
several members send the last reports at the same time, at least one process sees all reports.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from homeostat.builtin.access_keys import KeyHolder, virtual_location
from homeostat.builtin.reports import ID_LENGTH_MAX, SIGNAL, Body, one_line
from homeostat.model.errors import Rejected
from homeostat.model.group import reports_of
from homeostat.model.plan import Priority
from homeostat.model.status import Action, Status
from homeostat.resources import signals
from homeostat.resources.families.scaling import InstanceGroup
from homeostat.resources.registry import type_of
from homeostat.resources.signals import FAILURE, SUCCESS
from homeostat.store import events
from homeostat.store.builtin import records
from homeostat.store.database import Database, Transaction
from homeostat.store.shards import shards
from homeostat.store.stacks import member_reports, revisions
from homeostat.store.stacks.member_reports import WaitingGroup, WaitingStack

REPORTS_MAX = 10_000
"""Maximum of stored reports of a group, in addition to two per desired member."""
FULL = "Request limit exceeded: a group of {size} members keeps the reports of at most {most}; send the ids of members"
NO_REPORTS = (
    "Signal resource is not supported for this resource: give a group of instances an UpdatePolicy with "
    "WaitOnResourceSignals, or a CreationPolicy with ResourceSignal"
)


@dataclass(frozen=True, slots=True)
class MemberReport:
    """A report of a member of a group.

    Attributes:
        member: Id of the member in the cloud.
        failed: Whether the member reports a failure.
        reason: The reason, as one line.
    """

    member: str
    failed: bool
    reason: str = ""


def report_of(body: Body) -> MemberReport:
    """Return the report in the body of a native signal: `{id, status[, reason, data]}`.

    Raises:
        Rejected: The body is no signal.
    """
    signal = signals.normal("native", body, 0) or {}
    named = (body or {}).get("id", (body or {}).get("data"))
    member = "" if isinstance(named, Mapping | list) else str(named or "")
    return MemberReport(member, signal["status"] == FAILURE, one_line(str((body or {}).get("reason") or "")))


def report(member: str, status: str) -> MemberReport:
    """Return the report of a member.

    Raises:
        Rejected: An unknown status.
    """
    if status not in (SUCCESS, FAILURE):
        raise Rejected("ValueError", f"the status is {SUCCESS} or {FAILURE}, not {status[:40]!r}")
    return MemberReport(member, status == FAILURE)


def own_report(
    tx: Transaction, holder: KeyHolder, stack_id: str, group: str, member_report: MemberReport
) -> MemberReport:
    """Return the report of a key's holder: a server with its own key may only report for itself.

    Raises:
        Rejected: Forbidden.
    """
    if not holder.is_server:
        return member_report
    at = virtual_location(tx, holder, stack_id, group)
    if at is None or member_report.member not in ("", at.instance, holder.owner.handle):
        raise Rejected("Forbidden", f"The key of {holder.name} is for its own reports, not for those of others.")
    return MemberReport(at.instance, member_report.failed, member_report.reason)


def takes_reports(type_name: str) -> bool:
    """Return whether members may report to resources of this type."""
    return isinstance(type_of(type_name), InstanceGroup)


class MemberReports:
    """Receiver of the reports of members to the groups of all projects."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def take(self, key: str, member_report: MemberReport) -> None:
        """Store a report, and wake the group if its batch may be decided now.

        Args:
            key: Key of the group's row; the caller may send signals to the group.

        Raises:
            Rejected: An invalid id; ResourceActionNotSupported: the resource waits for no reports;
                RequestLimitExceeded.
        """
        _check_id(member_report.member)
        with self._db.write() as tx:
            failed_before = self._store(tx, key, member_report)
        with self._db.read() as tx:
            waiting = member_reports.waiting(tx, key)
            if waiting is None or not _may_decide(tx, key, waiting, member_report, failed_before):
                return
        with self._db.write() as tx:
            # Any shard decides for all. A lost wake-up costs only time: the members' timeout wakes the group anyway.
            shards.wake(tx, waiting.id, tx.now(), Priority.ROLLOUT, [0])

    def _store(self, tx: Transaction, key: str, member_report: MemberReport) -> float | None:
        """Store a report; for a failure, return the time of the member's former failure, if any."""
        now = tx.now()
        group = member_reports.group(tx, key)
        if group is None or not _waits(group):
            raise Rejected("ResourceActionNotSupported", NO_REPORTS)
        if group.suspended or Action.DELETE in (group.action, group.stack_action):
            during = Action.SUSPEND if group.suspended else Action.DELETE
            raise Rejected("NotSupported", f"Signal resource during {during} is not supported.")
        before = member_reports.of_member(tx, key, member_report.member) if member_report.failed else None
        failed_before: float | None = None if before is None else before.failed_at
        if not member_reports.repeat(
            tx, key, member_report.member, now, failed=member_report.failed, reason=member_report.reason
        ):
            self._make_room(tx, key, int(group.size or 0))
            member_reports.add(
                tx, key, member_report.member, now, failed=member_report.failed, reason=member_report.reason
            )
        if member_report.failed and failed_before is None:
            self._note(tx, key, member_report, now)
        return failed_before

    def _make_room(self, tx: Transaction, key: str, size: int) -> None:
        most = REPORTS_MAX + 2 * size
        if member_reports.count(tx, key, most) >= most:
            raise Rejected("RequestLimitExceeded", FULL.format(size=size, most=most))

    def _note(self, tx: Transaction, key: str, member_report: MemberReport, now: float) -> None:
        """Record an event of the first failure of a member; repeated failures get no event."""
        owner = records.owners(tx, [key]).get(key)
        if owner is not None:
            reason = f"Signal: status:{FAILURE} reason:{member_report.reason} from {member_report.member}"
            events.append(tx, owner.stack_id, [owner.event(SIGNAL, reason)], now)


def _waits(group: WaitingGroup) -> bool:
    kind = type_of(group.type)
    return isinstance(kind, InstanceGroup) and kind.takes_reports(kind.complete(group.properties))


def _may_decide(
    tx: Transaction, key: str, waiting: WaitingStack, member_report: MemberReport, failed_before: float | None
) -> bool:
    """Return whether a batch may be decided by now: after the first failure, or when all its members have reported."""
    group = revisions.group_of(tx, waiting.id, waiting.revision)
    expected_reports = reports_of(group)
    if group is None or expected_reports is None or waiting.status != Status.IN_PROGRESS:
        return False
    if member_report.failed:
        return failed_before is None or failed_before < expected_reports.since
    expected = member_reports.expected(group, expected_reports)
    return member_reports.count(tx, key, expected, expected_reports.since) >= expected


def _check_id(member: str) -> None:
    if not member or len(member) > ID_LENGTH_MAX or not member.isprintable():
        message = f"give the id of the member in the cloud, of at most {ID_LENGTH_MAX} printable characters"
        raise Rejected("ValueError", message)
