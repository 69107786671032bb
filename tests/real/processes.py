"""Processes of the ring: forked from one that has everything imported, so that a death costs nothing but its effect."""

import ctypes
import logging
import multiprocessing
import signal
import threading
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.real.worker"])
PR_SET_PDEATHSIG = 1


def end_with_the_tests() -> None:
    """Not even killed tests leave a process behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def stop_on_sigterm() -> threading.Event:
    """Set by SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    return stop


def log_to(path: Path) -> None:
    logging.basicConfig(filename=path, level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(message)s")
    logging.getLogger("taskflow").setLevel(logging.WARNING)
