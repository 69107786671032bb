"""Nodes that change owner, on SQLite and on PostgreSQL: at once, under the nose of workers, and never twice."""

import threading
import time
from typing import Any

import pytest
from sqlalchemy import func, select
from tests.contract.test_store_clusters import SCOPE, Clusters
from tests.waiting import until
from tests.wire.running import working

from homeostat.clouds.simulated import SimulatedCloud
from homeostat.clustering.service import membership
from homeostat.clustering.store import living
from homeostat.model.errors import Rejected, Superseded
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import leases, shards
from homeostat.store.stacks import revisions, stacks


class Moved(Clusters):
    """The same, with a cloud, and workers for as long as they are wanted."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.cloud = SimulatedCloud(time.time)

    def work(self) -> None:
        """Work until everything is at rest."""
        busy = select(func.count()).where(schema.stack.c.status == "IN_PROGRESS", schema.stack.c.deleted_at.is_(None))

        def at_rest() -> bool:
            with self.db.read() as tx:
                return not tx.execute(busy).scalar_one()

        with working(self.db, self.cloud):
            until(at_rest, "all stacks to come to rest")

    def alone(self) -> str:
        return self.services.nodes.create(SCOPE, "alone", self.profile, None, {}).target

    def join(self, cluster: str, node: str) -> str:
        planner = lambda tx, row: membership.add_nodes(tx, row, SCOPE, [node])  # noqa: E731
        return self.services.clusters.change(SCOPE, cluster, planner).action

    def leave(self, cluster: str, node: str) -> str:
        sizing = self.services.sizing
        planner = lambda tx, row: sizing.del_nodes(tx, row, SCOPE, [node], {})  # noqa: E731
        return self.services.clusters.change(SCOPE, cluster, planner).action

    def row(self, node: str) -> Any:
        """The row of the resource of a node; there is one."""
        with self.db.read() as tx:
            found = tx.execute(select(schema.node).where(schema.node.c.id == node)).one()
            group = living.stacks_of(tx, [found.stack_id])[found.stack_id].group_id
            mine = (schema.resource.c.stack_id == group, schema.resource.c.name == str(found.number))
            return tx.execute(select(schema.resource).where(*mine)).one()

    def group(self, stack: str) -> str:
        with self.db.read() as tx:
            return str(living.stacks_of(tx, [stack])[stack].group_id)

    def template(self, stack: str) -> Any:
        with self.db.read() as tx:
            row = stacks.get(tx, stack)
            assert row is not None
            return revisions.content_of(tx, stack, row.revision).template


@pytest.fixture
def moved(database: Database) -> Moved:
    return Moved(database)


@pytest.mark.heavy
def test_a_node_joins_and_leaves_with_its_row(moved: Moved) -> None:
    cluster, node = moved.made(count=1), moved.alone()
    moved.work()
    before, things = moved.row(node), set(moved.cloud.things())
    moved.join(cluster, node)
    after, group = moved.row(node), moved.group(cluster)
    assert (after.key, after.handle, after.stack_id, after.name) == (before.key, before.handle, group, "1")
    assert after.version > before.version
    assert moved.template(group)["count"] == 2
    assert moved.template(before.stack_id) == {}, "no worker makes another one in the place of what has left"
    moved.work()
    moved.leave(cluster, node)
    assert moved.row(node).key == before.key
    assert (moved.template(group)["count"], moved.template(group)["skip"]) == (1, ["1"])
    moved.work()
    assert moved.row(node).key == before.key
    assert set(moved.cloud.things()) == things


def test_a_pass_that_has_loaded_the_rows_stores_nothing_any_more(moved: Moved) -> None:
    """It froze before the node left: what it would write of it is dropped."""
    cluster = moved.made(count=2)
    moved.work()
    group, node = moved.group(cluster), moved.nodes(cluster)[0]
    with moved.db.write() as tx:
        now = tx.now()
        shards.wake(tx, group, now, shards.USER)
        lease = leases.claim(tx, group, 0, "frozen", now, 600.0)
    assert lease is not None
    moved.leave(cluster, node)
    with pytest.raises(Superseded), moved.db.write() as tx:
        leases.renew(tx, lease, tx.now(), 600.0)
    things = set(moved.cloud.things())
    moved.work()
    assert set(moved.cloud.things()) == things


def test_what_fails_half_way_leaves_all_as_it_was(moved: Moved, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, node = moved.made(count=1), moved.alone()
    moved.work()
    before, group = moved.row(node), moved.template(moved.group(cluster))

    def fails(*_: Any) -> None:
        raise RuntimeError("the database is gone")

    monkeypatch.setattr(leases, "supersede", fails)
    with pytest.raises(RuntimeError):
        moved.join(cluster, node)
    assert moved.row(node) == before
    assert moved.template(moved.group(cluster)) == group
    assert moved.nodes(cluster) != [node]


@pytest.mark.heavy
def test_of_two_clusters_one_gets_the_node(moved: Moved) -> None:
    """Both ask at the same time."""
    clusters, node = [moved.made(name, 1) for name in ("a", "b")], moved.alone()
    moved.work()
    together, refused = threading.Barrier(2), []

    def ask(cluster: str) -> None:
        together.wait()
        try:
            moved.join(cluster, node)
        except Rejected as error:
            refused.append(error.fault)

    threads = [threading.Thread(target=ask, args=(each,)) for each in clusters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == ["BadRequest"], "it is in a cluster already"
    moved.work()
    assert sorted(len(moved.nodes(each)) for each in clusters) == [1, 2]
    assert len(moved.cloud.things("server")) == 3
