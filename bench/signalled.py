"""One stack with a handle that takes signals, and all that works on it, in one process."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from bench.engine import PROJECT, Engine
from bench.shapes import Template
from homeostat.builtin.cloud import Records
from homeostat.builtin.inbox import SignalOutcome
from homeostat.builtin.signals import Signals
from homeostat.clouds.combined import JoinedCloud
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.store import schema


def no_scaling(policy: str, body: object) -> SignalOutcome:
    raise RuntimeError(f"{policy} is no policy of this stack")


class Signalled(Engine):
    """A stack that has come to rest but for what waits for signals. `handle` of its template takes them."""

    def __init__(self, url: str, template: Template, resources_max: int = 100) -> None:
        super().__init__(url, Quotas(resources_max=resources_max))
        self.id = self.stack_service.create(PROJECT, None, "web", StackRequest(template))
        self.signals = Signals(self.db, no_scaling, self.engine.rollouts.advance)
        self.rest()
        self.handle = self._handle_of("handle")

    def clouds(self, project: str) -> JoinedCloud:
        return JoinedCloud(self.cloud, Records(self.db, self.entropy, "http://127.0.0.1").of(project))

    def signal(self, body: Mapping[str, Any] | None) -> None:
        self.signals.native(PROJECT, "signal_handle", self.handle, body)

    def _handle_of(self, name: str) -> str:
        table = schema.resource
        with self.db.read() as tx:
            mine = (table.c.stack_id == self.id, table.c.name == name)
            return str(tx.execute(select(table.c.handle).where(*mine)).scalar_one())
