"""Stacks, shards and rows for the store's contract suite, and threads that begin together."""

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import update

from homeostat.model.plan import Event
from homeostat.model.status import Action
from homeostat.model.world import Resource
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.shards import leases, look_schedule, shards
from homeostat.store.shards.leases import Lease
from homeostat.store.stacks import action_begin, action_end, revisions, stacks
from homeostat.store.stacks.action_begin import NewStack
from homeostat.store.stacks.contents import Content

NOW = 1_800_000_000.0
TIMEOUT_S = 3600.0
LEASE_S = 5.0
LONG_S = 300.0
"""Longer than a test may take."""
TEMPLATE = Content("template", {"heat_template_version": "2021-04-16"})


def add_stack(
    db: Database, name: str = "web", *, shard_count: int = 1, project: str = "p", at: float = NOW, **more: Any
) -> str:
    """A new stack; its id is `<project>-<name>` unless `id` is given."""
    stack_id: str = more.pop("id", f"{project}-{name}")
    revision = revisions.encode(db, TEMPLATE, shards=shard_count)
    with db.write() as tx:
        action_begin.add(tx, NewStack(stack_id, project, name, **more), revision, at, TIMEOUT_S)
    return stack_id


def revise(
    db: Database,
    stack_id: str,
    content: Content = TEMPLATE,
    action: str = Action.UPDATE,
    at: float = NOW,
    touched: Collection[int] | None = None,
    shard_count: int = 1,
) -> int:
    revision = revisions.encode(db, content, shards=shard_count)
    with db.write() as tx:
        stack = locked(tx, stack_id)
        return action_begin.revise(tx, stack, action, revision, at, TIMEOUT_S, touched=touched)


def locked(tx: Transaction, stack_id: str) -> Any:
    row = stacks.for_update(tx, stack_id)
    assert row is not None
    return row


def stack_row(db: Database, stack_id: str) -> Any:
    with db.read() as tx:
        row = stacks.get(tx, stack_id)
    assert row is not None
    return row


def shard_row(db: Database, stack_id: str, number: int = 0) -> Any:
    with db.read() as tx:
        row = shards.get(tx, stack_id, number)
    assert row is not None
    return row


def claim(
    db: Database, stack_id: str, number: int = 0, owner: str = "w", at: float = NOW, lease_s: float = LEASE_S
) -> Lease:
    with db.write() as tx:
        lease = leases.claim(tx, stack_id, number, owner, at, lease_s)
    assert lease is not None
    return lease


def come_to_rest(tx: Transaction, stack_id: str, number: int, revision: int, at: float = NOW) -> Any:
    """What the end of a pass does when all of the shard is as it should be; gives what `action_end.settle` gives."""
    table = schema.shard
    mine = (table.c.stack_id == stack_id, table.c.number == number)
    tx.execute(update(table).where(*mine).values(settled_revision=revision, failures=0))
    return action_end.settle(tx, stack_id, revision, at)


def schedule_look(tx: Transaction, stack_id: str, number: int, at: float | None) -> None:
    """What the end of a pass does to have its shard looked at."""
    table, observe_at = schema.shard, look_schedule.looked_at_by(at, never=at is None)
    mine = (table.c.stack_id == stack_id, table.c.number == number)
    tx.execute(update(table).where(*mine).values(observe_at=observe_at))


def resource(key: str, stack_id: str, name: str = "a", shard: int = 0, **more: Any) -> Resource:
    values = {"type": "OS::Nova::Server", "created_at": NOW, "updated_at": NOW, **more}
    return Resource(key, stack_id, shard, name, **values)


def event(name: str, status: str = "COMPLETE", action: str = "CREATE") -> Event:
    return Event(name, action, status, "state changed", "OS::Nova::Server", key=f"{name}-key")


def at_once(acts: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run these in threads that begin together; gives their results in order, raises what any of them raised."""
    gate = threading.Barrier(len(acts))

    def begin(act: Callable[[], Any]) -> Any:
        gate.wait(timeout=30)
        return act()

    with ThreadPoolExecutor(len(acts)) as threads:
        return [future.result() for future in [threads.submit(begin, act) for act in acts]]
