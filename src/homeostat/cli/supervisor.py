"""Runs the processes of a service: starts them, restarts dead ones, and lets none outlive the supervisor.

A child is a fork of this process with all modules already in memory: a fresh interpreter takes seconds of CPU time to
load them, during which no work would be done if all workers have died. Each child has its own process name
(`homeostat-worker`), and inherits only the open files in `sockets`.
"""

import contextlib
import ctypes
import logging
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from homeostat.cli.errors import USAGE, Problem
from homeostat.model.retry import RetryPolicy

LOG = logging.getLogger(__name__)
STOPPING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
RESTART = RetryPolicy(first_s=0.4, longest_s=10.0, calm_s=10.0)
"""A child that has lived for `calm_s` is restarted at once when it dies; otherwise, with growing delays."""
GRACE_S = 15.0
"""Time that children get to stop before they are killed."""
_LOOK_S = 0.02
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_LIBC = ctypes.CDLL(None, use_errno=True)


Run = Callable[[Sequence[str]], int]
"""Run a `homeostat` command in the calling process; return the exit code."""


class Process:
    """A forked child.

    Attributes:
        returncode: None while the process runs; the negative number of the signal that killed it.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def ends_before(self, deadline: float) -> bool:
        """Wait until the deadline, on the monotonic clock; return whether the process has ended."""
        while self.poll() is None:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S)
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process still runs."""
        # The id cannot have been reused: `poll`, in this thread, is the only place that collects the process.
        if self.poll() is None:
            os.kill(self.pid, number)


@dataclass(slots=True)
class Child:
    """A process of the service.

    Attributes:
        deaths: Consecutive deaths, each soon after a start.
        due_at: Time of the next start.
    """

    name: str
    arguments: Sequence[str]
    running: "Process | None" = None
    started_at: float = 0.0
    deaths: int = 0
    due_at: float = 0.0


class Supervisor:
    """Supervises the processes of a service.

    Args:
        run: Run in a child with its arguments.
        commands: Name of a child -> arguments.
        environment: Additional variables for children.
        changed: Called with the process ids whenever they change.
        sockets: Descriptors that children inherit.
    """

    def __init__(
        self,
        run: Run,
        commands: Mapping[str, Sequence[str]],
        environment: Mapping[str, str],
        changed: Callable[[Mapping[str, int]], None],
        sockets: Sequence[int] = (),
    ) -> None:
        self._children = [Child(name, arguments) for name, arguments in commands.items()]
        self._run = run
        self._environment = dict(environment)
        self._changed = changed
        self._sockets = tuple(sockets)

    def run(self) -> None:
        """Run until a signal.

        Raises:
            Problem: A child rejects the settings, so a restart would not help.
        """
        watched = STOPPING | {signal.SIGCHLD}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
        try:
            while True:
                self._start_due()
                received = signal.sigtimedwait(watched, self._wait_s())
                if received is not None and received.si_signo in STOPPING:
                    LOG.info("stopping on %s", signal.Signals(received.si_signo).name)
                    return
                self._collect()
        finally:
            self._stop()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start_due(self) -> None:
        now = time.monotonic()
        due = [child for child in self._children if child.running is None and child.due_at <= now]
        for child in due:
            child.running = self._start(child)
            child.started_at = now
            LOG.info("%s is process %s", child.name, child.running.pid)
        if due:
            self._changed({child.name: child.running.pid for child in self._children if child.running})

    def _start(self, child: Child) -> Process:
        parent = os.getpid()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # buffered output would be written twice
        pid = os.fork()
        if pid:
            return Process(pid)
        code = 1
        try:
            self._become(child, parent)
            code = self._run(child.arguments)
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 1
        except BaseException:  # noqa: BLE001 - the child must not continue as a second supervisor
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _become(self, child: Child, parent: int) -> None:
        """Detach the child from the supervisor's resources."""
        # The kernel kills this child when the supervisor dies, even by SIGKILL.
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # the supervisor died before its death could be noticed
        _LIBC.prctl(_PR_SET_NAME, f"homeostat-{child.name}"[:15].encode(), 0, 0, 0)
        os.setpgid(0, 0)  # Ctrl-C is for the supervisor, which then stops its children in order
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        _close_all_but({0, 1, 2, *self._sockets})
        os.environ.update(self._environment)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _wait_s(self) -> float:
        """Return the time until the next start is due, at most a second, since SIGCHLD signals may be merged."""
        due = [child.due_at for child in self._children if child.running is None]
        return max(0.0, min([1.0, *(at - time.monotonic() for at in due)]))

    def _collect(self) -> None:
        for child in self._children:
            code = None if child.running is None else child.running.poll()
            if child.running is None or code is None:
                continue
            pid = child.running.pid
            child.running = None
            if code == USAGE:
                raise Problem(f"{child.name} cannot run with these settings; its message is above")
            steady = RESTART.is_calm(time.monotonic() - child.started_at)
            child.deaths = 0 if steady else child.deaths + 1
            delay_s = RESTART.delay_after_s(child.deaths)
            child.due_at = time.monotonic() + delay_s
            LOG.warning("%s (process %s) %s; it starts again in %.1f s", child.name, pid, _ended(code), delay_s)

    def _stop(self) -> None:
        """Send SIGTERM to all children, wait, and kill the rest."""
        running = [child.running for child in self._children if child.running is not None]
        for process in running:
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for process in running:
            if not process.ends_before(deadline):
                LOG.warning("process %s does not stop; it is killed", process.pid)
                process.signal(signal.SIGKILL)
                process.ends_before(math.inf)


def _close_all_but(open_: set[int]) -> None:
    begin = 0
    for descriptor in sorted(open_):
        if begin < descriptor:  # an empty range means everything to some kernels
            os.closerange(begin, descriptor)
        begin = descriptor + 1
    os.closerange(begin, os.sysconf("SC_OPEN_MAX"))


def _ended(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
