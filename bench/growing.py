"""A tree that is deleted while it grows: what it takes to delete the stacks beside what it took to make them."""

from dataclasses import replace

from sqlalchemy import func, select

from bench.databases import database_url
from bench.engine import Engine
from bench.figures import Figure
from bench.shapes import VERSION
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema

LEAF = f"heat_template_version: {VERSION}\nresources:\n  r: {{type: OS::Heat::TestResource}}\n"


def growing(n: int, database: str) -> list[Figure]:
    """Make n stacks of one resource in a group, of which none is begun; then delete them."""
    members = {"type": "OS::Heat::ResourceGroup", "properties": {"count": n, "resource_def": {"type": "one.yaml"}}}
    template = {"heat_template_version": VERSION, "resources": {"group": members}}
    request = replace(StackRequest(template), files={"one.yaml": LEAF})
    with database_url(database) as url:
        engine = Engine(url)
        ids: list[str] = []

        def grow() -> None:
            ids.append(engine.stack_service.create("bench", None, "bench", request))
            while _stacks(engine) < n + 2:
                job = next(engine.board.iterjobs())
                engine.board.claim(job, "bench")
                run_pass(engine.reconciler, job)

        def delete() -> None:
            engine.stack_service.delete(ids[0])
            engine.settle(ids[0])

        try:
            made, gone = (engine.measure(name, "growing", n, act) for name, act in (("grow", grow), ("delete", delete)))
        finally:
            engine.close()
    return [
        Figure("grow.cpu", made.cpu_s / n * 1000, "CPU ms/stack", n, database),
        Figure("delete.growing.cpu", gone.cpu_s / n * 1000, "CPU ms/stack", n, database),
        Figure("delete.growing.statements", gone.statements / n, "statements/stack", n, database),
        Figure("delete.growing.to_grow", gone.cpu_s / made.cpu_s, "ratio", n, database),
    ]


def _stacks(engine: Engine) -> int:
    with engine.db.read() as tx:
        return int(tx.execute(select(func.count()).select_from(schema.stack)).scalar_one())
