"""Garbage collection tuned to processes that keep nearly all that they make."""

import gc


def collect_rarely() -> None:
    """Have the garbage collector run rarely.

    All modules that a service loads stay, and looking through them again and again takes a tenth of its start. Ten
    thousand rows or definitions hold no cycles, and walking them takes a tenth of a second, in which the process
    answers no request.
    """
    gc.set_threshold(100_000, 20, 100)


def spare_the_collector() -> None:
    """Have the garbage collector run rarely, and skip what exists already.

    To be called in a process of the service once everything that stays has been loaded.
    """
    gc.freeze()
    collect_rarely()
