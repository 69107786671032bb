"""How soon the service reacts: a dependant after what it reads is known, and a small stack beside a large one."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence

from bench.databases import database_url, opened
from bench.figures import Figure, quantiles
from bench.processes import complete, running_workers
from bench.shapes import SHAPES, VERSION, Template
from homeostat.clock import AgreedClock, Entropy
from homeostat.clouds.port import Answer
from homeostat.clouds.port import Creation as Wanted
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence.limits import Limits
from homeostat.convergence.worker import Worker
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.database import Database
from homeostat.store.stacks import stacks

BUILD_S = 0.5
APART_S = 0.1
"""Servers become ready one after the other, ten a second."""
SMALL = 10
SMALL_STACKS = 20


class Builders(SimulatedCloud):
    """A cloud that takes its time for servers, reports when one is ready, and notes when volumes are requested.

    ready_at — address of a server -> when it was ready; requested_at — description of a volume -> its time.
    """

    def __init__(self) -> None:
        super().__init__(time.time)
        self.ready_at: dict[str, float] = {}
        self.requested_at: dict[str, float] = {}

    def create(self, kind: str, intents: Sequence[Wanted]) -> list[Answer]:
        now = time.time()
        if kind != "server":
            self.requested_at.update({str(intent.spec.get("description")): now for intent in intents})
            return super().create(kind, intents)
        answers: list[Answer] = []
        for place, intent in enumerate(intents):
            self.behaviour.build_s = BUILD_S + APART_S * place
            answers += super().create(kind, [intent])
        threading.Thread(target=self._report, args=(list(answers),), daemon=True).start()
        return answers

    def _report(self, answers: list[Answer]) -> None:
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
            thing = self._things["server", answer.handle]
            time.sleep(max(0.0, thing.ready_at - time.time()))
            self.ready_at[str(answer.properties["address"])] = thing.ready_at
            self.change(answer.handle)


def latency(n: int, database: str) -> list[Figure]:
    """From a server being ready to the volume that reads its address being asked for, in n resources."""
    pairs = n // 2
    with _service(database) as (stack_service, db, cloud):
        resources: Template = {}
        for i in range(pairs):
            server: Template = {"flavor": "m1", "image": "i", "networks": [{"network": "n"}]}
            resources[f"server{i}"] = {"type": "OS::Nova::Server", "properties": server}
            volume: Template = {"size": 1, "description": {"get_attr": [f"server{i}", "first_address"]}}
            resources[f"volume{i}"] = {"type": "OS::Cinder::Volume", "properties": volume}
        complete(db, [stack_service.create("bench", None, "pairs", StackRequest(_template(resources)))])
    waits = [cloud.requested_at[address] - ready_at for address, ready_at in cloud.ready_at.items()]
    if len(waits) != pairs:
        raise RuntimeError(f"{len(waits)} of {pairs} servers were followed by a volume")
    about = f"{pairs} pairs of a server and a volume, {1 / APART_S:.0f} servers ready a second"
    return quantiles("attribute_to_dependant", waits, n, database, about)


@contextlib.contextmanager
def _service(database: str) -> Iterator[tuple[StackService, Database, Builders]]:
    with database_url(database) as url, contextlib.closing(opened(url)) as db:
        cloud = Builders()
        clock = AgreedClock(db.agreed_now)
        worker = Worker(db, cloud, clock, Entropy(), Limits())
        worker.start()
        try:
            yield StackService(db, Entropy(), Quotas()), db, cloud
        finally:
            worker.stop()


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
