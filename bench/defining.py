"""A rollout of a new definition to the members of a large group: what its steps cost, and the way back."""

import time
from collections.abc import Callable, Generator, Iterator

from sqlalchemy import func, select, update

from bench.databases import Statements, database_url
from bench.engine import PROJECT
from bench.figures import Figure
from bench.rolling import STEPS, Rolling, template
from bench.shapes import Template
from homeostat.model.rollout import Rollout
from homeostat.store import schema
from homeostat.store.stacks import rollouts

BACK_AFTER = "5%"
"""The step whose members have the new definition when one of them says no, in the run that goes back."""


def defining_template(n: int, value: str) -> Template:
    made = template(n, "metadata")
    group = made["resources"]["group"]
    group["properties"]["resource_def"]["properties"]["value"] = value
    group["update_policy"] = {"rollout": {"applies_to": "definition", "progress_deadline": 40_000}}
    return made


class Defining(Rolling):
    """One stack with a group at rest, whose definition is about to change."""

    def __init__(self, url: str, n: int) -> None:
        super().__init__(url, n, defining_template)
        self.sent = Statements(self.db)

    def advance(self) -> Rollout | None:
        self.engine.rollouts.advance(self.key)
        with self.db.read() as tx:
            return rollouts.of_group(tx, self.key)

    def all_report(self) -> None:
        """Members report; what that costs is measured with metadata."""
        table = schema.active_metadata_updates
        with self.db.write() as tx:
            tx.execute(update(table).where(table.c.status == "").values(status="SUCCESS"))

    def one_fails(self) -> None:
        with self.db.read() as tx:
            member = tx.execute(select(func.min(schema.active_metadata_updates.c.instance_id))).scalar_one()
        self.signals.native(PROJECT, "signal_handle", self.handle, {"status": "FAILURE", "data": member})


def defining(n: int, database: str) -> Iterator[Figure]:
    """A canary over n members, all of whom report success; and one that goes back."""
    with database_url(database) as url:
        run = Defining(url, n)
        before = 0
        for step in STEPS:
            rollout = yield from _step(run, n, database, step, before)
            before = rollout.active
            run.all_report()
        run.conclude()
        run.close()
    with database_url(database) as url:
        run = Defining(url, n)
        for step in STEPS[: STEPS.index(BACK_AFTER) + 1]:
            list(_step(run, n, database, step, 0))
            if step != BACK_AFTER:
                run.all_report()
        yield from _back(run, n, database)
        run.close()


def _step(run: Defining, n: int, database: str, step: str, before: int) -> Generator[Figure, None, Rollout]:
    """Begin a step, change its members, and see that they have the definition; return the rollout."""
    name = f"definition.step_{step}"
    begun = _Spent(run, run.advance)
    changed = _Spent(run, run.rest)
    noted = _Spent(run, run.advance)
    rollout = noted.gave
    if not isinstance(rollout, Rollout) or rollout.giving is not None:
        raise RuntimeError(f"step {step} has not reached its members: {rollout}")
    members = max(rollout.active - before, 1)
    for what, spent in (("begin", begun), ("change", changed), ("note", noted)):
        about = f"{members} members, {spent.cpu_s / members * 1000:.3g} ms each; {spent.statements} statements"
        yield Figure(f"{name}.{what}", spent.cpu_s * 1000, "CPU ms", n, database, about)
    waits = _Spent(run, run.advance)
    yield Figure(f"{name}.wait", waits.cpu_s * 1000, "CPU ms", n, database, f"{waits.statements} statements")
    return rollout


def _back(run: Defining, n: int, database: str) -> Iterator[Figure]:
    refused = _Spent(run, run.one_fails)
    yield Figure("definition.back.begin", refused.cpu_s * 1000, "CPU ms", n, database, "from the report of a failure")
    changed = _Spent(run, run.rest)
    yield Figure("definition.back.change", changed.cpu_s * 1000, "CPU ms", n, database)


class _Spent:
    """What an act took: cpu_s — of this process; statements — sent to the database; gave — its result."""

    def __init__(self, run: Defining, act: Callable[[], object]) -> None:
        sent, cpu = run.sent.count, time.process_time()
        self.gave = act()
        self.cpu_s = time.process_time() - cpu
        self.statements = run.sent.count - sent
