"""Reports of members that come at once, on both databases: none is lost, and each failure is seen."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.contract.store_cases import NOW
from tests.contract.test_records import no_scaling
from tests.contract.test_store_rollout_races import MEMBERS, active, all_at_once, members_of, state

from homeostat.builtin.signals import Signals
from homeostat.convergence.members.rollouts import RolloutEngine
from homeostat.model.errors import Rejected
from homeostat.resources.signals import FAILURE, SUCCESS
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.stacks import rollout_reports
from homeostat.store.stacks.rollout_reports import Gate, Report, Reported

FAILING = range(0, MEMBERS, 4)
ONE = [Gate("group", 0, 1)]
FIRST, SECOND = [Gate("group", 0, 2)], [Gate("group", 1, 2)]


class Process:
    """One of several processes that take signals of the same members."""

    def __init__(self, database: Database, handle: str) -> None:
        self.db, self.handle = database, handle
        self._signals = Signals(database, no_scaling, RolloutEngine(database).advance)

    def report(self, member: int, status: str = SUCCESS, **body: Any) -> None:
        self._signals.native("p", "signal_handle", self.handle, {"data": f"server-{member}", "status": status, **body})


@contextlib.contextmanager
def processes(database: Database, **settings: Any) -> Iterator[tuple[Process, Process]]:
    """A rollout that has reached all members at once."""
    handle, _ = members_of(database, steps=("100%",), **settings)
    RolloutEngine(database).advance("group")
    with contextlib.closing(Database(database.url, time.time)) as other:
        yield Process(database, handle), Process(other, handle)


def statuses(database: Database) -> dict[str, str]:
    return {each.instance_id: each.status for each in active(database)}


def said(database: Database, action: str = "SIGNAL") -> list[str]:
    """Reasons of the events."""
    with database.read() as tx:
        table = schema.event
        return list(tx.execute(select(table.c.reason).where(table.c.action == action).order_by(table.c.seq)).scalars())


def test_none_of_many_is_lost_and_each_failure_counts_in_any_order(database: Database) -> None:
    def reporting(process: Process, member: int, status: str) -> Callable[[], object]:
        return lambda: process.report(member, status)

    with processes(database, failures_max=MEMBERS) as both:
        acts = [reporting(both[member % 2], member, SUCCESS) for member in range(MEMBERS)]
        acts += [reporting(process, member, FAILURE) for member in FAILING for process in both]
        assert all_at_once(acts) == []
    failed = {f"server-{member}" for member in FAILING}
    assert statuses(database) == {
        f"server-{member}": FAILURE if member in FAILING else SUCCESS for member in range(MEMBERS)
    }
    assert state(database).state == "succeeded", "the last report has made it go on"
    assert sorted(each.rpartition(" ")[2] for each in said(database)) == sorted(failed), "a failure is news once"


def test_a_failure_among_successes_brings_the_old_metadata_back_before_it_is_answered(database: Database) -> None:
    left: list[int] = []

    with processes(database) as (process, _):

        def fail() -> None:
            process.report(7, FAILURE)
            left.append(len(active(database)))

        def succeeding(member: int) -> Callable[[], object]:
            return lambda: process.report(member)

        assert all_at_once([fail, *[succeeding(member) for member in range(20) if member != 7]]) == []
    assert left == [0]
    assert state(database).state == "rolled_back"


def test_a_member_that_says_the_same_again_is_no_news(database: Database) -> None:
    with processes(database, on_failure="hold") as (process, other):
        for each in (process, other, process):
            each.report(3, FAILURE, reason="no route")
        process.report(3, SUCCESS)
        process.report(3, FAILURE, reason="still none")
        for each in (process, other):
            each.report(4)
    assert [each.partition(" from ")[0] for each in said(database)] == ["Signal: status:FAILURE reason:no route"]
    assert {name: statuses(database)[name] for name in ("server-3", "server-4")} == {
        "server-3": FAILURE,
        "server-4": SUCCESS,
    }
    (row,) = (each for each in active(database) if each.instance_id == "server-3")
    assert row.said == "still none"
    assert state(database).state == "held"


def test_a_failure_after_a_success_is_news(database: Database) -> None:
    with processes(database, on_failure="hold") as (process, _):
        process.report(3)
        process.report(3, FAILURE, reason="it died")
    assert len(said(database)) == 1
    assert statuses(database)["server-3"] == FAILURE


def test_a_signal_that_is_none_is_refused_and_those_beside_it_are_stored(database: Database) -> None:
    with processes(database) as (process, _):

        def reporting(member: int) -> Callable[[], object]:
            status = "MAYBE" if member == 5 else SUCCESS
            return lambda: process.report(member, status)

        (refused,) = all_at_once([reporting(member) for member in range(10)])
    assert isinstance(refused, Rejected)
    done = {name for name, status in statuses(database).items() if status == SUCCESS}
    assert done == {f"server-{member}" for member in range(10) if member != 5}


def test_the_first_name_that_is_a_member_counts(database: Database) -> None:
    """Agents may say what they like in one of the two parts that may be the id of the member."""

    def naming(process: Process, member: int) -> Callable[[], object]:
        return lambda: process.report(member, data="configured", id=f"server-{member}")

    with processes(database) as (process, _):
        assert all_at_once([naming(process, member) for member in range(10)]) == []
        process.report(0, data="server-20", id="server-21")
    done = {name for name, status in statuses(database).items() if status == SUCCESS}
    assert done == {*(f"server-{member}" for member in range(10)), "server-20"}


def stored(database: Database, gates: Sequence[Gate], *reports: Report) -> list[list[Reported] | None]:
    with database.write() as tx:
        return rollout_reports.store(tx, gates, reports, NOW)


def named(member: int, status: str = SUCCESS) -> Report:
    return Report((f"server-{member}",), status, "")


def test_a_member_has_to_report_to_all_wait_conditions(database: Database) -> None:
    with processes(database) as (process, _):
        pass
    only = rollout_reports.only_rollout(FIRST)
    assert only is not None
    with database.write() as tx:
        tx.execute(update(schema.rollout_gate).values(gates=2))
        assert rollout_reports.succeed(tx, process.handle, only, ["server-1", "another"], NOW) == {
            "server-1": Reported("group", 1, failed=False, is_news=False, is_done=False)
        }
    assert stored(database, FIRST, named(2), named(2), named(40)) == [
        [Reported("group", 1, failed=False, is_news=True, is_done=False)],
        [Reported("group", 1, failed=False, is_news=False, is_done=False)],
        [],
    ]
    assert stored(database, SECOND, named(1)) == [[Reported("group", 1, failed=False)]]
    assert (statuses(database)["server-1"], statuses(database)["server-2"]) == (SUCCESS, "")


def test_a_member_whose_row_is_held_is_stored_apart(database: Database) -> None:
    if database.is_sqlite:
        pytest.skip("SQLite's writers exclude one another")
    with processes(database) as (process, _):
        pass
    table = schema.active_metadata_updates
    held = select(table).where(table.c.instance_id == "server-5").with_for_update()
    only = rollout_reports.only_rollout(ONE)
    assert only is not None
    with database.write() as tx:
        tx.execute(held)
        with database.write() as other:
            assert list(rollout_reports.succeed(other, process.handle, only, ["server-4", "server-5"], NOW)) == [
                "server-4"
            ]
        first, apart, second = stored(database, ONE, named(6), named(5, FAILURE), named(7, FAILURE))
    assert (first, apart) == ([Reported("group", 1, failed=False)], None)
    assert second == [Reported("group", 1, failed=True)]
    assert stored(database, ONE, named(5, FAILURE)) == [[Reported("group", 1, failed=True)]]


def test_a_report_does_not_count_by_the_gates_of_the_rollout_before(database: Database) -> None:
    """Found by the simulation (seed 44000318): another rollout had begun since the gates were read."""
    with processes(database) as (process, _):
        pass
    before = rollout_reports.only_rollout(ONE)
    assert before is not None
    with database.write() as tx:
        tx.execute(update(schema.rollout_gate).values(gates=2))
        assert rollout_reports.succeed(tx, process.handle, before, ["server-1"], NOW) == {}
    assert statuses(database)["server-1"] == ""
    process.report(1)
    assert statuses(database)["server-1"] == "", "it has to report to the other condition, too"


def test_a_step_has_a_witness_until_it_is_over(database: Database) -> None:
    with processes(database) as (process, _):
        pass
    only = rollout_reports.only_rollout(ONE)
    assert only is not None
    known = ""
    order: list[str] = []
    for _ in range(MEMBERS):
        with database.write() as tx:
            known = rollout_reports.witness(tx, "group", 1, known) or ""
            assert rollout_reports.witness(tx, "group", 1, known) == known, "as long as it has not reported"
            order.append(known)
            rollout_reports.succeed(tx, process.handle, only, [known], NOW)
    assert sorted(order) == sorted(statuses(database))
    with database.read() as tx:
        assert rollout_reports.witness(tx, "group", 1, known) is None
