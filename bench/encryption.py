"""What encrypting secrets costs: the same stacks without keys, with keys where nothing is secret, and where all is."""

import contextlib
import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy import select

from bench.databases import database_url
from bench.engine import Engine
from bench.figures import Figure
from bench.shapes import SHAPES, VERSION
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.store.encryption.encrypted_cells import KEY_BYTES, Keyring
from homeostat.store.shards import shard_state

WAYS = ("plain", "harmless", "encrypted")
ENCRYPTED_SHAPES = ("independent", "clouded")
LARGE = "x" * 15_500
"""A property of each member of the group that is read."""


def encryption(n: int, database: str, repeat: int) -> Iterator[Figure]:
    """CPU of creating, the ways by turns, so that the neighbours disturb them alike, and of reading; the best of each
    counts."""
    for shape in ENCRYPTED_SHAPES:
        cpu = {way: float("inf") for way in WAYS}
        for _ in range(repeat):
            for way in WAYS:
                with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
                    cpu[way] = min(cpu[way], pool.apply(_cpu_s, (shape, n, database, way)))
        yield Figure(f"encryption.{shape}.plain", cpu["plain"] / n * 1000, "CPU ms/resource", n, database)
        for way in WAYS[1:]:
            yield Figure(f"encryption.{shape}.{way}_to_plain", cpu[way] / cpu["plain"], "ratio", n, database)
    for way in ("plain", "encrypted"):
        seconds = min(_read_s(n, database, encrypted=way == "encrypted") for _ in range(repeat))
        yield Figure(f"encryption.read.{way}", seconds / n * 1000, "CPU ms/resource", n, database, "members of a group")


def _read_s(n: int, database: str, *, encrypted: bool) -> float:
    """CPU time for reading all rows of a group whose members have a large property, the same one."""
    member = {"type": "OS::Heat::TestResource", "properties": {"value": LARGE}}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": n, "resource_def": member}}
    request = StackRequest({"heat_template_version": VERSION, "resources": {"group": group}})
    with database_url(database) as url, contextlib.closing(Engine(url)) as engine:
        if encrypted:
            engine.db.use_keys(Keyring([os.urandom(KEY_BYTES)]))
        _create(engine, _with_secret(request) if encrypted else request)
        with engine.db.read() as tx:
            nested = tx.execute(select(schema.stack).where(schema.stack.c.parent_id.is_not(None))).one()
            began = time.process_time()
            for number in range(nested.shards):
                shard_state.load_rows(tx, nested.id, number)
            return time.process_time() - began


def _cpu_s(shape: str, n: int, database: str, way: str) -> float:
    with database_url(database) as url:
        engine = Engine(url)
        try:
            if way != "plain":
                engine.db.use_keys(Keyring([os.urandom(KEY_BYTES)]))
            request = SHAPES[shape].request(n)
            request = _with_secret(request) if way == "encrypted" else request
            return engine.measure("create", shape, n, lambda: _create(engine, request)).cpu_s
        finally:
            engine.close()


def _create(engine: Engine, request: StackRequest) -> None:
    engine.settle(engine.stack_service.create("bench", None, "bench", request))


def _with_secret(request: StackRequest) -> StackRequest:
    """The same with a hidden parameter, which makes all of its rows secret."""
    template = request.template
    assert isinstance(template, dict)
    hidden = {"secret": {"type": "string", "hidden": True, "default": "hidden"}}
    return replace(request, template={**template, "parameters": hidden})
