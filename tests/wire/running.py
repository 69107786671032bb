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
from homeostat.clustering.resources.api import ClusteringResources
from homeostat.clustering.resources.cloud import ClusteringResourceClouds
from homeostat.composition.worker_process import reaching
from homeostat.convergence.limits import Limits
from homeostat.convergence.worker import Worker
from homeostat.identity.trusts import StackTrusts
from homeostat.notifications.sinks import Sinks
from homeostat.services.pipeline.prerequisites import Prerequisites
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.database import Database
from tests.databases import migrated
from tests.waiting import until


@dataclass(frozen=True, slots=True)
class Running:
    """url — of the API without version."""

    url: str
    db: Database
    cloud: SimulatedCloud

    def endpoint(self, project: str) -> str:
        return f"{self.url}/v1/{project}"


def seen(db: Database, of: Clouds, url: str) -> Clouds:
    """What each project sees: its cloud, and what the service itself has for it. url — where servers reach the API."""
    own = Records(db, Entropy(), url)
    stacks = StackService(db, Entropy(), Quotas(), prerequisites=Prerequisites(lambda project: clouds(project)))
    api = ClusteringResources(db, stacks, url, None)
    things = ClusteringResourceClouds(db, Entropy(), lambda: api)

    def clouds(project: str) -> JoinedCloud:
        return JoinedCloud(of(project), own.of(project), things.of(project))

    return clouds


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
    clouds = seen(db, lambda _: cloud, f"http://127.0.0.1:{listening.getsockname()[1]}") if cloud is not None else None
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
    """Migrated, in this directory or on the server that is tested."""
    with migrated(directory) as url, contextlib.closing(Database(url, time.time)) as db:
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
    servers reach the API; fetching — where event sinks may post to, and URLs of users may lead."""
    limits = Limits(look_busy_s=0.1, look_steady_s=look_steady_s)
    own = Records(db, Entropy(), url)
    clouds = clouds or seen(db, lambda project: ServerAgents(cloud, own, db, project), url)
    worker = Worker(
        db,
        cloud,
        SystemClock(),
        Entropy(),
        limits,
        clouds=clouds,
        sinks=Sinks(clouds, Outbound(fetching)),
        tidying=tidying,
        urls=reaching(Outbound(fetching)),
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
