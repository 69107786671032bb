"""Processes of the ring: forked from one that has everything imported, so that a death costs nothing but its effect."""

import ctypes
import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.real.worker"])
PR_SET_PDEATHSIG = 1
PATIENCE_S = 30.0
LOOK_S = 0.005


def end_with_the_tests() -> None:
    """Not even killed tests leave a process behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def told_to_stop() -> threading.Event:
    """Set by SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    return stop


def log_to(path: Path) -> None:
    logging.basicConfig(filename=path, level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(message)s")
    logging.getLogger("taskflow").setLevel(logging.WARNING)


def until(condition: Callable[[], Any], what: str, within_s: float = PATIENCE_S) -> Any:
    """The first true value of `condition`, looked at again and again. Fails when it takes too long."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(LOOK_S)
    raise AssertionError(f"waited {within_s:.0f} s in vain for {what}")
