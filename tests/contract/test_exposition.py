"""What Prometheus is shown, on SQLite and on PostgreSQL."""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update
from tests.contract.store_cases import LEASE_S, LONG_S, add_stack, claim

from homeostat.model.errors import Transient
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Verb
from homeostat.observability import metrics
from homeostat.observability.prometheus import exposed
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.operation import workers


def numbers(db: Database, name: str) -> Mapping[tuple[str, ...], float]:
    """Values of a meter's labels, in the order of the labels' names -> value."""
    lines = [line for line in exposed(db).decode().splitlines() if f"homeostat_{name}" in line]
    return {
        tuple(sample.labels[label] for label in sorted(sample.labels)): sample.value
        for family in text_string_to_metric_families("\n".join(lines))
        for sample in family.samples
        if sample.name == f"homeostat_{name}"
    }


def number(db: Database, name: str) -> float:
    return numbers(db, name).get((), 0.0)


# -- gauges ------------------------------------------------------------------------------------------------------------


def test_stacks_by_status(database: Database) -> None:
    for name in ("a", "b", "gone"):
        add_stack(database, name)
    with database.write() as tx:
        tx.execute(update(schema.stack).where(schema.stack.c.name == "b").values(status="FAILED"))
        tx.execute(update(schema.stack).where(schema.stack.c.name == "gone").values(deleted_at=1.0))
    assert numbers(database, "stacks") == {("CREATE", "FAILED"): 1, ("CREATE", "IN_PROGRESS"): 1}


def test_work_that_waits_and_work_in_hand(database: Database) -> None:
    now = time.time()
    stack_id = add_stack(database, shard_count=4, at=now - 60)
    claim(database, stack_id, 0, owner="one", at=now, lease_s=LONG_S)
    claim(database, stack_id, 1, owner="one", at=now, lease_s=LONG_S)
    claim(database, stack_id, 2, owner="dead", at=now - LEASE_S - 10)
    assert number(database, "shards_due") == 2
    assert 60 <= number(database, "wakeup_lag_seconds") <= time.time() - now + 61
    assert number(database, "shards_owned") == 2
    assert number(database, "workers_busy") == 1


def test_workers_that_run_and_that_died(database: Database) -> None:
    now = time.time()
    with database.write() as tx:
        for name, seen_at in (("a", now + LONG_S), ("b", now + LONG_S), ("dead", now - 60)):
            workers.report(tx, workers.Worker(name, "host", 1, "1.0", "sql", now - 99, seen_at))
    assert numbers(database, "workers") == {("up",): 2, ("down",): 1}


def test_a_database_that_does_not_answer_hides_nothing_else(tmp_path: Path) -> None:
    gone = Database(f"postgresql+psycopg://nobody@/x?host={tmp_path}", time.time)
    before = number(gone, "shards_claimed_total")
    metrics.claimed()
    assert number(gone, "database_up") == 0
    assert number(gone, "shards_claimed_total") == before + 1
    assert numbers(gone, "stacks") == {}


# -- counters ----------------------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_a_batch_is_counted_by_what_the_cloud_answered(database: Database) -> None:
    def counted() -> list[float]:
        answers, steps = numbers(database, "cloud_answers_total"), numbers(database, "steps_total")
        return [
            answers.get(("server", "ok", "create"), 0),
            answers.get(("server", "transient", "create"), 0),
            steps.get(("server", "create"), 0),
            numbers(database, "cloud_call_seconds_count").get(("server", "create"), 0),
            numbers(database, "healings_total").get(("server",), 0),
        ]

    before = counted()
    seen = Observation(Presence.PRESENT, "handle", seen_at=1.0)
    metrics.acted(Verb.CREATE, "server", [seen, seen, Transient("busy")], 0.1, healing=False)
    metrics.acted(Verb.CREATE, "server", [seen], 0.1, healing=True)
    assert [after - earlier for earlier, after in zip(before, counted(), strict=True)] == [3, 1, 4, 2, 1]


def test_what_never_reaches_a_cloud_is_no_call(database: Database) -> None:
    def creations() -> dict[tuple[str, ...], float]:
        calls = numbers(database, "cloud_call_seconds_count")
        return {(kind, verb): count for (kind, verb), count in calls.items() if verb == "create"}

    before = creations()
    metrics.acted(Verb.CREATE, "", [Observation(Presence.PRESENT, "key", seen_at=1.0)], 0.1, healing=False)
    assert creations() == before
    assert numbers(database, "steps_total")["none", "create"] >= 1


@pytest.mark.heavy
def test_deliveries_to_sinks_are_counted(database: Database) -> None:
    def counted() -> list[float]:
        names = ("events_told_total", "events_not_told_total", "events_given_up_total")
        return [numbers(database, name).get(("pigeon",), 0.0) for name in names]

    before = counted()
    metrics.delivered("pigeon", 3)
    metrics.delivery_failed("pigeon", 0)
    metrics.delivery_failed("pigeon", 5)
    assert [now - then for now, then in zip(counted(), before, strict=True)] == [3, 2, 5]


@pytest.mark.heavy
def test_without_the_package_nothing_is_counted_and_all_else_works() -> None:
    program = """
import sys
sys.modules["prometheus_client"] = None
from homeostat.convergence import worker
from homeostat.observability import metrics
from homeostat.model.plan import Verb
metrics.claimed(), metrics.passed("done"), metrics.looked("server", 1, 0.1), metrics.drifted(1), metrics.swept(1)
metrics.delivered("webhook", 1), metrics.delivery_failed("webhook", 1)
metrics.acted(Verb.CREATE, "server", [], 0.1, healing=True)
print(metrics.AVAILABLE)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr
