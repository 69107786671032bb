"""A service with one cluster, whose user speaks to what the routes of the Clustering API call."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select, update

from homeostat.clustering.decisions.sizes import Adjustment, Direction, Resize
from homeostat.clustering.service import membership
from homeostat.clustering.service.changes import StartedAction
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.service.services import Clustering
from homeostat.clustering.store import bindings, node_views, parts
from homeostat.clustering.wire import views
from homeostat.model.caller import Caller
from homeostat.store import schema
from homeostat.store.schema.rows import ActionRow, NodeRow
from homeostat.store.sql import typed
from tests.component.running import PROJECT, Service

SERVER: dict[str, Any] = {"flavor": "small", "image": "i"}


def server_spec(**properties: Any) -> dict[str, Any]:
    return {"type": "os.nova.server", "version": "1.0", "properties": {**SERVER, **properties}}


class Cluster(Service):
    """A cluster of so many nodes, at rest; `spec` is that of its profile."""

    def __init__(self, count: int = 0, spec: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.clustering = Clustering(self.db, self.stack_service)
        self.scope = RequestScope(Caller(), PROJECT)
        sizes = {"min_size": 0, "max_size": -1, "desired_capacity": count}
        profile = self.profile(spec or server_spec())
        self.id = self.clustering.clusters.create(self.scope, "web", profile, sizes, 3600, {}, {}).target
        self.settle()

    # -- requests ----------------------------------------------------------------------------------------------------

    def profile(self, spec: Mapping[str, Any]) -> Any:
        return self.clustering.profiles.create(self.scope, "p", spec, metadata={})

    def policy(self, kind: str, version: str = "1.0", **properties: Any) -> str:
        spec = {"type": f"senlin.policy.{kind}", "version": version, "properties": properties}
        return str(self.clustering.policies.create(self.scope, kind, spec).id)

    def attach(self, kind: str, version: str = "1.0", *, enabled: bool = True, **properties: Any) -> str:
        """Make and attach a policy, and let the cluster come to rest; gives the id of the policy."""
        policy = self.policy(kind, version, **properties)
        self.begun(self.clustering.bindings.attach(self.scope, self.id, policy, enabled=enabled))
        return policy

    def detach(self, policy: str) -> None:
        self.begun(self.clustering.bindings.detach(self.scope, self.id, policy))

    def switch(self, policy: str, *, enabled: bool) -> None:
        self.begun(self.clustering.bindings.switch(self.scope, self.id, policy, enabled=enabled))

    def scale(self, direction: Direction, count: int | None = None) -> None:
        sizing = self.clustering.sizing
        self._change(lambda tx, row: sizing.scale(tx, row, direction, count))

    def resize(self, count: int) -> None:
        sizing, wanted = self.clustering.sizing, Resize(Adjustment.EXACT, count)
        self._change(lambda tx, row: sizing.resize(tx, row, wanted))

    def remove(self, *names: str, **given: Any) -> None:
        sizing = self.clustering.sizing
        self._change(lambda tx, row: sizing.del_nodes(tx, row, self.scope, names, given))

    def join(self, *names: str) -> None:
        self._change(lambda tx, row: membership.add_nodes(tx, row, self.scope, names))

    def take(self, spec: Mapping[str, Any], **given: Any) -> None:
        """Give all nodes another profile."""
        profile, clusters, sizing = self.profile(spec), self.clustering.clusters, self.clustering.sizing

        def plan(tx: Any, row: Any) -> Any:
            return sizing.batches(tx, row, clusters.update(tx, row, given, profile))

        self._change(plan)

    def add_node(self, spec: Mapping[str, Any] | None = None) -> str:
        with self.db.read() as tx:
            cluster = self.clustering.clusters.get(tx, self.scope, self.id)
        profile = self.profile(spec or server_spec())
        begun = self.clustering.nodes.create(self.scope, "n", profile, cluster, {})
        self.begun(begun)
        return begun.target

    def delete_node(self, identity: str) -> None:
        self.begun(self.clustering.nodes.delete(self.scope, identity, force=False))

    def _change(self, planner: Any) -> None:
        self.begun(self.clustering.clusters.change(self.scope, self.id, planner))

    def begun(self, begun: StartedAction) -> None:
        self.action = begun.action
        self.settle()

    def settle(self) -> None:
        self.work()
        self.rest(7200)

    # -- what users see ----------------------------------------------------------------------------------------------

    def ended(self) -> tuple[str, str]:
        """Status of the last action, and its reason."""
        with self.db.read() as tx:
            found = tx.execute(select(schema.action).where(schema.action.c.id == self.action))
            shown = views.action(tx, typed.rows(ActionRow, found).one(), cluster=True)
        return shown["status"], shown["status_reason"]

    def shown(self) -> dict[str, Any]:
        with self.db.read() as tx:
            row = self.clustering.clusters.get(tx, self.scope, self.id)
            (found,) = views.clusters(tx, [row], {}, {})
        return found

    def nodes(self) -> dict[int, dict[str, Any]]:
        """Index -> node."""
        with self.db.read() as tx:
            chosen = select(schema.node).where(schema.node.c.cluster_id == self.id)
            rows = typed.rows(NodeRow, tx.execute(chosen)).all()
            found = node_views.nodes(tx, [row for row in rows if not row.leaving], {}, tainted=True)
        return {each["index"]: each for each in found}

    def binding(self, policy: str) -> dict[str, Any]:
        with self.db.read() as tx:
            (row,) = [each for each in bindings.of_cluster(tx, self.id) if each.policy_id == policy]
            made = parts.of_clusters(tx, [self.id]).get(self.id, parts.NONE)
            return views.binding(row, "web", made)

    def bound(self) -> list[str]:
        """Types of the policies that are attached."""
        with self.db.read() as tx:
            return [row.policy_type for row in bindings.of_cluster(tx, self.id)]

    def servers_of(self, indexes: Sequence[int]) -> list[str]:
        nodes = self.nodes()
        return sorted(nodes[index]["physical_id"] for index in indexes)

    def balanced(self) -> list[int]:
        """Indexes of the nodes whose servers are in a pool."""
        by_server = {each["physical_id"]: index for index, each in self.nodes().items()}
        members = self.cloud.things("pool_member").values()
        return sorted(by_server.get(each["server"], 0) for each in members)

    def taint(self, index: int) -> None:
        with self.db.write() as tx:
            node = schema.node.c
            tx.execute(update(schema.node).where(node.number == index - 1).values(tainted=True))
