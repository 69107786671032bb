"""Stacks with one group each, for whose members a health policy may hold."""

import json
from dataclasses import dataclass
from typing import Any

from homeostat.resources.families.node_groups import NodeGroup
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.database import Transaction
from homeostat.store.shards import health
from tests.simulation.health_policies import Spec

NODES = "nodes"
"""Name of the group in each stack."""
SEED = "4d5a4b2e-0000-4000-8000-00000000000"


@dataclass
class WatchedGroup:
    """A stack with one group.

    network — of its members, "" for the one that their cloud chooses; spec, source — the policy that holds for it and
    the name of what attached it, None where none does; flavor, key — numbers of the definition of its members: another
    flavor changes them, another key replaces them.
    """

    number: int
    kind: str
    count: int
    converges: bool
    flavor: int = 0
    key: int = 0
    network: str = ""
    stack_id: str = ""
    spec: Spec | None = None
    source: str = ""
    enabled: bool = True

    @property
    def unwatched(self) -> bool:
        """Whether no policy holds for it."""
        return self.spec is None or not self.enabled

    @property
    def properties(self) -> dict[str, Any]:
        """Of its members, as far as they change."""
        return {"flavor": f"f{self.flavor}", **({"key_name": f"k{self.key}"} if self.key else {})}

    def request(self) -> StackRequest:
        name = "%node_name%" if self.kind == NodeGroup.name else "m%index%"
        networks = {"networks": [{"network": self.network}]} if self.network else {}
        properties = {"image": "i", "name": name, **self.properties, **networks}
        member = {"type": "OS::Nova::Server", "properties": properties}
        wanted: dict[str, Any] = {"count": self.count, "resource_def": member}
        if self.kind == NodeGroup.name:
            wanted["nodes"] = {"seed": f"{SEED}{self.number}", "format": "n-$3I"}
        template = {
            "heat_template_version": "2018-08-31",
            "resources": {NODES: {"type": self.kind, "properties": wanted}},
        }
        return StackRequest(template, disable_rollback=True, internal_types={NodeGroup.name})

    def bind(self, tx: Transaction, source: str, spec: Spec, now: float, *, enabled: bool) -> None:
        """Have a policy hold for the members, unless the stack is gone or has one."""
        gone = tx.exec_driver_sql("SELECT 1 FROM stack WHERE id = ? AND deleted_at IS NULL", (self.stack_id,))
        bound = tx.exec_driver_sql("SELECT 1 FROM health_check WHERE stack_id = ?", (self.stack_id,))
        if gone.first() is None or bound.first() is not None:
            return
        values = {"id": source, "source": source, "stack_id": self.stack_id, "name": NODES, "members": True}
        health.attach(tx, {**values, "spec": spec, "enabled": enabled}, now)
        self.spec, self.source, self.enabled = spec, source, enabled

    def read(self, raw: Any) -> None:
        """Take what is stored for what holds: of a request that has failed, the commit may have succeeded, or not."""
        chosen = "SELECT spec, source, enabled FROM health_check WHERE stack_id = ?"
        found = raw.execute(chosen, (self.stack_id,)).fetchone()
        spec, self.source, enabled = found or ("null", "", True)
        self.spec, self.enabled = json.loads(spec), bool(enabled)
