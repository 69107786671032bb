"""How soon the service reacts: a dependant after its attribute is known, a small stack beside a large one; and what
waiting costs."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

from sqlalchemy import func, select

from bench.databases import database_url, opened
from bench.figures import Figure, quantiles
from bench.processes import PATIENCE_S, complete, running_workers
from bench.shapes import SHAPES, VERSION, Template
from homeostat.clock import AgreedClock, Entropy
from homeostat.clouds.port import Answer
from homeostat.clouds.port import Creation as Wanted
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.convergence.limits import Limits
from homeostat.convergence.worker import Worker
from homeostat.model.status import Status
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.stacks import stacks

FOREVER_S = 1e6
PAIRS = 50
APART_S = 0.1
"""Servers become ready one after the other, ten a second."""
SETTLED_S = 2.0
"""Until a worker rests after its last request of the cloud."""
TEST: Template = {"type": "OS::Heat::TestResource", "properties": {"value": "v"}}
SERVER: Template = {
    "type": "OS::Nova::Server",
    "properties": {"flavor": "m1", "image": "i", "networks": [{"network": "n"}]},
}
SMALL = 10
SMALL_STACKS = 20


class Builders(SimulatedCloud):
    """A cloud whose servers are being built until they are released; it notes when volumes are requested.

    ready_at — address of a server -> when it was ready; requested_at — description of a volume -> its time; building —
    handle of a server that is being built -> its address.
    """

    def __init__(self) -> None:
        super().__init__(time.time, CloudBehaviour(build_s=FOREVER_S))
        self.ready_at: dict[str, float] = {}
        self.requested_at: dict[str, float] = {}
        self.building: dict[str, str] = {}

    def create(self, kind: str, intents: Sequence[Wanted]) -> list[Answer]:
        now = time.time()
        if kind == "volume":
            self.requested_at.update({str(intent.spec.get("description")): now for intent in intents})
        answers = super().create(kind, intents)
        if kind == "server":
            self.building |= {
                each.handle: str(each.properties["address"]) for each in answers if not isinstance(each, Exception)
            }
        return answers

    def release(self) -> None:
        """Let a server be ready now, and notify the service."""
        handle, address = self.building.popitem()
        self.ready_at[address] = self._things["server", handle].ready_at = time.time()
        self._notify("server", handle)


def latency(n: int, database: str) -> list[Figure]:
    """Measure from a server being ready to the request of the volume that reads its address, in a flat stack of n
    resources in which nothing else happens."""
    pairs = min(PAIRS, n // 2)
    resources: Template = {f"r{i}": TEST for i in range(n - 2 * pairs)}
    for i in range(pairs):
        resources[f"server{i}"] = SERVER
        volume: Template = {"size": 1, "description": {"get_attr": [f"server{i}", "first_address"]}}
        resources[f"volume{i}"] = {"type": "OS::Cinder::Volume", "properties": volume}
    cloud = Builders()
    with service(database, cloud) as (stacks, db):
        stack_id = stacks.create("bench", None, "pairs", StackRequest(_template(resources)))
        until(lambda: len(cloud.building) == pairs and done(db) == n - 2 * pairs)
        time.sleep(SETTLED_S)
        began = time.process_time()
        while cloud.building:
            cloud.release()
            time.sleep(APART_S)
        until(lambda: len(cloud.requested_at) == pairs)
        cpu_s = time.process_time() - began
        complete(db, [stack_id])
    waits = [cloud.requested_at[address] - ready_at for address, ready_at in cloud.ready_at.items()]
    about = f"{pairs} servers, {1 / APART_S:.0f} ready a second"
    return [
        *quantiles("attribute_to_dependant", waits, n, database, about),
        Figure("attribute_to_dependant.cpu", cpu_s / pairs * 1000, "CPU ms/event", n, database, about),
    ]


def building(n: int, database: str, seconds: float) -> Iterator[Figure]:
    """Measure a worker, in this process, while n servers are being built and nothing changes."""
    cloud = Builders()
    with service(database, cloud) as (stacks, _):
        stacks.create("bench", None, "building", StackRequest(_template({f"s{i}": SERVER for i in range(n)})))
        until(lambda: len(cloud.building) == n)
        time.sleep(seconds)
        began = time.process_time()
        time.sleep(seconds)
        share = (time.process_time() - began) / seconds * 100
    yield Figure("building.worker.cpu", share, "% of a core", n, database, f"after {seconds:g} s, for {seconds:g} s")


@contextlib.contextmanager
def service(database: str, cloud: SimulatedCloud) -> Iterator[tuple[StackService, Database]]:
    """A worker in this process."""
    with database_url(database) as url, contextlib.closing(opened(url)) as db:
        worker = Worker(db, cloud, AgreedClock(db.agreed_now), Entropy(), Limits())
        worker.start()
        try:
            yield StackService(db, Entropy(), Quotas()), db
        finally:
            worker.stop()


def done(db: Database) -> int:
    """Return how many resources are COMPLETE."""
    counted = select(func.count()).where(schema.resource.c.status == Status.COMPLETE)
    with db.read() as tx:
        return int(tx.execute(counted).scalar_one())


def until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition. Fails: RuntimeError when it takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError("it did not happen in time")
        time.sleep(0.2)


def small_beside_large(n: int, database: str) -> list[Figure]:
    """Small stacks, one after the other, while n resources of another user are being created."""
    with contextlib.ExitStack() as context:
        url = context.enter_context(database_url(database))
        db = context.enter_context(contextlib.closing(opened(url)))
        context.enter_context(running_workers(url, 1))
        stack_service = StackService(db, Entropy(), Quotas())
        complete(db, [stack_service.create("others", None, "warm", SHAPES["group"].request(SMALL))])
        large = stack_service.create("others", None, "large", SHAPES["group"].request(n))
        waits = []
        for number in range(SMALL_STACKS):
            started = time.perf_counter()
            complete(db, [stack_service.create("mine", None, f"small{number}", SHAPES["independent"].request(SMALL))])
            waits.append(time.perf_counter() - started)
        with db.read() as tx:
            row = stacks.get(tx, large)
        if row is None or row.status != "IN_PROGRESS":
            raise RuntimeError("the large stack was done before the small ones: take a larger one")
    return quantiles(f"small_stack_beside_{n}", waits, SMALL, database, "one worker process, two projects")


def _template(resources: Template) -> Template:
    return {"heat_template_version": VERSION, "resources": resources}
