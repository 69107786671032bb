"""Create, no-op update, one-change update and delete of n resources of one shape."""

import multiprocessing

from bench.databases import database_url
from bench.engine import Engine
from bench.figures import Measured
from bench.shapes import SHAPES


def best_of(shape: str, n: int, repeat: int, database: str) -> list[Measured]:
    """The fastest run of each operation, each lifecycle in a process of its own so that memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        runs = [pool.apply(lifecycle, (shape, n, database)) for _ in range(repeat)]
    return [min(same, key=lambda each: each.seconds) for same in zip(*runs, strict=True)]


def lifecycle(shape: str, n: int, database: str) -> list[Measured]:
    """The four operations on one stack, on a database of its own."""
    with database_url(database) as url:
        engine = Engine(url)
        try:
            return lifecycle_of(engine, shape, n)
        finally:
            engine.close()


def lifecycle_of(engine: Engine, shape: str, n: int) -> list[Measured]:
    """The same with an engine that is there."""
    made = SHAPES[shape]
    ids: list[str] = []

    def create() -> None:
        ids.append(engine.stack_service.create("bench", None, "bench", made.request(n)))
        engine.settle(ids[0])

    def no_op() -> None:
        engine.stack_service.update(ids[0], made.request(n))
        engine.settle(ids[0])

    def one_change() -> None:
        engine.stack_service.update(ids[0], made.changed(n))
        engine.settle(ids[0])

    def delete() -> None:
        engine.stack_service.delete(ids[0])
        engine.settle(ids[0])

    acts = {"create": create, "no_op_update": no_op, "one_change_update": one_change, "delete": delete}
    return [engine.measure(operation, shape, n, act) for operation, act in acts.items()]
