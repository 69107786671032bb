"""Rollouts of metadata on both databases: reports, steps, ends and claims that come at the same time."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.contract.store_cases import NOW, TIMEOUT_S, add_stack, resource
from tests.contract.test_records import HANDLE, cloud, no_scaling, present

from homeostat.builtin.signals import Signals
from homeostat.clouds.port import Creation
from homeostat.convergence.members.rollouts import RolloutEngine
from homeostat.model.errors import Rejected
from homeostat.model.rollout import Rollout, RolloutBegin, RolloutChange, RolloutEnd, RolloutSettings, WaitGate
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.shards.shard_state import Writes
from homeostat.store.sql import lock_order
from homeostat.store.stacks import rollouts

MEMBERS = 40


def members_of(database: Database, count: int = MEMBERS, **settings: Any) -> tuple[str, Rollout]:
    """A group of so many members, and a handle to which they report: the handle, and the rollout."""
    add_stack(database)
    writes = Writes()
    for key in ("handle", "group"):
        writes.insert(resource(key, "p-web", key))
    with database.write() as tx:
        shard_state.record(tx, "p-web", writes, NOW)
    add_stack(database, "members", parent_id="p-web", parent_key="group", parent_shard=0, root_id="p-web", depth=1)
    inside = Writes()
    for number in range(count):
        inside.insert(resource(f"m{number}", "p-members", f"{number}", handle=f"server-{number}"))
    with database.write() as tx:
        shard_state.record(tx, "p-members", inside, NOW)
        rest = {"status": "COMPLETE", "size": count}
        tx.execute(update(schema.stack).where(schema.stack.c.id == "p-members").values(**rest))
        new = {"metadata": {"v": 1}, "new_metadata": {"v": 2}}
        tx.execute(update(schema.resource).where(schema.resource.c.key == "group").values(**new))
    handle = present(cloud(database).create("signal_handle", [Creation("handle-1", HANDLE)])[0]).handle
    gates = (WaitGate("wait", handle, 300.0),)
    begun = Rollout(
        "group",
        "p-web",
        0,
        "group",
        "p-members",
        "running",
        RolloutSettings(gates=gates, **settings),
        started_at=database.now(),
        step_at=database.now(),
        due_at=1.0,
    )
    change(database, RolloutBegin(begun))
    return handle, begun


def change(database: Database, *changes: RolloutChange) -> None:
    """What a pass stores: stacks, then its shard, then rows."""
    with database.write() as tx:
        locked = rollouts.lock_stacks(tx, "p-web")
        lock_order.take(tx, [("p-web", 0)])
        rollouts.apply(tx, locked, changes, database.now(), TIMEOUT_S)


def state(database: Database) -> Rollout:
    with database.read() as tx:
        found = rollouts.of_group(tx, "group")
    assert found is not None
    return found


def active(database: Database) -> list[Any]:
    with database.read() as tx:
        return list(tx.execute(select(schema.active_metadata_updates)))


def all_at_once(acts: Sequence[Callable[[], object]]) -> list[BaseException]:
    """Do these in a thread each, begun together; return what they raised."""
    barrier = threading.Barrier(len(acts))
    raised: list[BaseException] = []

    def run(act: Callable[[], object]) -> None:
        barrier.wait()
        try:
            act()
        except Exception as error:  # noqa: BLE001 -- the test says what may be raised
            raised.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in acts]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return raised


def reporters(database: Database, handle: str, going: RolloutEngine, numbers: Sequence[int]) -> list[Any]:
    """Reports of these members, each of which names another one, too: that counts for nobody."""
    signals = Signals(database, no_scaling, going.advance)

    def report(number: int) -> Callable[[], object]:
        body = {"data": f"server-{number}", "id": f"server-{(number + 1) % MEMBERS}"}
        return lambda: signals.native("p", "signal_handle", handle, body)

    return [report(number) for number in numbers]


def test_the_last_report_of_many_at_once_makes_it_go_on(database: Database) -> None:
    handle, _ = members_of(database, steps=("50%", "100%"))
    going = RolloutEngine(database)
    going.advance("group")
    for step, seen in ((1, MEMBERS // 2), (2, MEMBERS)):
        assert (state(database).step, len(active(database))) == (step, seen)
        waiting = [int(each.instance_id.removeprefix("server-")) for each in active(database) if not each.status]
        acts = reporters(database, handle, going, waiting)
        assert all_at_once([*acts, *[lambda: going.advance("group")] * 4, going.round, going.round]) == []
    assert state(database).state == "succeeded"
    with database.read() as tx:
        noted = tx.execute(select(schema.event).where(schema.event.c.action == "ROLLOUT")).all()
    assert len(noted) == 3, "two steps and an end, each once"


@pytest.mark.heavy
@pytest.mark.parametrize("round_", range(4))
def test_a_rollout_that_ends_or_begins_among_reports_leaves_no_member_behind(database: Database, round_: int) -> None:
    handle, begun = members_of(database, steps=("100%",))
    going = RolloutEngine(database)
    going.advance("group")
    acts = reporters(database, handle, going, range(MEMBERS))
    failing = Signals(database, no_scaling, going.advance)
    failed = {"data": "server-3", "status": "FAILURE"}

    def alarm() -> None:
        with contextlib.suppress(Rejected):  # the rollout may be over: then the handle takes no alarms
            failing.native("p", "signal_handle", handle, {"status": "firing", "alerts": []})

    others: list[Callable[[], object]] = [
        lambda: change(database, RolloutEnd("group")),
        lambda: change(database, RolloutBegin(begun)),
        lambda: failing.native("p", "signal_handle", handle, failed),
        going.round,
        going.round,
        alarm,
    ]
    assert all_at_once([*others, *acts]) == []
    with database.read() as tx:
        left = rollouts.of_group(tx, "group")
    if left is None or left.state == "rolled_back":
        assert active(database) == []
    else:
        assert len(active(database)) == left.active


def test_claims_do_not_wait_for_a_rollout_that_goes_on(database: Database) -> None:
    members_of(database)
    if database.is_sqlite:
        pytest.skip("SQLite's writers exclude one another")
    with database.write() as tx:
        assert rollouts.lock(tx, "group") is not None
        with database.write() as other:
            assert rollouts.claim_due(other, database.now(), 10) == []
    with database.write() as tx:
        assert rollouts.claim_due(tx, database.now(), 10) == ["group"]


@pytest.mark.parametrize("name", ["a\0b", "x" * 1_000_000])
def test_names_of_members_that_a_database_cannot_hold(database: Database, name: str) -> None:
    handle, _ = members_of(database)
    going = RolloutEngine(database)
    going.advance("group")
    signals = Signals(database, no_scaling, going.advance)
    signals.native("p", "signal_handle", handle, {"data": name, "status": "FAILURE", "reason": "x\0y"})
    assert state(database).state == "running"


@pytest.mark.heavy
def test_members_that_failed_may_be_more_than_a_statement_has_parameters(database: Database) -> None:
    members_of(database, 66_000, steps=("10",))
    with database.write() as tx:
        mine = schema.resource.c.stack_id == "p-members"
        tx.execute(update(schema.resource).where(mine).values(status="FAILED"))
        tx.execute(update(schema.shard).where(schema.shard.c.stack_id == "p-members").values(failures=66_000))
    RolloutEngine(database).advance("group")
    assert len(active(database)) == 10
