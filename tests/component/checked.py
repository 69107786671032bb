"""A group of nodes with a health policy, on virtual time; and what its tests share."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import select

from homeostat.convergence.engine import Urls
from homeostat.convergence.execution.recovery_calls import Request
from homeostat.convergence.health_checks.probes import Answer
from homeostat.model.node_health import NodeHealth
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.services.actions import ConvergenceSettings
from homeostat.store import schema
from homeostat.store.shards import health
from tests.component.running import Service, server

SEED = "4d5a4b2e-0000-4000-8000-000000000001"
SOURCE = "policy"
STATUS = {"type": "NODE_STATUS_POLLING"}
EVENTS = {"type": "LIFECYCLE_EVENTS"}
HOST = {"type": "HYPERVISOR_STATUS_POLLING"}


def url(response: str = "ok", **options: Any) -> dict[str, Any]:
    wanted = {"poll_url": "http://{nodename}/health", "poll_url_healthy_response": response, **options}
    return {"type": "NODE_STATUS_POLL_URL", "options": wanted}


def policy(*modes: dict[str, Any], detection: Any = None, **recovery: Any) -> dict[str, Any]:
    found = {"interval": 10, "node_update_timeout": 0, "detection_modes": list(modes), **(detection or {})}
    return {
        "type": "senlin.policy.health",
        "version": "1.2",
        "properties": {"detection": found, "recovery": {"actions": [{"name": "RECREATE"}], **recovery}},
    }


def actions(*names: Any) -> list[dict[str, Any]]:
    return [{"name": name} if isinstance(name, str) else name for name in names]


def recoveries(service: Service) -> list[str]:
    """What was done to recover members, in order."""
    table = schema.recovery
    with service.db.read() as tx:
        return list(tx.execute(select(table.c.what).order_by(table.c.id)).scalars())


class Checked(Service):
    """Nodes for which a health policy holds; convergence leaves them alone, as it does in a cluster.

    Takes: count — of the nodes; spec — of the policy; networks — of each node; more — of the service.

    Attributes: answers — name of a node -> the answer to its URL, others are well; asked — all URLs that were asked;
    called — all requests to webhooks; hook — answers them.
    """

    def __init__(self, count: int, spec: dict[str, Any], networks: Any = None, **more: Any) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.called: list[Request] = []
        self.hook: Callable[[Request], tuple[int, str]] = lambda _: (200, "")
        super().__init__(**{"urls": Urls(get=self._get, call=self._call), **more})
        self.count = count
        properties = {} if networks is None else {"networks": networks}
        self.id = self.begin(self._wanted(count, **properties), internal_types={NodeGroup.name})
        self.rest()
        self.group = self.child().id
        self.actions.switch(self.id, ConvergenceSettings(exceptions={"nodes": {"converge": False}}))
        self.attach(spec)

    def _wanted(self, count: int, **more: Any) -> dict[str, Any]:
        one = server(name="%node_name%", metadata={"id": "%node_id%"}, **more)
        wanted = {"count": count, "resource_def": one, "nodes": {"seed": SEED, "format": "n-$3I"}}
        return {"nodes": {"type": NodeGroup.name, "properties": wanted}}

    def change(self, count: int | None = None, **properties: Any) -> None:
        """Nodes with these properties, until that is done."""
        wanted = self._wanted(count or self.count, **properties)
        self.update(self.id, wanted, internal_types={NodeGroup.name})
        self.rest()

    def _get(self, address: str, _verify: bool, _patience_s: float) -> Answer:
        self.asked.append(address)
        return self.answers.get(address.split("/")[2], Answer(200, "ok"))

    def _call(self, request: Request) -> tuple[int, str]:
        self.called.append(request)
        return self.hook(request)

    def resize(self, count: int) -> None:
        self.update(self.id, self._wanted(count), internal_types={NodeGroup.name})
        self.rest()

    def attach(self, spec: dict[str, Any]) -> None:
        with self.db.write() as tx:
            now = tx.now()
            values = {
                "id": SOURCE,
                "stack_id": self.id,
                "name": "nodes",
                "members": True,
                "source": SOURCE,
                "spec": spec,
            }
            health.attach(tx, {**values, "enabled": True}, now)
        self.live(1.0)

    def handle(self, number: int) -> str:
        """Of the server that stands for a node."""
        (found,) = [row for row in self.rows(self.group) if row.name == str(number) and row.replaced_by is None]
        return str(found.handle)

    def servers_of(self, number: int) -> list[str]:
        """Of all rows of a node, the one that stands for it last; "" for one that is not made yet."""
        rows = [row for row in self.rows(self.group) if row.name == str(number)]
        return [str(row.handle) for row in sorted(rows, key=lambda each: each.replaced_by is None)]

    def health_of(self, number: int) -> NodeHealth:
        (row,) = [row for row in self.rows(self.group) if row.name == str(number) and row.replaced_by is None]
        with self.db.read() as tx:
            return health.of_shard(tx, self.group, row.shard)[row.key]

    def recoveries(self) -> list[str]:
        """What was done to recover nodes, in order."""
        return recoveries(self)

    def stop_server(self, number: int) -> None:
        self.cloud.change(self.handle(number), status="stopped")

    def detach(self) -> None:
        with self.db.write() as tx:
            health.detach(tx, SOURCE, tx.now())
