"""A worker in this process that builds in the OpenStack of the tests: its requests can be counted and cut short."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homeostat.clock import AgreedClock, Entropy
from homeostat.convergence.limits import Limits
from homeostat.convergence.worker import Worker
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.database import Database, sqlite_url
from homeostat.store.stacks import stacks
from tests.openstack.adapter import adapter, rest
from tests.openstack.projects import Project
from tests.waiting import until

PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class OneWorker:
    """db — its database."""

    db: Database

    @property
    def _service(self) -> StackService:
        return StackService(self.db, Entropy(), Quotas())

    def create(self, name: str, resources: dict[str, Any]) -> str:
        """Begin a stack, and return its id."""
        request = StackRequest({"heat_template_version": "wallaby", "resources": resources})
        return self._service.create(name, None, name, request)

    def delete(self, stack_id: str) -> None:
        self._service.delete(stack_id)

    def status(self, stack_id: str) -> str:
        with self.db.read() as tx:
            row = stacks.get(tx, stack_id)
        assert row is not None
        return str(row.status)

    def at_rest(self, stack_id: str) -> str:
        """The status of a stack, once nothing is in progress."""
        until(lambda: self.status(stack_id) != "IN_PROGRESS", "the stack", rest, PATIENCE_S)
        return self.status(stack_id)


@contextlib.contextmanager
def one_worker(project: Project, folder: Path, request_s: float = 60.0) -> Iterator[OneWorker]:
    """A worker with a database of its own. request_s — that its requests may take."""
    with (
        contextlib.closing(Database(sqlite_url(folder / "worker.db"), time.time)) as db,
        adapter(project, folder, request_s=request_s) as cloud,
    ):
        db.migrate()
        worker = Worker(db, cloud, AgreedClock(db.agreed_now), Entropy(), Limits())
        worker.start()
        try:
            yield OneWorker(db)
        finally:
            worker.stop()
