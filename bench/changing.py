"""A change in a large flat stack, and an update without one: what accepting, working and the first look take."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial

from bench.cpu import spent_s
from bench.databases import database_url, opened
from bench.figures import Figure
from bench.processes import wait_for_rest
from bench.serving import pids_of, request, serving, url_of
from bench.shapes import SHAPES, Template

ROUNDS = 5
SETTLED_S = 1.0


def changing(n: int, database: str) -> Iterator[Figure]:
    """Update a stack of n resources several times, in a service of real processes."""
    with (
        database_url(database) as url,
        contextlib.closing(opened(url)) as db,
        serving(url, flags=("--resources-max", "2000000")) as state,
    ):
        template = SHAPES["independent"].request(n).template
        assert isinstance(template, dict)
        pids, stacks = pids_of(state), f"{url_of(state)}/stacks"
        made = request(stacks, {"stack_name": "flat", "template": template})["stack"]["id"]
        stack = f"{stacks}/flat/{made}"
        wait_for_rest(db)

        def update(template: Template) -> None:
            request(stack, {"template": template}, "PUT")
            wait_for_rest(db)
            time.sleep(SETTLED_S)

        def changed(number: int) -> Template:
            one = {"type": "OS::Heat::TestResource", "properties": {"value": f"changed {number}"}}
            return {**template, "resources": {**template["resources"], "r0": one}}

        spent: dict[str, float] = defaultdict(float)
        for number in range(ROUNDS + 1):
            for name, last in (("one", changed(number)), ("none", changed(number))):
                acts: dict[str, Callable[[], object]] = {
                    "update": partial(update, last),
                    "first_get": partial(request, stack),
                }
                for act, run in acts.items():
                    used = spent_s(pids, db, run)
                    for part in ("api", "worker") if number else ():  # the first round loads modules
                        spent[f"{name}.{act}.{part}"] += used[part] / ROUNDS
    about = f"mean of {ROUNDS}"
    for name, seconds in spent.items():
        yield Figure(f"change.{name}.cpu", seconds, "CPU s", n, database, about)
