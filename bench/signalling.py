"""What one more small signal costs a handle that has many, or large ones, already."""

import contextlib
import time

from bench.databases import database_url
from bench.figures import Figure
from bench.shapes import VERSION, Template
from bench.signalled import Signalled

MORE = 50
SMALL = "x" * 300
LARGE = "x" * 1_000_000
LARGE_ONES = 3


def waiting(count: int) -> Template:
    """A condition that waits for as many signals."""
    condition = {"handle": {"get_resource": "handle"}, "timeout": 40_000, "count": count}
    resources: Template = {
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "wait": {"type": "OS::Heat::WaitCondition", "properties": condition},
    }
    return {"heat_template_version": VERSION, "resources": resources}


def signalling(n: int, database: str) -> list[Figure]:
    """CPU time of this process for a small signal, and for what follows from it: after n small ones (9,000 at most,
    as a handle takes 10,000), and after some of a megabyte."""
    n = min(n, 9_000)
    return [
        Figure("signal.small.cpu", _each_ms([SMALL] * n, database), "CPU ms/signal", n, database, f"after {n} small"),
        Figure("signal.large.cpu", _each_ms([LARGE] * LARGE_ONES, database), "CPU ms/signal", LARGE_ONES, database),
    ]


def _each_ms(before: list[str], database: str) -> float:
    with database_url(database) as url, contextlib.closing(Signalled(url, waiting(len(before) + 2 * MORE))) as stack:
        for number, data in enumerate([*before, SMALL]):
            stack.signal({"id": str(number), "status": "SUCCESS", "data": data})
        stack.rest()
        began = time.process_time()
        for number in range(MORE):
            stack.signal({"id": f"more-{number}", "status": "SUCCESS", "data": SMALL})
            stack.rest()
        return (time.process_time() - began) / MORE * 1000
