"""Templates with clusters, and a service whose users also use the Clustering API."""

from typing import Any

from sqlalchemy import func, select

from homeostat.clustering.decisions.sizes import Direction
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.service.services import Clustering
from homeostat.clustering.store import bindings
from homeostat.clustering.wire.bodies import read
from homeostat.clustering.wire.clusters import CHANGED
from homeostat.model.caller import Caller
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from tests.component.running import PROJECT, Service, template

SPEC: dict[str, Any] = {"flavor": "small", "image": "i"}
SCALING = ("senlin.policy.scaling-1.0", {"event": "CLUSTER_SCALE_OUT", "adjustment": {"number": 2}})
DELETION = ("senlin.policy.deletion-1.1", {"criteria": "YOUNGEST_FIRST"})
BATCH = ("senlin.policy.batch-1.0", {"min_in_service": 1, "max_batch_size": 1, "pause_time": 0})


HEALTH = (
    "senlin.policy.health-1.2",
    {
        "detection": {"interval": 60, "node_update_timeout": 0, "detection_modes": [{"type": "NODE_STATUS_POLLING"}]},
        "recovery": {"actions": [{"name": "RECREATE"}], "fencing": []},
    },
)


def profile(**properties: Any) -> dict[str, Any]:
    return {
        "type": "OS::Senlin::Profile",
        "properties": {"type": "os.nova.server-1.0", "properties": {**SPEC, **properties}},
    }


def policy(of: tuple[str, dict[str, Any]] = SCALING, **more: Any) -> dict[str, Any]:
    return {"type": "OS::Senlin::Policy", "properties": {"type": of[0], "properties": of[1], **more}}


def cluster(count: int = 2, **properties: Any) -> dict[str, Any]:
    given = {"profile": {"get_resource": "profile"}, "desired_capacity": count, **properties}
    return {"type": "OS::Senlin::Cluster", "properties": given}


def receiver(**properties: Any) -> dict[str, Any]:
    given = {"cluster": {"get_resource": "cluster"}, "action": "CLUSTER_SCALE_OUT", **properties}
    return {"type": "OS::Senlin::Receiver", "properties": given}


def node(**properties: Any) -> dict[str, Any]:
    return {"type": "OS::Senlin::Node", "properties": {"profile": {"get_resource": "profile"}, **properties}}


def bound(*names: str, enabled: bool = True) -> list[dict[str, Any]]:
    return [{"policy": {"get_resource": name}, "enabled": enabled} for name in names]


TABLES = {
    "profile": schema.profile,
    "policy": schema.policy,
    "cluster": schema.cluster,
    "node": schema.node,
    "receiver": schema.receiver,
    "action": schema.action,
    "record": schema.record,
}


class Clusters(Service):
    """Also a user of the Clustering API, in the same project."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.clustering = Clustering(self.db, self.stack_service)
        self.scope = RequestScope(Caller(), PROJECT)

    def request(self, resources: dict[str, Any]) -> StackRequest:
        return StackRequest(template(resources), disable_rollback=True)

    def rows_in(self, table: str) -> list[Any]:
        with self.db.read() as tx:
            return list(tx.execute(select(TABLES[table])))

    def count(self, table: str) -> int:
        with self.db.read() as tx:
            return int(tx.execute(select(func.count()).select_from(TABLES[table])).scalar_one())

    def the(self, table: str) -> Any:
        (row,) = self.rows_in(table)
        return row

    def bound(self, cluster_id: str) -> dict[str, bool]:
        """Name of a policy -> whether it acts."""
        with self.db.read() as tx:
            return {row.policy_name: row.enabled for row in bindings.of_cluster(tx, cluster_id)}

    def handle(self, stack_id: str, name: str = "cluster") -> str:
        return str(self.row(stack_id, name).handle)

    def scale_out(self, cluster_id: str, count: int) -> None:
        """As a user does it, or an alarm."""
        sizing = self.clustering.sizing
        self.clustering.clusters.change(
            self.scope, cluster_id, lambda tx, row: sizing.scale(tx, row, Direction.OUT, count)
        )

    def change(self, cluster_id: str, **given: Any) -> None:
        """Of a cluster, as a user does it."""
        service = self.clustering.clusters
        given = read(given, CHANGED)
        service.change(self.scope, cluster_id, lambda tx, row: service.update(tx, row, given, None))

    def alive(self) -> list[str]:
        """Names of the root stacks that are there, without the ids in them."""
        found = [each for each in self.stacks() if each.parent_id is None and each.deleted_at is None]
        return sorted(each.name.partition("-")[0] for each in found)

    def check_nothing_left(self) -> None:
        """Nothing is there, neither of clusters nor of what they were made of."""
        assert self.cloud.things() == {}
        assert self.alive() == []
        left = {name: self.count(name) for name in ("profile", "policy", "receiver", "record")}
        assert left == dict.fromkeys(left, 0)


def whole(count: int = 2, **more: Any) -> dict[str, Any]:
    """A cluster with a policy and a receiver."""
    one = cluster(count, **{"max_size": 6, "policies": bound("policy"), **more})
    return {"profile": profile(), "policy": policy(), "cluster": one, "out": receiver()}


def made(resources: dict[str, Any], **options: Any) -> tuple[Clusters, str]:
    service = Clusters(**options)
    stack_id = service.create(resources)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.stack(stack_id).reason
    return service, stack_id


def changed(service: Clusters, stack_id: str, resources: dict[str, Any]) -> None:
    service.update(stack_id, resources)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE", service.stack(stack_id).reason
