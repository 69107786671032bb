"""Nodes of templates."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlalchemy import select

from homeostat.clustering.decisions.states import NodeStatus
from homeostat.clustering.resources.context import ResourceContext
from homeostat.clustering.resources.records import Fields, RecordWriter, Requester, ResourceRecord
from homeostat.clustering.resources.specs import unknown
from homeostat.clustering.service import membership
from homeostat.clustering.service.changes import ChangeBuilder, ClusterChange
from homeostat.clustering.service.requester import RequestScope, referring
from homeostat.clustering.store import node_views
from homeostat.clustering.wire import nodes
from homeostat.clustering.wire.bodies import read
from homeostat.model.errors import Transient
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ClusterRow, NodeRow

CHANGED = frozenset({"name", "profile_id", "metadata"})
PLACEHOLDER = "node"
"""Name in the request if the cluster names the node."""


class Nodes:
    """Nodes of templates."""

    def __init__(self, context: ResourceContext) -> None:
        self._context = context
        self._all = context.services
        self._service = context.services.nodes

    def look(self, tx: Transaction, project: str, rows: Sequence[NodeRow]) -> dict[str, Fields]:
        names = self._all.profile_names(tx, {row.profile_id for row in rows})
        objects: dict[str, Fields] = {}
        for node in node_views.nodes(tx, rows, names, tainted=True):
            fields = {name: value for name, value in node.items() if name not in ("dependents", "domain")}
            status = str(node["status"]).lower()
            fault = {"fault": node["status_reason"]} if node["status"] == NodeStatus.ERROR else {}
            objects[node["id"]] = {**fields, "status": status, **fault}
        return objects

    def make(self, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        body = {"name": PLACEHOLDER, **{name: spec[name] for name in nodes.NEW.keys() & spec.keys()}}
        fields = read(body, nodes.NEW)
        profile = self._all.profile(scope, fields["profile_id"])
        cluster = self._cluster(scope, fields.get("cluster_id") or "")
        if cluster is None:
            self._context.check_depth(by)

        joins = cluster.id if cluster is not None else ""

        def also(tx: Transaction, id: str) -> None:
            keep(tx, self._kept(tx, id, joins))

        checked = self._context.check_types(scope)
        named = "name" in spec
        self._service.create(scope, fields["name"], profile, cluster, fields, checked, also, named=named)

    def _kept(self, tx: Transaction, id: str, cluster_id: str) -> ResourceRecord:
        """Return the record of a node; `cluster_id` is its cluster in the template, or ""."""
        row = tx.execute(select(schema.node).where(schema.node.c.id == id)).one()
        return ResourceRecord(id, row.stack_id if row.cluster_id is None else "", {"cluster_id": cluster_id})

    def _cluster(self, scope: RequestScope, identity: str) -> ClusterRow | None:
        if not identity:
            return None
        with self._context.db.read() as tx, referring(f"The specified cluster '{identity}'"):
            return self._all.clusters.get(tx, scope, identity)

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        """Change a node to match a spec in steps: leave the former cluster, change values, join the new cluster.

        Raises:
            Transient: Another step follows once this step is done.
        """
        scope = self._context.scope(by)
        fields = read({name: spec[name] for name in CHANGED & spec.keys()}, nodes.CHANGED)
        profile = self._all.profile(scope, fields.pop("profile_id"))
        cluster = self._cluster(scope, spec.get("cluster_id") or "")
        target = cluster.id if cluster is not None else ""
        with self._context.db.read() as tx:
            row = self._service.get(tx, scope, id)
        checked = self._context.check_types(scope)
        left = row.cluster_id
        leaves = left is not None and left != (target or self._left_alone(row, before))
        if left is not None and leaves:
            self._step(row)
            self._moved(scope, left, lambda tx, cluster_row: self._leaving(tx, cluster_row, scope, id))
        elif row.profile_id != profile.id or any(getattr(row, name) != value for name, value in fields.items()):
            self._service.update(scope, id, fields, profile, checked)
        joins = target and row.cluster_id != target
        if joins and not leaves:
            self._step(row)
            self._moved(scope, target, lambda tx, cluster_row: membership.add_nodes(tx, cluster_row, scope, [id]))
        with self._context.db.write() as tx:
            keep(tx, self._kept(tx, id, target))
        if joins and leaves:
            raise Transient("it has left its cluster, and joins the other one next", retry_after_s=1.0)

    def _left_alone(self, row: NodeRow, before: Fields) -> str:
        """Return the cluster of a node whose template names none, if the node has joined it outside of the template."""
        return "" if before.get("cluster_id") == row.cluster_id else row.cluster_id or ""

    def _step(self, row: NodeRow) -> None:
        """Check that a node to move has no action in progress.

        Raises:
            Transient: The node has an action in progress.
        """
        with self._context.db.read() as tx:
            (node,) = node_views.nodes(tx, [row], {}, tainted=False)
        if node["status"] not in (NodeStatus.ACTIVE, NodeStatus.ERROR, NodeStatus.WARNING):
            raise Transient(f"the node is {node['status']}: it is moved once that is done")

    def _leaving(self, tx: Transaction, cluster: ClusterRow, scope: RequestScope, id: str) -> ClusterChange:
        """Return the change by which a node leaves its cluster without being deleted, despite deletion policies."""
        destroy = {"destroy_after_deletion": False}
        change = self._all.sizing.del_nodes(tx, cluster, scope, [id], destroy)
        released = membership.members_named(tx, cluster, scope, [id])
        inputs = {**change.inputs, **destroy}
        return replace(change, inputs=inputs, released=released, leaving=(), hook=None, hooked={}, at_once=False)

    def _moved(self, scope: RequestScope, cluster_id: str, build: ChangeBuilder) -> None:
        self._all.clusters.change(scope, cluster_id, build, self._context.check_types(scope))

    def take_over(self, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None:
        with self._context.db.write() as tx:
            row = self._service.get(tx, self._context.scope(by), id)
            keep(tx, self._kept(tx, row.id, row.cluster_id or ""))

    def operate(self, by: Requester, id: str, verb: str, before: Fields) -> None:
        raise unknown(verb)

    def remove(self, by: Requester, id: str, before: Fields, forget: Callable[[Transaction], None]) -> None:
        scope = self._context.scope(by)
        checked = self._context.check_types(scope)
        self._service.delete(scope, id, force=True, check_types=checked, also=lambda tx, _: forget(tx))
