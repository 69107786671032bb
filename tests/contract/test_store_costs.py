"""Statements and transactions that a stack of two resources costs from the request to its end."""

import threading

import pytest
from sqlalchemy import event
from tests.contract.store_cases import stack_row

from homeostat.clock import Entropy, SystemClock
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence.engine import build_engine
from homeostat.convergence.jobs.board import ShardBoard
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.limits import Limits
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.database import Database

TINY = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "a": {"type": "OS::Heat::RandomString"},
        "b": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_resource": "a"}}},
    },
}
LIMITS = Limits()
STATEMENTS = {"sqlite": (5, 15), "postgresql": (5, 17), "mysql": (6, 20)}
"""Dialect -> the most statements of the acceptance, and those from the list of due shards to the end of the pass."""


class Costs:
    """Counts the statements and transactions of this thread; notices are sent by another one."""

    def __init__(self, db: Database) -> None:
        self.statements, self.transactions, self._thread = 0, 0, threading.get_ident()
        event.listen(db.engine, "before_cursor_execute", self._send)
        event.listen(db.engine, "begin", self._begin)

    def _send(self, _connection: object, _cursor: object, statement: str, *_: object) -> None:
        # The beginning of a transaction is no statement with every driver.
        begins = statement.startswith(("BEGIN", "START TRANSACTION", "SET TRANSACTION"))
        self.statements += self._thread == threading.get_ident() and not begins

    def _begin(self, _connection: object) -> None:
        self.transactions += self._thread == threading.get_ident()

    def taken(self) -> tuple[int, int]:
        """Statements and transactions since the last call."""
        costs, self.statements, self.transactions = (self.statements, self.transactions), 0, 0
        return costs


@pytest.fixture
def service(database: Database) -> tuple[StackService, ShardBoard, Costs]:
    return (
        StackService(database, Entropy(), Quotas()),
        ShardBoard("costs", {"database": database, "lease_s": LIMITS.lease_s}),
        Costs(database),
    )


def test_a_tiny_stack_costs_few_statements_and_transactions(
    database: Database, service: tuple[StackService, ShardBoard, Costs]
) -> None:
    stack_service, board, costs = service
    clock = SystemClock()
    cloud = SimulatedCloud(clock.now)
    reconciler = build_engine(database, lambda _project: cloud, clock, Entropy(), LIMITS).reconciler
    accepting, converging = STATEMENTS[database.engine.dialect.name]
    for number in range(2):  # the first one reads the time of the server
        costs.taken()
        stack_id = stack_service.create("p", None, f"tiny{number}", StackRequest(TINY))
        accepted = costs.taken()
        (job,) = board.iterjobs()
        board.claim(job, "w")
        run_pass(reconciler, job)
        converged = costs.taken()
        assert stack_row(database, stack_id).status == "COMPLETE"
    assert accepted[0] <= accepting
    assert converged[0] <= converging
    assert (accepted[1], converged[1]) <= (1, 4)
