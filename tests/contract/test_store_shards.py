"""The store's contract, on SQLite and on PostgreSQL: leases, wake-ups and fair order of shards."""

import contextlib
import time

import pytest
from sqlalchemy import update
from tests import upcoming
from tests.contract.store_cases import LEASE_S, NOW, add_stack, claim, revise, schedule_look, shard_row
from tests.databases import on_a_server

from homeostat.model.errors import Superseded
from homeostat.model.status import Action
from homeostat.model.world import Resource
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.operation import purge
from homeostat.store.operation.purge import Rules
from homeostat.store.shards import fair_queue, leases, look_schedule, shard_state, shards
from homeostat.store.shards.look_schedule import TAKEN_S
from homeostat.store.shards.shards import DRIFT, GARBAGE, HEAL, USER
from homeostat.store.stacks.contents import EMPTY

LATER = NOW + LEASE_S + 1


def release(db: Database, lease: leases.Lease, wake_at: float | None = None) -> bool:
    with db.write() as tx:
        return leases.release(tx, lease, lease.wakes, wake_at)


def wake(db: Database, stack_id: str, at: float = NOW, priority: int = USER) -> None:
    with db.write() as tx:
        shards.wake(tx, stack_id, at, priority)


def due(db: Database, at: float = NOW, limit: int = 100) -> list[tuple[str, int]]:
    with db.read() as tx:
        return [(row.stack_id, row.number) for row in fair_queue.due(tx, at, limit)]


def asleep(db: Database, name: str, project: str = "p") -> str:
    """A stack whose shard has nothing to do."""
    stack_id = add_stack(db, name, project=project)
    release(db, claim(db, stack_id))
    return stack_id


# -- progress ---------------------------------------------------------------------------------------------------------


def reached(db: Database, stack_id: str, *reports: leases.PassProgress) -> list[tuple[int, int]]:
    """Planned and done after each release that tells of it."""
    found = []
    for each in reports:
        wake(db, stack_id, NOW)
        lease = claim(db, stack_id)
        with db.write() as tx:
            leases.release(tx, lease, lease.wakes, None, each)
        row = shard_row(db, stack_id)
        found.append((row.planned, row.done))
    return found


def test_what_was_planned_stays_planned_until_nothing_is_left(database: Database) -> None:
    stack_id = add_stack(database)
    steps = (leases.PassProgress(1, 5, 5, 2), leases.PassProgress(1, 4, 3, 2), leases.PassProgress(1, 6, 1, 2))
    assert reached(database, stack_id, *steps) == [(5, 0), (5, 2), (6, 5)]
    assert reached(database, stack_id, leases.PassProgress(1, 3, 0, 2)) == [(2, 2)]


def test_what_an_older_revision_has_reached_counts_nothing(database: Database) -> None:
    stack_id = add_stack(database)
    assert reached(database, stack_id, leases.PassProgress(1, 5, 1, 5), leases.PassProgress(0, 9, 0, 9)) == [
        (5, 4),
        (5, 4),
    ]


def test_a_new_revision_begins_from_nothing_where_it_is_not_at_rest(database: Database) -> None:
    stack_id = add_stack(database)
    reached(database, stack_id, leases.PassProgress(1, 5, 0, 5))
    with database.write() as tx:
        shards.wake(tx, stack_id, NOW, USER, restart_at=0)
    assert shard_row(database, stack_id).done == 5
    with database.write() as tx:
        shards.wake(tx, stack_id, NOW, USER, restart_at=2)
    assert (shard_row(database, stack_id).planned, shard_row(database, stack_id).done) == (5, 0)


# -- one owner at a time -----------------------------------------------------------------------------------------------


def test_a_claimed_shard_belongs_to_its_owner_until_its_lease_runs_out(database: Database) -> None:
    stack_id = add_stack(database)
    first = claim(database, stack_id, owner="w1")
    with database.write() as tx:
        assert leases.claim(tx, stack_id, 0, "w2", NOW + LEASE_S - 1, LEASE_S) is None
    assert due(database, NOW + LEASE_S - 1) == []
    second = claim(database, stack_id, owner="w2", at=LATER)
    assert second.epoch == first.epoch + 1


def test_a_stale_owner_writes_nothing(database: Database) -> None:
    stack_id = add_stack(database)
    stale = claim(database, stack_id, owner="w1")
    claim(database, stack_id, owner="w2", at=LATER)
    before = shard_row(database, stack_id)

    with pytest.raises(Superseded, match=f"newer owner than epoch {stale.epoch}"), database.write() as tx:
        leases.renew(tx, stale, LATER, LEASE_S)
    assert release(database, stale, NOW) is False
    with database.write() as tx:
        leases.set_aside(tx, stale, "a bug", LATER + 99)
    with database.write() as tx:
        leases.renew_all(tx, [stale], LATER, 1000.0)

    assert shard_row(database, stack_id) == before


def test_a_renewed_lease_lasts_longer(database: Database) -> None:
    stack_id = add_stack(database)
    lease = claim(database, stack_id)
    with database.write() as tx:
        assert leases.renew(tx, lease, NOW + 4, LEASE_S) == lease.wakes
    assert due(database, NOW + 8) == []
    assert due(database, NOW + 4 + LEASE_S) == [(stack_id, 0)]


def test_a_heartbeat_renews_the_living_leases_that_it_names(database: Database) -> None:
    mine, others, expired, released = (add_stack(database, name) for name in ("a", "b", "c", "d"))
    claim(database, others, owner="you", at=NOW + 4)
    held = [claim(database, mine, at=NOW + 4), claim(database, expired), claim(database, released, at=NOW + 4)]
    release(database, held[2], None)
    with database.write() as tx:
        leases.renew_all(tx, held, NOW + 6, LEASE_S)
    until = {stack_id: shard_row(database, stack_id).lease_until for stack_id in (mine, others, expired, released)}
    assert until == {mine: NOW + 6 + LEASE_S, others: NOW + 4 + LEASE_S, expired: NOW + LEASE_S, released: 0.0}


def test_leases_that_still_stand(database: Database) -> None:
    stack_id = add_stack(database, shard_count=3)
    stands, over, taken = (claim(database, stack_id, number) for number in range(3))
    with database.write() as tx:
        leases.renew_all(tx, [stands, taken], NOW + 1, LEASE_S)
    release(database, over)
    with database.read() as tx:
        assert leases.unexpired(tx, [stands, over, taken], NOW + 2) == {stands, taken}
    again = claim(database, stack_id, 2, at=LATER)
    with database.read() as tx:
        assert leases.unexpired(tx, [stands, taken, again], LATER) == {again}


def test_a_shard_that_met_a_bug_rests_and_keeps_the_reason(database: Database) -> None:
    stack_id = add_stack(database)
    lease = claim(database, stack_id)
    with database.write() as tx:
        leases.set_aside(tx, lease, "KeyError('x')", NOW + 30)
    row = shard_row(database, stack_id)
    assert (row.owner, row.wake_at, row.reason) == (None, NOW + 30, "KeyError('x')")


# -- wake-ups ----------------------------------------------------------------------------------------------------------


def test_a_shard_is_not_claimed_before_it_is_woken(database: Database) -> None:
    stack_id = asleep(database, "web")
    with database.write() as tx:
        assert leases.claim(tx, stack_id, 0, "w", LATER, LEASE_S) is None
    wake(database, stack_id, at=LATER)
    with database.write() as tx:
        assert leases.claim(tx, stack_id, 0, "w", LATER - 1, LEASE_S) is None
    assert claim(database, stack_id, at=LATER)


def test_a_wake_up_during_a_pass_is_not_lost(database: Database) -> None:
    stack_id = add_stack(database)
    lease = claim(database, stack_id)
    wake(database, stack_id, at=NOW + 1)
    assert release(database, lease, wake_at=None)
    assert due(database, NOW + 1) == [(stack_id, 0)]


def test_a_shard_given_back_sleeps_until_it_wants_to_be_woken(database: Database) -> None:
    stack_id = add_stack(database)
    release(database, claim(database, stack_id), wake_at=NOW + 9)
    assert due(database, NOW + 8) == []
    assert due(database, NOW + 9) == [(stack_id, 0)]


@pytest.mark.parametrize(
    ("before", "asked", "after"),
    [
        pytest.param(NOW + 9, NOW + 5, NOW + 5, id="earlier wins"),
        pytest.param(NOW + 5, NOW + 9, NOW + 5, id="later changes nothing"),
        pytest.param(None, NOW + 9, NOW + 9, id="asleep"),
    ],
)
def test_the_earliest_wake_up_counts(database: Database, before: float | None, asked: float, after: float) -> None:
    stack_id = add_stack(database)
    release(database, claim(database, stack_id), wake_at=before)
    wake(database, stack_id, at=asked)
    assert shard_row(database, stack_id).wake_at == after


def test_a_wake_up_names_its_shards(database: Database) -> None:
    stack_id = add_stack(database, shard_count=3)
    with database.write() as tx:
        shards.wake(tx, stack_id, NOW, USER, [0, 2])
    assert [shard_row(database, stack_id, number).wakes for number in range(3)] == [2, 1, 2]


def test_the_next_wake_is_the_earliest_claimable_time(database: Database) -> None:
    first, second = asleep(database, "a"), asleep(database, "b")
    with database.read() as tx:
        assert upcoming.next_wake(tx) is None
    wake(database, first, at=NOW)
    claim(database, first)
    wake(database, second, at=NOW + 99)
    with database.read() as tx:
        assert upcoming.next_wake(tx) == NOW + LEASE_S


# -- who comes first ---------------------------------------------------------------------------------------------------


def test_nothing_waits_for_ever(database: Database) -> None:
    """What is not urgent goes with the urgent when it has waited."""
    wake(database, asleep(database, "user"), NOW - 5, USER)
    wake(database, asleep(database, "heal"), NOW - fair_queue.PATIENCE_S, HEAL)
    wake(database, asleep(database, "drift"), NOW - fair_queue.PATIENCE_S, DRIFT)
    assert [stack_id for stack_id, _ in due(database)] == ["p-heal", "p-user", "p-drift"]


def test_projects_take_turns(database: Database) -> None:
    """CV17: also when none of their shards is being worked on yet."""
    large = add_stack(database, "large", project="busy", shard_count=50, at=NOW - 60)
    small = add_stack(database, "small", project="quiet", at=NOW - 1)
    assert due(database, limit=3) == [(large, 0), (small, 0), (large, 1)]


def test_of_one_tree_each_stack_begins_before_any_goes_on_with_its_next_shard(database: Database) -> None:
    root = add_stack(database, "root", at=NOW - 60)
    large = add_stack(database, "large", shard_count=5, root_id=root, parent_id=root, at=NOW - 50)
    later = add_stack(database, "later", root_id=root, parent_id=root, at=NOW - 5)
    assert due(database, limit=4) == [(root, 0), (large, 0), (later, 0), (large, 1)]


def test_urgent_work_goes_first(database: Database) -> None:
    names = {"garbage": (GARBAGE, NOW - 9), "drift": (DRIFT, NOW - 7), "heal": (HEAL, NOW - 5), "user": (USER, NOW)}
    for name, (priority, at) in names.items():
        wake(database, asleep(database, name), at, priority)
    assert [stack_id for stack_id, _ in due(database)] == ["p-user", "p-heal", "p-drift", "p-garbage"]


def test_the_most_urgent_of_several_wake_ups_counts(database: Database) -> None:
    stack_id = asleep(database, "web")
    for priority in (DRIFT, USER, GARBAGE):
        wake(database, stack_id, priority=priority)
    assert shard_row(database, stack_id).priority == USER


def test_a_project_that_is_served_lets_others_go_first(database: Database) -> None:
    """CV17: a large stack does not starve small ones."""
    large = add_stack(database, "large", project="busy", shard_count=9, at=NOW - 60)
    small = add_stack(database, "small", project="quiet")
    claim(database, large, 0)
    assert due(database)[0] == (small, 0)


def test_among_equals_the_oldest_wake_up_goes_first(database: Database) -> None:
    for name, age in (("young", 1), ("old", 9), ("middle", 5)):
        wake(database, asleep(database, name), NOW - age)
    assert [stack_id for stack_id, _ in due(database)] == ["p-old", "p-middle", "p-young"]
    assert due(database, limit=1) == [("p-old", 0)]


# -- observation -------------------------------------------------------------------------------------------------------


def test_a_shard_is_taken_for_observation_when_it_is_due_and_held_for_a_while(database: Database) -> None:
    """The worker that took it may die: then another one looks."""
    stack_id = add_stack(database)
    with database.write() as tx:
        schedule_look(tx, stack_id, 0, NOW)
        assert upcoming.next_observation(tx) == NOW
        assert look_schedule.take_for_observation(tx, NOW - 1, 10, 60.0) == {}
        assert look_schedule.take_for_observation(tx, NOW, 10, 60.0) == {(stack_id, 0): 60.0}
        assert look_schedule.take_for_observation(tx, NOW, 10, 60.0) == {}
        assert upcoming.next_observation(tx) == NOW + TAKEN_S


@pytest.mark.parametrize("again_at", [NOW + 60, None])
def test_an_observer_sets_the_time_of_the_next_look(database: Database, again_at: float | None) -> None:
    stack_id = add_stack(database, shard_count=2)
    with database.write() as tx:
        for number in (0, 1):
            schedule_look(tx, stack_id, number, NOW)
        taken = look_schedule.take_for_observation(tx, NOW, 10, 60.0)
        schedule_look(tx, stack_id, 1, NOW + 1)  # asked for meanwhile
        look_schedule.reschedule(tx, taken, NOW, again_at)
    assert [shard_row(database, stack_id, number).observe_at for number in (0, 1)] == [again_at, NOW + 1]


@pytest.mark.parametrize("again_at", [NOW + 60, None])
def test_a_look_that_was_requested_of_a_late_observer_is_made(database: Database, again_at: float | None) -> None:
    stack_id = add_stack(database)
    with database.write() as tx:
        schedule_look(tx, stack_id, 0, NOW)
        taken = look_schedule.take_for_observation(tx, NOW, 10, 60.0)
        later = NOW + TAKEN_S + 1
        look_schedule.request_look(tx, [stack_id], later)
        look_schedule.reschedule(tx, taken, NOW, again_at)
        assert look_schedule.take_for_observation(tx, later, 10, 60.0) == taken


def test_who_comes_back_late_changes_no_look(database: Database) -> None:
    stack_id = add_stack(database)
    with database.write() as tx:
        schedule_look(tx, stack_id, 0, NOW)
        taken = look_schedule.take_for_observation(tx, NOW, 10, 60.0)
        assert look_schedule.take_for_observation(tx, NOW + TAKEN_S, 10, 60.0) == taken
        look_schedule.reschedule(tx, taken, NOW, NOW + 60)
    assert shard_row(database, stack_id).observe_at == NOW + 2 * TAKEN_S


def test_the_longest_due_are_observed_first(database: Database) -> None:
    stack_id = add_stack(database, shard_count=3)
    with database.write() as tx:
        for number, at in enumerate((NOW - 1, NOW - 9, NOW - 5)):
            schedule_look(tx, stack_id, number, at)
        assert sorted(look_schedule.take_for_observation(tx, NOW, 2, 60.0)) == [(stack_id, 1), (stack_id, 2)]


def test_what_has_nothing_to_look_at_is_not_observed(database: Database) -> None:
    stack_id = add_stack(database)
    with database.write() as tx:
        schedule_look(tx, stack_id, 0, NOW)
        schedule_look(tx, stack_id, 0, None)
        assert look_schedule.take_for_observation(tx, NOW, 10, 60.0) == {}


def test_shards_go_with_their_stack(database: Database) -> None:
    stack_id = add_stack(database, shard_count=2)
    with database.write() as tx:
        tx.execute(update(schema.stack).values(deleted_at=NOW - 1.0))
    assert purge.purge(database, Rules(deleted_before=NOW, events_max=1)).shards == 2
    with database.read() as tx:
        assert [shards.get(tx, stack_id, number) for number in range(2)] == [None, None]


@on_a_server
def test_the_database_decides_what_time_it_is(server_database_url: str) -> None:
    """A machine whose clock is an hour ahead knows the right time as soon as it has asked once."""
    with contextlib.closing(Database(server_database_url, lambda: time.time() + 3600.0)) as wrong:
        with wrong.read() as tx:
            agreed = tx.now()
        assert abs(agreed - time.time()) < 60.0
        assert abs(wrong.agreed_now() - time.time()) < 60.0


# -- fair turns within a project -----------------------------------------------------------------------------------


def test_stacks_of_one_project_have_their_turns(database: Database) -> None:
    large = add_stack(database, "large", shard_count=30)
    small = add_stack(database, "small", at=NOW + 1)
    other = add_stack(database, "other", project="q", at=NOW + 2)
    assert {stack for stack, _ in due(database, NOW + 3, 3)} == {large, small, other}
    for number in range(3):
        claim(database, large, number)
    assert set(due(database, NOW + 3, 2)) == {(other, 0), (small, 0)}


def test_nested_stacks_share_the_turn_of_their_root(database: Database) -> None:
    root = add_stack(database, "root")
    for number in range(20):
        add_stack(database, f"nested-{number}", root_id=root, parent_id=root)
    small = add_stack(database, "small", at=NOW + 1)
    assert (small, 0) in due(database, NOW + 3, 2)


def test_what_is_being_deleted_goes_before_the_rest_of_its_tree_and_no_other(database: Database) -> None:
    root = add_stack(database, "root")
    release(database, claim(database, root))
    for number in range(20):
        add_stack(database, f"nested-{number}", root_id=root, parent_id=root)
    other = add_stack(database, "other", at=NOW)
    revise(database, root, EMPTY, Action.DELETE, at=NOW + 1)
    assert set(due(database, NOW + 3, 2)) == {(other, 0), (root, 0)}


def test_shards_of_a_deleted_group_that_have_nothing_are_at_rest(database: Database) -> None:
    stack_id = add_stack(database, "group", shard_count=5)
    owned = claim(database, stack_id, 3)
    with database.write() as tx:
        shard_state.encode_new(database, [Resource("key0", stack_id, 2, "member", "OS::Heat::None")]).store(tx)
    revise(database, stack_id, EMPTY, Action.DELETE, at=NOW + 1)
    assert sorted(due(database, NOW + 2)) == [(stack_id, 0), (stack_id, 2)]
    assert release(database, owned), "who owns one finds that out"
