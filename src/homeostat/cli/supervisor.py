"""Runs the processes of a service: starts them, starts again what dies, and lets none outlive it."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from homeostat.cli.problems import USAGE, Problem

LOG = logging.getLogger(__name__)
STOPPING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
STEADY_S = 10.0
"""A child that has lived this long starts again at once when it dies; one that has not, later and later."""
DELAY_S_MAX = 10.0
GRACE_S = 15.0
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True)
class Child:
    """One process of the service. deaths — in a row, each soon after its start; due_at — of the next start."""

    name: str
    arguments: Sequence[str]
    running: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    deaths: int = 0
    due_at: float = 0.0


class Supervisor:
    """Takes: commands — arguments of `python -m homeostat` by name of the child; environment — more variables for them;
    changed — told of the process ids whenever they change; sockets — descriptors that children inherit."""

    def __init__(
        self,
        commands: Mapping[str, Sequence[str]],
        environment: Mapping[str, str],
        changed: Callable[[Mapping[str, int]], None],
        sockets: Sequence[int] = (),
    ) -> None:
        self._children = [Child(name, arguments) for name, arguments in commands.items()]
        self._environment = {**os.environ, **environment}
        self._changed = changed
        self._sockets = tuple(sockets)

    def run(self) -> None:
        """Until told to stop. Fails: Problem when a child finds the settings wrong, which no new start would mend."""
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

    def _start(self, child: Child) -> "subprocess.Popen[bytes]":
        parent = os.getpid()

        def before_exec() -> None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)  # the supervisor died before its death could be noticed
            signal.pthread_sigmask(signal.SIG_SETMASK, ())

        return subprocess.Popen(
            [sys.executable, "-m", "homeostat", *child.arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            pass_fds=self._sockets,
            preexec_fn=before_exec,
            process_group=0,  # Ctrl-C is for the supervisor, which then stops its children in order
        )

    def _wait_s(self) -> float:
        """Until the next start is due. A second at most, in case a SIGCHLD was merged with another."""
        due = [child.due_at for child in self._children if child.running is None]
        return max(0.0, min([1.0, *(at - time.monotonic() for at in due)]))

    def _collect(self) -> None:
        for child in self._children:
            if child.running is None or child.running.poll() is None:
                continue
            code, pid = child.running.returncode, child.running.pid
            child.running = None
            if code == USAGE:
                raise Problem(f"{child.name} cannot run with these settings; what it said is above")
            steady = time.monotonic() - child.started_at >= STEADY_S
            child.deaths = 0 if steady else child.deaths + 1
            delay_s = min(DELAY_S_MAX, 0.1 * 2**child.deaths) if child.deaths > 1 else 0.0
            child.due_at = time.monotonic() + delay_s
            LOG.warning("%s (process %s) %s; it starts again in %.1f s", child.name, pid, _ended(code), delay_s)

    def _stop(self) -> None:
        """Ask all, wait, and kill who stays."""
        running = [child.running for child in self._children if child.running is not None]
        for each in running:
            each.terminate()
        deadline = time.monotonic() + GRACE_S
        for each in running:
            try:
                each.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                LOG.warning("process %s does not stop; it is killed", each.pid)
                each.kill()
                each.wait()


def _ended(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
