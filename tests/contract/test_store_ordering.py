"""Shards of several stacks are locked from below, as a pass does that wakes its parent (ADR 0057)."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg.errors
import pymysql
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from tests.contract.store_cases import LEASE_S, NOW, add_stack, claim, locked, resource, shard_row
from tests.databases import is_blocked, on_a_server
from tests.waiting import until

from homeostat.clock import Entropy
from homeostat.model.errors import Transient
from homeostat.model.status import Action
from homeostat.services.pipeline.storing import RevisionStore
from homeostat.store.database import Database, Transaction
from homeostat.store.shards import leases, look_schedule, shard_state, shards
from homeostat.store.shards.shard_state import Writes
from homeostat.store.shards.shards import HEAL
from homeostat.store.sql import lock_order
from homeostat.store.stacks import action_begin, revisions, stacks
from homeostat.store.stacks.contents import Content

ROOT, CHILD = "p-a", "p-b"
"""In the order in which their shards lie in the table."""


def unlocking(tx: Transaction) -> None:
    """The end of a pass over a root stack that is unlocked."""
    locked(tx, ROOT)
    lock_order.take_tree(tx, stacks.tree_of(ROOT))
    tx.execute(text("UPDATE shard SET lease_until = lease_until WHERE stack_id = 'p-a'"))
    shards.wake_all(tx, stacks.tree_of(ROOT), NOW, HEAL)


ACTS: dict[str, Callable[[Transaction], None]] = {
    "waking a tree": lambda tx: shards.wake_all(tx, stacks.tree_of(ROOT), NOW, HEAL),
    "asking to look at a tree": lambda tx: look_schedule.request_look(tx, stacks.tree_of(ROOT), NOW),
    "having looked": lambda tx: look_schedule.record_look(tx, [(ROOT, 0), (CHILD, 0)], NOW),
    "not having seen": lambda tx: look_schedule.record_blind(tx, [(ROOT, 0), (CHILD, 0)], "away"),
    "unlocking a tree": unlocking,
}


@pytest.mark.heavy
@on_a_server
@pytest.mark.parametrize("name", ACTS)
def test_no_one_waits_for_a_pass_that_waits_for_them(server_database_url: str, name: str) -> None:
    db = Database(server_database_url, time.time)
    db.migrate()
    add_stack(db, "a")
    add_stack(db, "b", root_id=ROOT, parent_id=ROOT, parent_shard=0, depth=1)
    lease = claim(db, CHILD)
    troubles: list[str] = []

    def act() -> None:
        try:
            with db.write() as tx:
                ACTS[name](tx)
        except Transient as error:
            troubles.append(str(error))

    other = threading.Thread(target=act)
    with db.write() as tx:
        leases.renew(tx, lease, NOW, LEASE_S)
        other.start()
        until(lambda: is_blocked(db.url), "the other one to wait for the shard of the child")
        shards.wake(tx, ROOT, NOW, HEAL, [0])
    other.join()
    db.close()
    assert troubles == []


def with_a_secret(tx: Transaction) -> None:
    revision = revisions.encode(tx.database, Content("template"), secret=True)
    action_begin.revise(tx, locked(tx, ROOT), Action.UPDATE, revision, NOW, 60.0)


def with_a_secret_inside(_tx: Transaction) -> None:
    """A user updates a nested stack."""
    with _tx.database.read() as tx:
        seen = stacks.get(tx, "p-c")
    assert seen is not None
    new: dict[str, Any] = {"timeout_s": 60.0, "look_first": False, "policies": None}
    trust: Any = contextlib.nullcontext(lambda _tx: None)
    revision = revisions.encode(_tx.database, Content("template"), secret=True)
    RevisionStore(_tx.database, Entropy(os.urandom)).add_revision(seen, revision, {}, trust, **new)


TREE_ACTS: dict[str, Callable[[Transaction], None]] = {
    "an update with the first secret": with_a_secret,
    "an update of a nested stack with the first secret": with_a_secret_inside,
    "abandoning": lambda tx: action_begin.abandon(tx, locked(tx, ROOT), NOW, 60.0),
}


@pytest.mark.heavy
@on_a_server
@pytest.mark.parametrize("name", TREE_ACTS)
def test_rows_of_a_tree_are_locked_in_one_order(server_database_url: str, name: str) -> None:
    db = Database(server_database_url, time.time)
    db.migrate()
    add_stack(db, "a")
    # In the table, the last one in the order of locks comes first.
    writes = Writes()
    for child in ("c", "b"):
        add_stack(db, child, root_id=ROOT, parent_id=ROOT, parent_key=child, parent_shard=0, depth=1)
        writes.insert(resource(child, ROOT, child, type="child.yaml"))
    with db.write() as tx:
        shard_state.record(tx, ROOT, writes, NOW)
        tx.execute(text("UPDATE stack SET secret = false"))
    troubles: list[str] = []

    def act() -> None:
        try:
            with db.write() as tx:
                TREE_ACTS[name](tx)
        except Transient as error:
            troubles.append(str(error))

    other = threading.Thread(target=act)
    with db.write() as tx:
        locked(tx, "p-b")
        other.start()
        until(lambda: is_blocked(db.url), "the other one to wait for the first nested stack")
        locked(tx, "p-c")
    other.join()
    db.close()
    assert troubles == []


@on_a_server
def test_a_heartbeat_does_not_wait_for_a_shard_that_is_written_to(server_database_url: str) -> None:
    db = Database(server_database_url, time.time)
    db.migrate()
    add_stack(db, "a")
    add_stack(db, "b", root_id=ROOT, parent_id=ROOT, parent_shard=0, depth=1)
    held = [claim(db, ROOT), claim(db, CHILD)]
    with db.write() as tx:
        leases.renew(tx, held[1], NOW, LEASE_S)
        with db.write() as beat:
            leases.renew_all(beat, held, NOW + 1, LEASE_S)
    kept = [shard_row(db, stack_id).lease_until for stack_id in (ROOT, CHILD)]
    db.close()
    assert kept == [NOW + 1 + LEASE_S, NOW + LEASE_S]


GIVES_WAY = [
    psycopg.errors.DeadlockDetected("deadlock detected"),
    psycopg.errors.SerializationFailure("could not serialize"),
    pymysql.OperationalError(1213, "Deadlock found when trying to get lock"),  # also what Galera's certification says
    pymysql.OperationalError(1205, "Lock wait timeout exceeded"),
    pymysql.OperationalError(1047, "WSREP has not yet prepared node for application use"),
]


@pytest.mark.parametrize("error", GIVES_WAY, ids=lambda each: type(each).__name__ + str(each.args[0])[:4])
def test_what_gives_way_to_another_transaction_is_tried_again(database: Database, error: Exception) -> None:
    """As everything that time mends."""
    base = psycopg.Error if isinstance(error, psycopg.Error) else pymysql.Error
    with pytest.raises(Transient), database.write():
        raise OperationalError.instance("UPDATE", {}, error, base)
