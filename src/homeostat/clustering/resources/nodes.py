"""Nodes of templates."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlalchemy import Connection, select

from homeostat.clustering.decisions.states import NodeStatus
from homeostat.clustering.resources.context import ResourceContext
from homeostat.clustering.resources.records import Fields, RecordWriter, Requester, ResourceRecord
from homeostat.clustering.resources.specs import unknown
from homeostat.clustering.service import membership
from homeostat.clustering.service.plans import ChangeBuilder, ClusterChange
from homeostat.clustering.service.requester import RequestScope, referring
from homeostat.clustering.store import node_views
from homeostat.clustering.wire import nodes
from homeostat.clustering.wire.bodies import read
from homeostat.model.errors import Transient
from homeostat.store import schema
from homeostat.store.schema.rows import ClusterRow, NodeRow

CHANGED = frozenset({"name", "profile_id", "metadata"})
PLACEHOLDER = "node"
"""Name of a request for a node in a cluster that leaves the name to the cluster."""


class Nodes:
    """Nodes of templates."""

    def __init__(self, context: ResourceContext) -> None:
        self._context = context
        self._all = context.services
        self._service = context.services.nodes

    def look(self, tx: Connection, project: str, rows: Sequence[NodeRow]) -> dict[str, Fields]:
        names = self._all.profile_names(tx, {row.profile_id for row in rows})
        found: dict[str, Fields] = {}
        for each in node_views.nodes(tx, rows, names, tainted=True):
            shown = {name: value for name, value in each.items() if name not in ("dependents", "domain")}
            status = str(each["status"]).lower()
            fault = {"fault": each["status_reason"]} if each["status"] == NodeStatus.ERROR else {}
            found[each["id"]] = {**shown, "status": status, **fault}
        return found

    def make(self, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        body = {"name": PLACEHOLDER, **{name: spec[name] for name in nodes.NEW.keys() & spec.keys()}}
        given = read(body, nodes.NEW)
        profile = self._all.profile(scope, given["profile_id"])
        cluster = self._cluster(scope, given.get("cluster_id") or "")
        if cluster is None:
            self._context.check_depth(by)

        joins = cluster.id if cluster is not None else ""

        def also(tx: Connection, id: str) -> None:
            keep(tx, self._kept(tx, id, joins))

        checked = self._context.check_types(scope)
        named = "name" in spec
        self._service.create(scope, given["name"], profile, cluster, given, checked, also, named=named)

    def _kept(self, tx: Connection, id: str, cluster_id: str) -> ResourceRecord:
        """Return what is kept of a node, of which the template wants that it is in this cluster; "" for none."""
        row = tx.execute(select(schema.node).where(schema.node.c.id == id)).one()
        return ResourceRecord(id, row.stack_id if row.cluster_id is None else "", {"cluster_id": cluster_id})

    def _cluster(self, scope: RequestScope, named: str) -> ClusterRow | None:
        if not named:
            return None
        with self._context.db.read() as tx, referring(f"The specified cluster '{named}'"):
            return self._all.clusters.get(tx, scope, named)

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        """Bring a node to a spec step by step: out of another cluster, to other values, into the one that it names.

        Raises:
            Transient: There is a step more, once this one is done.
        """
        scope = self._context.scope(by)
        given = read({name: spec[name] for name in CHANGED & spec.keys()}, nodes.CHANGED)
        profile = self._all.profile(scope, given.pop("profile_id"))
        cluster = self._cluster(scope, spec.get("cluster_id") or "")
        wanted = cluster.id if cluster is not None else ""
        with self._context.db.read() as tx:
            row = self._service.get(tx, scope, id)
        checked = self._context.check_types(scope)
        left = row.cluster_id
        leaves = left is not None and left != (wanted or self._left_alone(row, before))
        if left is not None and leaves:
            self._step(row)
            self._moved(scope, left, lambda tx, one: self._leaving(tx, one, scope, id))
        elif row.profile_id != profile.id or any(getattr(row, name) != value for name, value in given.items()):
            self._service.update(scope, id, given, profile, checked)
        joins = wanted and row.cluster_id != wanted
        if joins and not leaves:
            self._step(row)
            self._moved(scope, wanted, lambda tx, one: membership.add_nodes(tx, one, scope, [id]))
        with self._context.db.write() as tx:
            keep(tx, self._kept(tx, id, wanted))
        if joins and leaves:
            raise Transient("it has left its cluster, and joins the other one next", retry_after_s=1.0)

    def _left_alone(self, row: NodeRow, before: Fields) -> str:
        """Return the cluster in which a node stays whose template names none: one that the template has not named."""
        return "" if before.get("cluster_id") == row.cluster_id else row.cluster_id or ""

    def _step(self, row: NodeRow) -> None:
        """Check that nothing goes on with a node that is to be moved.

        Raises:
            Transient: Something does.
        """
        with self._context.db.read() as tx:
            (shown,) = node_views.nodes(tx, [row], {}, tainted=False)
        if shown["status"] not in (NodeStatus.ACTIVE, NodeStatus.ERROR, NodeStatus.WARNING):
            raise Transient(f"the node is {shown['status']}: it is moved once that is done")

    def _leaving(self, tx: Connection, cluster: ClusterRow, scope: RequestScope, id: str) -> ClusterChange:
        """Return the plan by which a node leaves its cluster alive, whatever its policies say of nodes that go."""
        given = {"destroy_after_deletion": False}
        plan = self._all.sizing.del_nodes(tx, cluster, scope, [id], given)
        released = membership.members_named(tx, cluster, scope, [id])
        inputs = {**plan.inputs, **given}
        return replace(plan, inputs=inputs, released=released, leaving=(), hook=None, hooked={}, at_once=False)

    def _moved(self, scope: RequestScope, cluster_id: str, planner: ChangeBuilder) -> None:
        self._all.clusters.change(scope, cluster_id, planner, self._context.check_types(scope))

    def take_over(self, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None:
        with self._context.db.write() as tx:
            row = self._service.get(tx, self._context.scope(by), id)
            keep(tx, self._kept(tx, row.id, row.cluster_id or ""))

    def operate(self, by: Requester, id: str, verb: str, before: Fields) -> None:
        raise unknown(verb)

    def remove(self, by: Requester, id: str, before: Fields, forget: Callable[[Connection], None]) -> None:
        scope = self._context.scope(by)
        checked = self._context.check_types(scope)
        self._service.delete(scope, id, force=True, check_types=checked, also=lambda tx, _: forget(tx))
