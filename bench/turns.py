"""How long others have to wait to write: on SQLite one writes at a time, and everybody else waits for his turn."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from bench.databases import database_url
from bench.engine import Engine
from bench.figures import Figure
from bench.shapes import SHAPES
from homeostat.services.actions import StackActions
from homeostat.services.snapshots import Snapshots
from homeostat.store.database import Database

SHAPE = "independent"


def turns(n: int, database: str) -> list[Figure]:
    """CPU time of the longest write turn of each operation on a stack of n resources, and of all of them together."""
    with database_url(database) as url, contextlib.closing(Engine(url)) as engine:
        shape, stacks = SHAPES[SHAPE], engine.stack_service
        stack_id = stacks.create("bench", None, "small", shape.request(1))
        engine.settle(stack_id)
        operations: dict[str, Callable[[], Any]] = {
            "update": lambda: stacks.update(stack_id, shape.request(n)),
            "change": lambda: stacks.update(stack_id, shape.changed(n)),
            "converge": lambda: StackActions(engine.db, 3600.0).converge(stack_id),
            "snapshot": lambda: Snapshots(engine.db, stacks).take(stack_id, None),
            "delete": lambda: stacks.delete(stack_id),
        }
        figures = []
        for name, operate in operations.items():
            with _measured() as held:
                operate()
                engine.settle(stack_id)
            about = f"{len(held)} turns"
            figures.append(Figure(f"turns.{name}.longest", max(held) * 1000, "CPU ms", n, database, about))
            figures.append(Figure(f"turns.{name}.all", sum(held) * 1000, "CPU ms", n, database, about))
        return figures


@contextlib.contextmanager
def _measured() -> Iterator[list[float]]:
    """CPU time of each write turn that is held meanwhile, in seconds."""
    held: list[float] = []
    plain = Database.write

    @contextlib.contextmanager
    def write(db: Database) -> Iterator[Any]:
        with plain(db) as tx:
            began = time.thread_time()
            yield tx
            ended = time.thread_time()
        held.append(ended - began)

    with patch.object(Database, "write", write):
        yield held
