"""CPU time of a service that has nothing to do, beside quiet stacks."""

import contextlib
import time
from collections.abc import Iterator
from functools import partial

from bench.cpu import cpu_s, spent_s
from bench.databases import database_url, opened
from bench.figures import Figure
from bench.processes import complete, running_workers
from bench.serving import pids_of, request, serving, url_of, wait_for_all
from bench.shapes import SHAPES
from homeostat.clock import Entropy
from homeostat.convergence.limits import Limits
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService

SERVER = {"type": "OS::Nova::Server", "properties": {"image": "debian-12", "flavor": "m1.small"}}
VALUE = {"type": "OS::Heat::Value", "properties": {"value": "quiet"}}


def quiet(count: int, database: str, seconds: float) -> Iterator[Figure]:
    """Measure a worker beside stacks of three volumes each."""
    with contextlib.ExitStack() as context:
        url = context.enter_context(database_url(database))
        db = context.enter_context(contextlib.closing(opened(url)))
        pids = context.enter_context(running_workers(url, 1))
        stacks = StackService(db, Entropy(), Quotas(stacks_max=count))
        shape = SHAPES["clouded"]
        complete(db, [stacks.create("bench", None, f"s{i}", shape.request(3)) for i in range(count)])
        time.sleep(min(seconds, Limits().look_steady_s))  # until all of them were looked at once
        before = cpu_s(pids)
        time.sleep(seconds)
        share = (cpu_s(pids) - before) / seconds * 100
    yield Figure("idle.worker.cpu", share, "% of a core", count, database, f"{count} stacks, {seconds:.0f} s")


def local(count: int, database: str, seconds: float) -> Iterator[Figure]:
    """Measure a whole service; half of the stacks have a server each, which is a process, the others a value."""
    with (
        database_url(database) as url,
        contextlib.closing(opened(url)) as db,
        serving(url, cloud="local") as state,
    ):
        for number in range(count):
            template = {"heat_template_version": "2021-04-16", "resources": {"only": SERVER if number % 2 else VALUE}}
            request(f"{url_of(state)}/stacks", {"stack_name": f"s{number}", "template": template})
        wait_for_all(url_of(state))
        time.sleep(min(seconds, Limits().look_steady_s))
        shares = spent_s(pids_of(state), db, partial(time.sleep, seconds))
    about = f"{count} stacks, half of them with a server, {seconds:.0f} s"
    for name, spent in shares.items():
        yield Figure(f"idle.local.{name}.cpu", spent / seconds * 100, "% of a core", count, database, about)
