"""A running service for the tests: real HTTP, a real worker, a database file, and a cloud in memory."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from homeostat.api.access.auth import Access
from homeostat.api.server import ApiSettings, run, server
from homeostat.builtin.cloud import Records
from homeostat.builtin.server_agents import ServerAgents
from homeostat.clock import Entropy, SystemClock
from homeostat.clouds.combined import JoinedCloud
from homeostat.clouds.outbound import Outbound, Rules
from homeostat.clouds.port import Cloud, Clouds
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence.limits import Limits
from homeostat.convergence.worker import Worker
from homeostat.identity.trusts import StackTrusts
from homeostat.notifications.sinks import Sinks
from homeostat.store.database import Database
from tests.databases import migrated_sqlite
from tests.waiting import until


@dataclass(frozen=True, slots=True)
class Running:
    """url — of the API without version."""

    url: str
    db: Database
    cloud: SimulatedCloud

    def endpoint(self, project: str) -> str:
        return f"{self.url}/v1/{project}"


@contextlib.contextmanager
def serving(
    db: Database,
    access: Access,
    settings: ApiSettings | None = None,
    port: int = 0,
    cloud: Cloud | None = None,
    trusts: StackTrusts | None = None,
) -> Iterator[str]:
    """The API on this port, or on a free one. Gives its address. cloud — where what templates name is looked for."""
    listening = socket.create_server(("127.0.0.1", port))
    own = Records(db, Entropy(), f"http://127.0.0.1:{listening.getsockname()[1]}")
    clouds: Clouds | None = None if cloud is None else lambda project: JoinedCloud(cloud, own.of(project))
    one = server(db, SystemClock(), Entropy(), access, settings or ApiSettings(), clouds, trusts)
    thread = threading.Thread(target=run, args=(one, listening), name="api")
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        one.should_exit = True
        thread.join()
        listening.close()


@contextlib.contextmanager
def database(directory: Path) -> Iterator[Database]:
    """Migrated, in this directory."""
    with contextlib.closing(Database(migrated_sqlite(directory / "homeostat.db"), time.time)) as db:
        yield db


@contextlib.contextmanager
def working(
    db: Database,
    cloud: SimulatedCloud,
    clouds: Clouds | None = None,
    look_steady_s: float = 60.0,
    url: str = "http://127.0.0.1:1",
    fetching: Rules = Rules(),
    tidying: Sequence[Callable[[], int]] = (),
) -> Iterator[None]:
    """A worker. clouds — what each project sees, where that is not `cloud` and the service's own things; url — where
    servers reach the API; fetching — where event sinks may post to."""
    limits = Limits(look_busy_s=0.1, look_steady_s=look_steady_s)
    own = Records(db, Entropy(), url)
    clouds = clouds or (lambda project: JoinedCloud(ServerAgents(cloud, own, db, project), own.of(project)))
    worker = Worker(
        db,
        cloud,
        SystemClock(),
        Entropy(),
        limits,
        clouds=clouds,
        sinks=Sinks(clouds, Outbound(fetching)),
        tidying=tidying,
    )
    worker.start()
    try:
        yield
    finally:
        worker.stop()


def settled(http: httpx.Client, stack_id: str, *, status: str | None = None) -> dict[str, Any]:
    """The stack once nothing is in progress; it must be in this state then, if one is given."""

    def at_rest() -> dict[str, Any] | None:
        stack = http.get(f"stacks/{stack_id}", follow_redirects=True).json()["stack"]
        return None if stack["stack_status"].endswith("IN_PROGRESS") else stack

    stack = until(at_rest, f"stack {stack_id} to come to rest")
    assert status is None or stack["stack_status"] == status, stack["stack_status_reason"]
    return stack
