"""TaskFlow's conductor for shards: it claims jobs from the board and runs one pass for each, as a TaskFlow task.

There is no log book: the rows record the work of a job, and show lost jobs as due again (ADR 0006).
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from taskflow import engines, task
from taskflow.conductors.backends import impl_nonblocking
from taskflow.patterns import linear_flow
from taskflow.types.timing import Timeout

from homeostat.convergence.jobs.board import RETRY_S, ShardBoard, ShardJob, give_back
from homeostat.convergence.reconciler import Reconciler
from homeostat.model.errors import Superseded, Transient
from homeostat.model.retry import RetryPolicy
from homeostat.observability import metrics, tracing
from homeostat.observability.log_context import about
from homeostat.store.database import Database
from homeostat.store.shards import leases, shards
from homeostat.store.shards.leases import Lease
from homeostat.store.stacks import action_end, stacks

LOG = logging.getLogger(__name__)
REFRESH_S = 10.0
"""Seconds after which the jobs are listed, whatever due time the board reports."""
SET_ASIDE_S = 30.0
"""Seconds for which a shard is set aside after an internal error."""
DEADLY_RETRY = RetryPolicy(first_s=10.0, longest_s=3600.0)
"""How long a shard is set aside when its passes have killed their workers.

The time doubles with each further crash, so it hardly exceeds the time for which the crashes went on: after a storm of
kills from outside, work soon continues.
"""
DEADLY = (
    "two workers in a row ended in the middle of a pass over it, killed or out of memory: it is tried again later; "
    "update, converge or delete the stack to have it tried at once"
)


class PassTask(task.Task):  # type: ignore[misc]
    """One pass over the shard of a job, as TaskFlow runs it."""

    def __init__(self, reconciler: Reconciler, job: ShardJob, on_end: Callable[[], None]) -> None:
        """Prepare a pass; `on_end` is called at its end, since it may have woken other shards."""
        super().__init__(name="pass")
        self._reconciler = reconciler
        self._job = job
        self._on_end = on_end

    def execute(self) -> None:
        try:
            run_pass(self._reconciler, self._job)
        finally:
            self._on_end()


def run_pass(reconciler: Reconciler, job: ShardJob) -> None:
    """Run a pass over the shard of a claimed job, and handle its errors by who must act.

    Only an internal error, or a pass that kills its workers, sets the shard aside. After other errors the pass is
    repeated soon.

    Raises:
        Transient: The shard could not be given back.
    """
    lease = job.lease
    if lease is None:
        raise ValueError(f"job {job.name} was not claimed")
    where = tracing.span("pass", stack_id=lease.stack_id, shard=lease.number, epoch=lease.epoch)
    with about(stack=lease.stack_id, shard=lease.number), where:
        try:
            _run(reconciler, job, lease)
        except Transient:
            # Raised by giving the shard back only. The lease may still stand, so the next owner would count a crash.
            reconciler.lost.add(lease.stack_id, lease.number)
            raise


def _ended(outcome: str) -> None:
    """Count a pass by its outcome."""
    metrics.passed(outcome)
    tracing.note(outcome=outcome)


def _run(reconciler: Reconciler, job: ShardJob, lease: Lease) -> None:
    # Before anything is loaded: loading itself may kill the worker.
    if lease.crashes_workers:
        _ended("deadly")
        LOG.error("passes over %s ended their workers; the shard is set aside", job.name)
        set_aside_deadly(reconciler.db, lease)
        return
    try:
        reconciler.run(lease)
        _ended("done")
    except Superseded as error:
        _ended("superseded")
        LOG.info("pass over %s dropped: %s", job.name, error)
        give_back(reconciler.db, lease)
    except Transient as error:
        _ended("transient")
        LOG.warning("pass over %s will be tried again: %s", job.name, error)
        give_back(reconciler.db, lease)
    except Exception as error:
        _ended("bug")
        LOG.exception("pass over %s failed; the shard is set aside for %s s", job.name, SET_ASIDE_S)
        set_aside(reconciler.db, lease, error)


def set_aside(db: Database, lease: Lease, error: Exception) -> None:
    """Set a shard aside for a while after an internal error; the deadline of its stack still holds."""
    _set_aside(db, lease, repr(error), f"Timed out; a pass over it fails: {error!r}", SET_ASIDE_S)


def set_aside_deadly(db: Database, lease: Lease) -> None:
    """Set a shard aside whose passes kill their workers, for example by taking too much memory.

    The retries become rarer and rarer. A new revision is tried at once, so the stack can always be deleted.
    """
    times = (lease.crashes - shards.CRASHES_MAX) // leases.CRASH
    _set_aside(db, lease, DEADLY, f"Timed out: {DEADLY}", DEADLY_RETRY.delay_s(times + 1))


def _set_aside(db: Database, lease: Lease, reason: str, late: str, for_s: float) -> None:
    """Set a shard aside, and FAIL its stack if its deadline has passed.

    The deadline is checked here because no pass runs that would check it: otherwise the stack would stay IN_PROGRESS.

    Args:
        lease: Lease of the shard.
        reason: Why, as `explain` shows it.
        late: Reason with which the stack fails.
        for_s: Seconds until the shard is tried again.
    """
    with db.write() as tx:
        now = tx.now()
        stack = stacks.for_update(tx, lease.stack_id)  # before the shard (invariant 5)
        leases.set_aside(tx, lease, reason, now + for_s)
        if stack is not None and stack.deadline is not None and stack.deadline <= now:
            action_end.fail(tx, stack.id, stack.revision, late, now)


class Alarm(Timeout):  # type: ignore[misc]
    """The conductor's pause between two listings of jobs, which ends as soon as there may be a job.

    A nudge or a job's due time ends the pause. So does a timeout, since notices may be lost. A conductor that can claim
    no more jobs queries nothing until one of its passes ends.
    """

    def __init__(
        self, board: ShardBoard, longest_s: Callable[[], float], is_full: Callable[[], bool] = lambda: False
    ) -> None:
        """Prepare pauses.

        Args:
            board: The job board.
            longest_s: Returns the seconds after which the board is queried even without a notice.
            is_full: Returns whether the conductor can claim no more jobs; at the end of a pass it is nudged.
        """
        super().__init__(REFRESH_S)
        self._board = board
        self._longest_s = longest_s
        self._is_full = is_full
        self._wake = threading.Event()

    def nudge(self) -> None:
        """Report that there may be a job."""
        self._wake.set()

    def interrupt(self) -> None:
        """End the pause for good: the conductor stops."""
        super().interrupt()
        self._wake.set()

    def wait(self) -> None:
        """Return when a job can be claimed, when the conductor stops, or after `REFRESH_S`."""
        until = time.monotonic() + REFRESH_S
        while not self.is_stopped() and time.monotonic() < until:
            # Cleared before the query, so that a nudge during the query is not lost.
            self._wake.clear()
            pause_s = REFRESH_S if self._is_full() else self._due_in()
            if pause_s <= 0.0:
                return
            self._wake.wait(pause_s)

    def _due_in(self) -> float:
        longest_s = self._longest_s()
        try:
            return self._board.due_in(longest_s)
        except Transient as error:
            LOG.warning("waiting for work: %s", error)
            return max(longest_s, RETRY_S)


class ShardConductor(impl_nonblocking.NonBlockingConductor):  # type: ignore[misc]
    """TaskFlow's non-blocking conductor, with passes as its jobs."""

    def __init__(
        self,
        name: str,
        board: ShardBoard,
        reconciler: Reconciler,
        passes_max: int,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare a conductor.

        Args:
            name: Name of the worker, as owner of shards.
            board: The job board.
            reconciler: Runs the passes.
            passes_max: Maximum of concurrent passes.
            on_end: Called at the end of each pass.
        """
        alarm = Alarm(board, reconciler.db.notices.longest_wait_s, lambda: len(self._dispatched) >= passes_max)
        super().__init__(name, board, engine="serial", wait_timeout=alarm, max_simultaneous_jobs=passes_max)
        self._reconciler = reconciler
        self._on_end = on_end
        self.nudge = alarm.nudge

    def _engine_from_job(self, job: ShardJob) -> Any:
        flow = linear_flow.Flow(job.name).add(PassTask(self._reconciler, job, self._on_end))
        return engines.load(flow, engine=self._engine)

    def _on_job_done(self, job: ShardJob, fut: Any) -> None:
        try:
            super()._on_job_done(job, fut)
        finally:
            self.nudge()  # not before: only now may it claim another job

    def _listeners_from_job(self, job: ShardJob, engine: Any) -> list[Any]:
        """Return no listeners: TaskFlow's own listener only logs, and passes log important events themselves."""
        return []
