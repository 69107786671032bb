"""Garbage collection tuned for processes that keep nearly all objects."""

import gc


def collect_rarely() -> None:
    """Have the garbage collector run rarely.

    All modules that a service loads stay, and looking through them again and again takes a tenth of its start. Ten
    thousand rows or definitions hold no cycles, and walking them takes a tenth of a second, in which the process
    answers no request.
    """
    gc.set_threshold(100_000, 20, 100)


def spare_the_collector() -> None:
    """Have the garbage collector run rarely, and skip existing objects.

    Call it in a process of the service after all modules are loaded.
    """
    gc.freeze()
    collect_rarely()
