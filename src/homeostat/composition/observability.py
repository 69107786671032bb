"""Traces and metrics of a process."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from homeostat.cli.errors import Problem
from homeostat.cli.settings import ServiceSettings

if TYPE_CHECKING:
    from homeostat.store.database import Database


@contextlib.contextmanager
def traced(settings: ServiceSettings, process: str) -> Iterator[None]:
    """Record traces while the block runs, if enabled in the settings; send remaining traces at its end."""
    if not settings.traces:
        yield
        return
    from homeostat.observability import tracing

    tracing.start(process)
    try:
        yield
    finally:
        tracing.stop()


def serve_metrics(db: "Database", host: str, port: int) -> None:
    """Serve metrics on a separate port.

    Raises:
        Problem: The port cannot be used.
    """
    from homeostat.observability import prometheus

    try:
        prometheus.serve(db, host, port)
    except OSError as error:
        raise Problem(f"cannot show metrics on {host}:{port}, choose another --metrics-port: {error}") from error
