"""The store's contract under concurrency, on SQLite and on PostgreSQL: threads with transactions of their own."""

from functools import partial

import pytest
from sqlalchemy import select
from tests.contract.store_cases import (
    LEASE_S,
    NOW,
    TIMEOUT_S,
    add_stack,
    at_once,
    claim,
    come_to_rest,
    event,
    locked,
    resource,
    revise,
    schedule_look,
    shard_row,
    stack_row,
)
from tests.databases import on_a_server

from homeostat.clock import SystemClock
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence.observer import Observer
from homeostat.model.errors import Superseded
from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Action, Status
from homeostat.model.world import Seen
from homeostat.store import events, schema
from homeostat.store.database import Database
from homeostat.store.shards import leases, look_schedule, observations, orphans, shard_state
from homeostat.store.shards.orphans import Orphan
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import action_begin, action_end

ROUNDS = 15
LATER = NOW + 1000


def end_of_pass(database: Database, lease: leases.Lease, revision: int) -> bool:
    """A pass that found everything at rest: locks the stack, then its shard. Did this complete the stack?"""
    with database.write() as tx:
        locked(tx, lease.stack_id)
        wakes = leases.renew(tx, lease, NOW, LEASE_S)
        completed = come_to_rest(tx, lease.stack_id, lease.number, revision) is not None
        leases.release(tx, lease, wakes, None)
    return completed


def middle_of_pass(database: Database, lease: leases.Lease, writes: Writes) -> None:
    """A pass that stores outcomes: its shard only."""
    with database.write() as tx:
        leases.renew(tx, lease, NOW, LEASE_S)
        shard_state.record(tx, lease.stack_id, writes, NOW)


def test_a_shard_is_claimed_by_one_of_many(database: Database) -> None:
    def try_to_claim(stack_id: str, owner: str) -> bool:
        with database.write() as tx:
            return leases.claim(tx, stack_id, 0, owner, NOW, LEASE_S) is not None

    for number in range(ROUNDS):
        stack_id = add_stack(database, f"s{number}")
        won = at_once([partial(try_to_claim, stack_id, f"w{n}") for n in range(4)])
        assert won.count(True) == 1
        assert shard_row(database, stack_id).epoch == 1


def test_the_last_two_shards_complete_the_stack_once(database: Database) -> None:
    for number in range(ROUNDS):
        stack_id = add_stack(database, f"s{number}", shard_count=2)
        held = [claim(database, stack_id, shard) for shard in (0, 1)]
        completed = at_once([partial(end_of_pass, database, lease, 1) for lease in held])
        assert sorted(completed) == [False, True]
        assert stack_row(database, stack_id).status == Status.COMPLETE
        with database.read() as tx:
            listed = events.page(tx, [stack_id], only={"status": ["COMPLETE"]})
        assert len(listed) == 1


@pytest.mark.shows("CV7")
def test_two_observers_never_take_the_same_shard(database: Database) -> None:
    stack_id = add_stack(database, shard_count=60)

    def take_all() -> list[int]:
        taken: list[int] = []
        while True:
            with database.write() as tx:
                found = look_schedule.take_for_observation(tx, NOW, 4, 60.0)
            if not found:
                return taken
            taken += [number for _, number in found]

    with database.write() as tx:
        for number in range(60):
            schedule_look(tx, stack_id, number, NOW - number)
    first, second = at_once([take_all, take_all])
    assert sorted(first + second) == list(range(60))


def test_what_several_workers_look_for_late_is_watched_for_so_much_longer_once(database: Database) -> None:
    late = NOW + orphans.GAP_S + 60.0

    def miss() -> None:
        with database.write() as tx:
            tokens = [each.token for each in orphans.take_due(tx, late, ROUNDS)]
            orphans.record_missing(tx, tokens or known, late)

    known = [f"key-{number}" for number in range(ROUNDS)]
    with database.write() as tx:
        orphans.add(tx, [Orphan(token, "server", "p") for token in known], NOW)
    at_once([miss, miss, miss, miss])
    with database.read() as tx:
        untils = tx.execute(select(schema.orphan.c.until)).scalars().all()
    assert untils == [NOW + orphans.PATIENCE_S + 60.0] * ROUNDS


def test_users_and_passes_get_along(database: Database) -> None:
    """Revisions come while shards settle: no deadlock, nobody's write is lost, and the newest revision completes."""
    stack_id = add_stack(database, shard_count=2)

    def change_my_mind() -> None:
        for _ in range(ROUNDS):
            revise(database, stack_id)

    def keep_settling(number: int) -> None:
        for _ in range(ROUNDS):
            with database.write() as tx:
                lease = leases.claim(tx, stack_id, number, f"w{number}", NOW, LEASE_S)
            if lease is not None:
                end_of_pass(database, lease, int(stack_row(database, stack_id).revision))

    at_once([change_my_mind, lambda: keep_settling(0), lambda: keep_settling(1)])
    row = stack_row(database, stack_id)
    assert row.revision == 1 + ROUNDS
    for number in (0, 1):
        with database.write() as tx:
            come_to_rest(tx, stack_id, number, row.revision)
    assert stack_row(database, stack_id).status == Status.COMPLETE


@pytest.mark.shows("CV3")
def test_users_and_passes_that_store_outcomes_get_along(database: Database) -> None:
    """An outcome is stored with its event, which belongs to the stack, by a user who holds the shard alone."""
    stack_id = add_stack(database)
    lease = claim(database, stack_id)

    def store_outcomes() -> None:
        for number in range(ROUNDS):
            writes = Writes(events=[event(f"r{number}")])
            writes.insert(resource(f"key{number}", stack_id, f"r{number}"))
            middle_of_pass(database, lease, writes)

    def change_my_mind() -> None:
        for _ in range(ROUNDS):
            revise(database, stack_id)

    at_once([store_outcomes, change_my_mind])
    assert stack_row(database, stack_id).revision == 1 + ROUNDS
    with database.read() as tx:
        assert len(shard_state.load_rows(tx, stack_id, 0)[0]) == ROUNDS


def test_observers_and_passes_get_along(database: Database) -> None:
    """Both write what was seen of a row and wake, or own, its shard: a transaction with both takes the shard first."""
    stack_id = add_stack(database)
    lease = claim(database, stack_id)
    row = resource("key1", stack_id, handle="h")
    first = Writes()
    first.insert(row)
    first.seen[row.key] = (row, Seen(Observation(Presence.PRESENT, "h", {}, NOW), 1))
    middle_of_pass(database, lease, first)
    with database.read() as tx:
        (watched,) = observations.by_handle(tx, ["h"], [row.type])
    cloud = SimulatedCloud(lambda: NOW)
    observer = Observer(database, lambda _project: cloud, SystemClock(), 60.0, 1.0)

    def keep_seeing() -> None:
        for number in range(ROUNDS):
            observer._store([(watched, Observation(Presence.PRESENT, "h", {"n": number}, LATER + number))])

    def keep_storing() -> None:
        for number in range(ROUNDS):
            writes = Writes()
            writes.seen[row.key] = (row, Seen(Observation(Presence.PRESENT, "h", {}, NOW), number))
            middle_of_pass(database, lease, writes)

    at_once([keep_seeing, keep_storing])
    assert shard_row(database, stack_id).wakes == 1 + ROUNDS


@pytest.mark.shows("CV3")
def test_concurrent_revisions_are_numbered_one_after_the_other(database: Database) -> None:
    stack_id = add_stack(database)
    numbers = at_once([lambda: revise(database, stack_id) for _ in range(6)])
    assert sorted(numbers) == [2, 3, 4, 5, 6, 7]
    assert shard_row(database, stack_id).wakes == 7


@pytest.mark.shows("CV11")
def test_a_rollback_never_overtakes_a_newer_intent(database: Database) -> None:
    """The second one finds that its revision is not the newest any more, and does nothing."""

    def fail_and_roll_back(stack_id: str) -> bool:
        with database.write() as tx:
            before = action_end.fail(tx, stack_id, 1, "no", NOW)
            if before is not None:
                action_begin.roll_back(tx, before, NOW, TIMEOUT_S)
            return before is not None

    for number in range(ROUNDS):
        stack_id = add_stack(database, f"s{number}")
        failed, _ = at_once([partial(fail_and_roll_back, stack_id), partial(revise, database, stack_id)])
        row = stack_row(database, stack_id)
        assert (row.action, row.revision) == (Action.UPDATE, 3 if failed else 2)


@pytest.mark.shows("CV3")
def test_a_stale_owner_and_a_new_one_do_not_both_write(database: Database) -> None:
    """The old owner wakes up after its lease ran out, at the very moment at which the new one begins."""

    def write(lease: leases.Lease, name: str) -> bool:
        writes = Writes()
        writes.insert(resource(f"{lease.stack_id}-{name}", lease.stack_id, name))
        try:
            middle_of_pass(database, lease, writes)
        except Superseded:
            return False
        return True

    def take_over(stack_id: str) -> leases.Lease:
        while True:  # a shard whose row is being written to is passed over: a conductor comes back to it
            with database.write() as tx:
                lease = leases.claim(tx, stack_id, 0, "new", NOW + LEASE_S, LEASE_S)
            if lease is not None:
                return lease

    for number in range(ROUNDS):
        stack_id = add_stack(database, f"s{number}")
        stale = claim(database, stack_id, owner="old")
        wrote, lease = at_once([partial(write, stale, "old"), partial(take_over, stack_id)])
        assert write(lease, "new")
        assert not write(stale, "too-late")
        with database.read() as tx:
            names = {row.name for row in shard_state.load_rows(tx, stack_id, 0)[0].values()}
        assert names == ({"old", "new"} if wrote else {"new"})


@on_a_server
def test_the_transaction_of_a_user_does_not_hinder_claims(server_database_url: str) -> None:
    database = Database(server_database_url, lambda: NOW)
    database.migrate()
    stack_id = add_stack(database)
    with database.write() as tx:
        locked(tx, stack_id)
        assert claim(database, stack_id).epoch == 1
    database.close()
