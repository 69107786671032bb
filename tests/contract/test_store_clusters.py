"""What is stored of clusters, on SQLite and on PostgreSQL: the same requests, lists and ends of actions."""

from typing import Any

import pytest
from sqlalchemy import select, update

from homeostat.clock import Entropy
from homeostat.clustering.decisions.sizes import Direction
from homeostat.clustering.decisions.states import ActionStatus
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.service.services import Clustering
from homeostat.clustering.store import actions, listing, living
from homeostat.clustering.store.events import EventQuery, listed
from homeostat.clustering.store.listing import Order, Page
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected
from homeostat.model.status import Status
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.operation.purge import Rules, purge
from homeostat.store.schema.rows import ActionRow, ClusterRow, NodeRow, ProfileRow
from homeostat.store.stacks import action_end, stacks

SPEC = {"type": "os.nova.server", "version": "1.0", "properties": {"flavor": "f", "image": "i"}}
SCOPE = RequestScope(Caller("ada", "p", "ada"), "p")


class Clusters:
    """The services of one database, without workers."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.services = Clustering(db, StackService(db, Entropy(), Quotas()))
        self.profile = self.services.profiles.create(SCOPE, "web", SPEC, metadata={})

    def made(self, name: str = "c", count: int = 2) -> str:
        sizes = {"min_size": 0, "max_size": -1, "desired_capacity": count}
        return self.services.clusters.create(SCOPE, name, self.profile, sizes, 3600, {}, {}).target

    def end(self, cluster: str, status: Status = Status.COMPLETE) -> None:
        """What the workers do in the end."""
        with self.db.write() as tx:
            row = stacks.for_update(tx, cluster)
            assert row is not None
            if status is Status.COMPLETE:
                action_end.finish(tx, row, tx.now())
            else:
                action_end.fail(tx, cluster, row.revision, "no more room", tx.now())

    def scale(self, cluster: str, count: int, direction: Direction = Direction.OUT) -> str:
        sizing = self.services.sizing
        return self.services.clusters.change(
            SCOPE, cluster, lambda tx, row: sizing.scale(tx, row, direction, count)
        ).action

    def action(self, identity: str) -> tuple[str, str]:
        with self.db.read() as tx:
            row = listing.find(tx, ActionRow, "p", identity)
            assert row is not None
            end = actions.end_of(tx, row) if row.status == ActionStatus.RUNNING else None
        return (end.status, end.reason) if end is not None else (row.status, row.status_reason)

    def nodes(self, cluster: str) -> list[str]:
        with self.db.read() as tx:
            return living.nodes_of(tx, [cluster]).get(cluster, [])


@pytest.fixture
def clusters(database: Database) -> Clusters:
    return Clusters(database)


def test_an_action_ends_as_its_stack_does(clusters: Clusters) -> None:
    cluster = clusters.made()
    with pytest.raises(Rejected, match="it is already locked"):
        clusters.scale(cluster, 1)
    clusters.end(cluster)
    first = clusters.scale(cluster, 1)
    assert clusters.action(first)[0] == ActionStatus.RUNNING
    clusters.end(cluster, Status.FAILED)
    assert clusters.action(first) == (ActionStatus.FAILED, "no more room")
    second = clusters.scale(cluster, 1)
    assert clusters.action(first) == (ActionStatus.FAILED, "no more room"), "as it was stored when the next one began"
    clusters.services.clusters.delete(SCOPE, cluster, force=True)
    assert clusters.action(second)[0] == ActionStatus.CANCELLED


def test_a_request_that_is_refused_leaves_nothing(clusters: Clusters) -> None:
    cluster = clusters.made()
    before = clusters.nodes(cluster)
    with pytest.raises(Rejected):
        clusters.scale(cluster, 5)
    assert clusters.nodes(cluster) == before
    with clusters.db.read() as tx:
        row = stacks.get(tx, cluster)
    assert row is not None
    assert row.revision == 1


def test_nodes_that_leave_are_gone_once_their_resources_are(clusters: Clusters) -> None:
    cluster = clusters.made(count=3)
    clusters.end(cluster)
    clusters.scale(cluster, 2, Direction.IN)
    assert len(clusters.nodes(cluster)) == 1, "no resource of theirs was ever made"
    with clusters.db.write() as tx:
        living.forget_gone(tx, "p")
        assert len(listing.page(tx, NodeRow, Page("p", order=(Order("number"),)))) == 1


def test_a_cluster_is_gone_once_its_stack_is(clusters: Clusters) -> None:
    cluster = clusters.made()
    clusters.end(cluster)
    with pytest.raises(Rejected, match="still referenced"):
        clusters.services.profiles.delete(SCOPE, "web")
    clusters.services.clusters.delete(SCOPE, cluster, force=False)
    with clusters.db.write() as tx:
        tx.execute(update(schema.stack).where(schema.stack.c.id == cluster).values(deleted_at=1.0))
    with clusters.db.read() as tx, pytest.raises(Rejected, match="could not be found"):
        clusters.services.clusters.get(tx, SCOPE, cluster)
    clusters.services.profiles.delete(SCOPE, "web")
    with clusters.db.read() as tx:
        assert listing.page(tx, ClusterRow, Page("p", order=(Order("init_at"),))) == []


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ((Order("name"),), ["a", "b", "c", "d"]),
        ((Order("name", descending=True),), ["d", "c", "b", "a"]),
        ((Order("updated_at"), Order("name")), ["b", "d", "a", "c"]),
        ((Order("updated_at", descending=True), Order("name")), ["c", "a", "b", "d"]),
    ],
    ids=["ascending", "descending", "what is empty comes first", "or last"],
)
def test_lists_are_in_order_and_in_pages(clusters: Clusters, order: Any, wanted: list[str]) -> None:
    table = schema.profile
    with clusters.db.write() as tx:
        tx.execute(table.delete())
        for number, (name, updated) in enumerate({"a": 1.0, "b": None, "c": 2.0, "d": None}.items()):
            values = {"id": f"{number}", "project": "p", "name": name, "type": "t", "spec": {}, "metadata": {}}
            tx.execute(table.insert().values(**values, created_at=0.0, updated_at=updated))
    with clusters.db.read() as tx:
        assert [row.name for row in listing.page(tx, ProfileRow, Page("p", order=order))] == wanted
        seen: list[str] = []
        marker = None
        while found := listing.page(tx, ProfileRow, Page("p", order=order, marker=marker, limit=1)):
            seen.append(found[0].name)
            marker = found[0].id
    assert seen == wanted


def test_events_are_listed_in_the_words_of_clusters(clusters: Clusters) -> None:
    cluster = clusters.made()
    clusters.end(cluster)
    with clusters.db.read() as tx:
        found = listed(tx, EventQuery("p", {"cluster_id": [cluster]}))
        assert [(each["action"], each["status"]) for each in found] == [
            ("CLUSTER_CREATE", "start"),
            ("CLUSTER_CREATE", "end"),
        ]
        assert listed(tx, EventQuery("p", newest_first=True))[0]["status"] == "end"
        assert listed(tx, EventQuery("other")) == []


def test_the_oldest_actions_are_forgotten(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "KEPT_MAX", 3)
    cluster = clusters.made(count=0)
    clusters.end(cluster)
    for number in range(6):
        with clusters.db.write() as tx:
            new = actions.NewAction("CLUSTER_CHECK", f"number {number}", cluster, cluster)
            actions.add(tx, new, SCOPE.owner, tx.now() + number)
    with clusters.db.read() as tx:
        names = [row.name for row in listing.page(tx, ActionRow, Page("p")) if row.name.startswith("number")]
    assert names == ["number 3", "number 4", "number 5"]


def test_actions_are_purged_with_their_stacks(clusters: Clusters) -> None:
    """How they ended is in the events of these."""
    gone, stays = clusters.made("gone", 0), clusters.made("stays", 0)
    alone = clusters.services.nodes.create(SCOPE, "alone", clusters.profile, None, {})
    with clusters.db.write() as tx:
        node = tx.execute(select(schema.node.c.stack_id).where(schema.node.c.id == alone.target)).scalar_one()
        dead = {"deleted_at": 1.0, "action": "DELETE", "status": "COMPLETE"}
        tx.execute(update(schema.stack).where(schema.stack.c.id.in_([gone, node])).values(dead))
    purge(clusters.db, Rules(clusters.db.agreed_now(), 1000))
    with clusters.db.read() as tx:
        assert tx.execute(select(schema.action.c.target)).scalars().all() == [stays]
