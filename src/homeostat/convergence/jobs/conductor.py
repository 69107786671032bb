"""TaskFlow's conductor for shards: claims jobs from the board and runs one pass for each as a TaskFlow task.

No log book is kept: what a job has done is in the rows, and a job that is lost is claimed again from them.
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

from homeostat.convergence.jobs.board import ShardBoard, ShardJob, give_back
from homeostat.convergence.reconciler import Reconciler
from homeostat.model.errors import Superseded, Transient
from homeostat.observability import metrics, tracing
from homeostat.observability.log_context import about
from homeostat.store.database import Database
from homeostat.store.shards import shards
from homeostat.store.shards.shards import Lease
from homeostat.store.stacks import stacks

LOG = logging.getLogger(__name__)
REFRESH_S = 10.0
"""After so long the jobs themselves are looked at, whatever the board says of when the next one is due."""
SET_ASIDE_S, SET_ASIDE_S_MAX = 30.0, 3600.0
DEADLY_S = 10.0
"""The first time that passes have ended their workers. Doubled with each crash, it is hardly longer than they went on
for: after a storm of kills all goes on."""
DEADLY = (
    "two workers in a row ended in the middle of a pass over it, killed or out of memory: it is tried again later; "
    "update, converge or delete the stack to have it tried at once"
)


class PassTask(task.Task):  # type: ignore[misc]
    """One pass over the shard of a job. done — is called at its end: it may have woken other shards."""

    def __init__(self, passes: Reconciler, job: ShardJob, done: Callable[[], None]) -> None:
        super().__init__(name="pass")
        self._passes = passes
        self._job = job
        self._done = done

    def execute(self) -> None:
        try:
            run_pass(self._passes, self._job)
        finally:
            self._done()


def run_pass(passes: Reconciler, job: ShardJob) -> None:
    """Run it, and sort what went wrong by who must act. Only bugs of ours set the shard aside."""
    lease = job.lease
    if lease is None:
        raise ValueError(f"job {job.name} was not claimed")
    where = tracing.span("pass", stack_id=lease.stack_id, shard=lease.number, epoch=lease.epoch)
    with about(stack=lease.stack_id, shard=lease.number), where:
        try:
            _run(passes, job, lease)
        except Transient:  # of giving the shard back
            passes.lost.add(lease.stack_id, lease.number)
            raise


def _ended(outcome: str) -> None:
    metrics.passed(outcome)
    tracing.note(outcome=outcome)


def _run(passes: Reconciler, job: ShardJob, lease: Lease) -> None:
    if lease.is_deadly:
        _ended("deadly")
        LOG.error("passes over %s ended their workers; the shard is set aside", job.name)
        set_aside_deadly(passes.db, lease)
        return
    try:
        passes.run(lease)
        _ended("done")
    except Superseded as error:
        _ended("superseded")
        LOG.info("pass over %s dropped: %s", job.name, error)
        give_back(passes.db, lease)
    except Transient as error:
        _ended("transient")
        LOG.warning("pass over %s will be tried again: %s", job.name, error)
        give_back(passes.db, lease)
    except Exception as error:
        _ended("bug")
        LOG.exception("pass over %s failed; the shard is set aside for %s s", job.name, SET_ASIDE_S)
        set_aside(passes.db, lease, error)


def set_aside(db: Database, lease: Lease, error: Exception) -> None:
    """A bug of ours stops one shard for a while, not its stack's deadline: no stack is in progress for ever."""
    _set_aside(db, lease, repr(error), f"Timed out; a pass over it fails: {error!r}", SET_ASIDE_S)


def set_aside_deadly(db: Database, lease: Lease) -> None:
    """What ends its workers, by what it takes of memory say, is tried again later and later; a new revision, the
    deletion of the stack for one, is tried at once."""
    times = (lease.crashes - shards.CRASHES_MAX) // shards.CRASH
    _set_aside(db, lease, DEADLY, f"Timed out: {DEADLY}", min(DEADLY_S * 2.0**times, SET_ASIDE_S_MAX))


def _set_aside(db: Database, lease: Lease, reason: str, late: str, for_s: float) -> None:
    """late — why the stack fails when its time is over."""
    with db.write() as tx:
        now = db.now_of(tx)
        stack = stacks.for_update(db, tx, lease.stack_id)
        shards.set_aside(tx, lease, reason, now + for_s)
        if stack is not None and stack.deadline is not None and stack.deadline <= now:
            stacks.fail(db, tx, stack.id, stack.revision, late, now)


class Alarm(Timeout):  # type: ignore[misc]
    """Wakes the conductor as soon as there is a job: at once when somebody says that there may be one, when one becomes
    due, and from time to time, since what is said may be lost.

    Takes: longest_s — gives the seconds after which the board is looked at whatever was said.
    """

    def __init__(self, board: ShardBoard, longest_s: Callable[[], float]) -> None:
        super().__init__(REFRESH_S)
        self._board = board
        self._longest_s = longest_s
        self._news = threading.Event()

    def nudge(self) -> None:
        """There may be a job."""
        self._news.set()

    def interrupt(self) -> None:
        super().interrupt()
        self._news.set()

    def wait(self) -> None:
        until = time.monotonic() + REFRESH_S
        while not self.is_stopped() and time.monotonic() < until:
            self._news.clear()
            pause_s = self._due_in()
            if pause_s <= 0.0:
                return
            self._news.wait(pause_s)

    def _due_in(self) -> float:
        longest_s = self._longest_s()
        try:
            return self._board.due_in(longest_s)
        except Transient as error:
            LOG.warning("waiting for work: %s", error)
            return longest_s


class ShardConductor(impl_nonblocking.NonBlockingConductor):  # type: ignore[misc]
    """Runs up to `passes_max` passes side by side. done — is called at the end of each."""

    def __init__(
        self, name: str, board: ShardBoard, passes: Reconciler, passes_max: int, done: Callable[[], None] = lambda: None
    ) -> None:
        alarm = Alarm(board, passes.db.notices.longest_wait_s)
        super().__init__(name, board, engine="serial", wait_timeout=alarm, max_simultaneous_jobs=passes_max)
        self._passes = passes
        self._done = done
        self.nudge = alarm.nudge

    def _engine_from_job(self, job: ShardJob) -> Any:
        flow = linear_flow.Flow(job.name).add(PassTask(self._passes, job, self._ended))
        return engines.load(flow, engine=self._engine)

    def _ended(self) -> None:
        self.nudge()
        self._done()

    def _listeners_from_job(self, job: ShardJob, engine: Any) -> list[Any]:
        return []
