"""What encrypting secrets costs: the same stacks without keys, with keys where nothing is secret, and where all is."""

import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import replace

from bench.databases import database_url
from bench.engine import Engine
from bench.figures import Figure
from bench.shapes import SHAPES
from homeostat.api.services.pipeline.request import StackRequest
from homeostat.store.encryption.encrypted_cells import KEY_BYTES, Keyring

WAYS = ("plain", "harmless", "encrypted")
ENCRYPTED_SHAPES = ("independent", "clouded")


def encryption(n: int, repeat: int, database: str) -> Iterator[Figure]:
    """CPU of creating, the ways by turns, so that the neighbours disturb them alike; the best of each counts."""
    for shape in ENCRYPTED_SHAPES:
        cpu = {way: float("inf") for way in WAYS}
        for _ in range(repeat):
            for way in WAYS:
                with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
                    cpu[way] = min(cpu[way], pool.apply(_cpu_s, (shape, n, database, way)))
        yield Figure(f"encryption.{shape}.plain", cpu["plain"] / n * 1000, "CPU ms/resource", n, database)
        for way in WAYS[1:]:
            yield Figure(f"encryption.{shape}.{way}_to_plain", cpu[way] / cpu["plain"], "ratio", n, database)


def _cpu_s(shape: str, n: int, database: str, way: str) -> float:
    with database_url(database) as url:
        engine = Engine(url)
        try:
            if way != "plain":
                engine.db.use_keys(Keyring([os.urandom(KEY_BYTES)]))
            return engine.measure("create", shape, n, lambda: _create(engine, shape, n, way == "encrypted")).cpu_s
        finally:
            engine.close()


def _create(engine: Engine, shape: str, n: int, secret: bool) -> None:
    request = SHAPES[shape].request(n)
    engine.settle(engine.stack_service.create("bench", None, "bench", _with_secret(request) if secret else request))


def _with_secret(request: StackRequest) -> StackRequest:
    """The same with a hidden parameter, which makes all of its rows secret."""
    template = request.template
    assert isinstance(template, dict)
    hidden = {"secret": {"type": "string", "hidden": True, "default": "hidden"}}
    return replace(request, template={**template, "parameters": hidden})
