"""What members report to their group, on SQLite and on PostgreSQL: counted once, also where many report at once."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.contract.store_cases import NOW, add_stack, at_once, resource

from homeostat.builtin.member_reports import MemberReport, MemberReports
from homeostat.model.errors import Rejected
from homeostat.model.group import GroupDefinition
from homeostat.planner.members.member_reports import Tally
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import member_reports, stacks

KEY, MEMBERS = "group", 12
PROPERTIES = {"(update policy)": {"AutoScalingRollingUpdate": {"WaitOnResourceSignals": True}}}
BATCH = [[0, 2], [4, MEMBERS]]


def group_of(since: float = NOW, **asked: Any) -> dict[str, Any]:
    usual = {"timeout": 60.0, "percent": 100.0, "count": None, "succeeded": 0, "lost": 0, "number": 1, "total": 9}
    rollout: dict[str, Any] = {
        "target": MEMBERS,
        "max_batch_size": MEMBERS,
        "min_in_service": 0,
        "pause_time": 0.0,
        "batch": BATCH,
    }
    rollout["batch"] = BATCH
    rollout["reports"] = {**usual, "since": since, **asked}
    return {"resource_def": {}, "index_var": None, "count": MEMBERS, "skip": [], "rollout": rollout}


@pytest.fixture
def group(database: Database) -> str:
    """A group at rest, whose members in `BATCH` have to report; gives the id of its stack."""
    top = add_stack(database)
    kind = "AWS::AutoScaling::AutoScalingGroup"
    writes = Writes()
    writes.insert(resource(KEY, top, KEY, type=kind, properties=PROPERTIES))
    with database.write() as tx:
        shard_state.record(tx, top, writes, NOW)
    around: dict[str, Any] = {"parent_id": top, "parent_key": KEY, "parent_shard": 0, "root_id": top, "depth": 1}
    inner = add_stack(database, "members", **around)
    inside = Writes()
    for number in range(MEMBERS):
        inside.insert(resource(f"m{number}", inner, f"{number}", type="AWS::EC2::Instance", handle=f"server-{number}"))
    inside.insert(resource("old", inner, "5", type="AWS::EC2::Instance", handle="server-old", replaced_by="m5"))
    with database.write() as tx:
        shard_state.record(tx, inner, inside, NOW)
        rest = {"status": "IN_PROGRESS", "step_at": NOW + 60}
        tx.execute(update(schema.stack).where(schema.stack.c.id == inner).values(**rest))
        mine = (schema.revision.c.stack_id == inner,)
        tx.execute(update(schema.revision).where(*mine).values(kind="group", template=group_of()))
        tx.execute(update(schema.shard).where(schema.shard.c.stack_id == inner).values(wake_at=None))
    return inner


def reports(database: Database) -> dict[str, tuple[float | None, float | None, str]]:
    with database.read() as tx:
        rows = tx.execute(select(schema.member_report)).all()
    return {each.member: (each.succeeded_at, each.failed_at, each.said) for each in rows}


def store(database: Database, member: str, at: float, *, failed: bool = False, said: str = "") -> None:
    with database.write() as tx:
        if not member_reports.repeat(tx, KEY, member, at, failed=failed, reason=said):
            member_reports.add(tx, KEY, member, at, failed=failed, reason=said)


def tally(database: Database, stack_id: str, **asked: Any) -> Tally:
    series = GroupDefinition.decoded(group_of(**asked)).series
    assert series is not None
    assert series.reports is not None
    with database.read() as tx:
        return member_reports.tally(tx, stacks.get(tx, stack_id), series, series.reports, [0])


def woken(database: Database, stack_id: str) -> bool:
    with database.read() as tx:
        chosen = select(schema.shard.c.wake_at).where(schema.shard.c.stack_id == stack_id)
        return tx.execute(chosen).scalar_one() is not None


def test_reports_are_kept_by_member(database: Database, group: str) -> None:
    store(database, "server-1", NOW)
    store(database, "server-1", NOW + 1, failed=True, said="no")
    store(database, "server-1", NOW + 2)
    with database.write() as tx:  # two first reports at once
        member_reports.add(tx, KEY, "server-1", NOW + 3, failed=True, reason="no\0more")
    assert reports(database) == {"server-1": (NOW + 2, NOW + 3, "no\ufffdmore")}


def test_they_count_from_the_beginning_of_the_batch(database: Database, group: str) -> None:
    store(database, "server-0", NOW - 1, failed=True)
    store(database, "server-0", NOW)
    store(database, "server-1", NOW - 1)
    store(database, "server-2", NOW)
    store(database, "server-5", NOW, failed=True, said="full")
    store(database, "server-old", NOW)
    store(database, "anything", NOW)
    found = tally(database, group)
    assert found == Tally(1, {"5": "full"}, ("1", "4", "6", "7", "8", "9", "10", "11"))
    everyone = tally(database, group, count=3)
    assert (everyone.succeeded, sorted(everyone.failed), len(everyone.silent)) == (2, ["5"], MEMBERS - 3)
    with database.read() as tx:
        assert member_reports.count(tx, KEY, 100, NOW) == 5
        assert member_reports.count(tx, KEY, 2, NOW) == 2
        assert member_reports.count(tx, KEY, 100) == 6
        assert member_reports.count(tx, "another", 100) == 0


def test_what_says_nothing_any_more_is_dropped(database: Database, group: str) -> None:
    store(database, "server-0", NOW - 1)
    store(database, "server-1", NOW - 1)
    store(database, "server-1", NOW + 1, failed=True)
    store(database, "server-2", NOW + 1)
    with database.write() as tx:
        member_reports.drop(tx, KEY, NOW)
    assert sorted(reports(database)) == ["server-1", "server-2"]
    with database.write() as tx:
        member_reports.drop(tx, "another")
        member_reports.drop(tx, KEY)
    assert reports(database) == {}


def test_of_many_that_report_at_once_the_last_one_wakes_the_group(database: Database, group: str) -> None:
    receiver = MemberReports(database)
    with database.write() as tx:
        since = group_of(since=tx.now() - 60)
        tx.execute(update(schema.revision).where(schema.revision.c.stack_id == group).values(template=since))
    batch = [number for low, high in BATCH for number in range(low, high)]
    receiver.take(KEY, MemberReport(f"server-{batch[0]}", failed=False))
    assert not woken(database, group)

    def reporting(number: int) -> Callable[[], None]:
        return lambda: receiver.take(KEY, MemberReport(f"server-{number}", failed=False))

    at_once([reporting(number) for number in [*batch[1:], *batch[1:]]])
    assert woken(database, group)
    assert len(reports(database)) == len(batch)


def test_a_failure_wakes_it_at_once(database: Database, group: str) -> None:
    MemberReports(database).take(KEY, MemberReport("server-0", failed=True, reason="no"))
    assert woken(database, group)


def test_a_group_that_is_gone_takes_none(database: Database, group: str) -> None:
    store(database, "server-0", NOW)
    with database.write() as tx:
        tx.execute(schema.resource.delete().where(schema.resource.c.key == KEY))
    assert reports(database) == {}
    with pytest.raises(Rejected, match="not supported"):
        MemberReports(database).take(KEY, MemberReport("server-0", failed=False))
