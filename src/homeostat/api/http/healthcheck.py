"""The health check of an API process, for load balancers: 200 while the process serves, else 503 with a reason."""

import asyncio
import logging
from pathlib import Path

from anyio import CapacityLimiter, to_thread
from sqlalchemy import text
from starlette.responses import PlainTextResponse, Response

from homeostat.model.errors import Transient
from homeostat.model.status import DRAINED
from homeostat.store.database import Database

LOG = logging.getLogger(__name__)
PATIENCE_S = 3.0
"""Seconds within which the database has to answer: less than load balancers wait."""
THREADS = 2
"""Threads for database checks, separate from the threads of requests, which may all be waiting for the database."""
METHODS = ["GET", "HEAD", "OPTIONS"]


class Health:
    """Answers whether a process can serve.

    Args:
        drain_file: While this file exists, the answer is 503; None to disable.
        patience_s: Seconds within which the database has to answer.
    """

    def __init__(self, db: Database, drain_file: Path | None = None, patience_s: float = PATIENCE_S) -> None:
        self._db = db
        self._drain_file = drain_file
        self._patience_s = patience_s
        self._threads: CapacityLimiter | None = None
        self._look: asyncio.Task[str] | None = None

    async def answer(self) -> Response:
        """Return the answer to a health check, without waiting for requests and without writing."""
        if self._drain_file is not None and self._drain_file.exists():
            return _answer(503, DRAINED)
        # Concurrent health checks share a database check. So a client that polls permanently cannot use up the threads:
        # load balancers would get no answer and consider this process dead.
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(self._find_trouble())
        trouble = await asyncio.shield(self._look)
        return _answer(503, trouble) if trouble else _answer(200, "OK")

    async def _find_trouble(self) -> str:
        """Query the database; return the problem, or ""."""
        if self._threads is None:
            self._threads = CapacityLimiter(THREADS)  # belongs to the event loop that is running now
        try:
            async with asyncio.timeout(self._patience_s):
                await to_thread.run_sync(self._ask, limiter=self._threads, abandon_on_cancel=True)
        except TimeoutError:
            return f"the database did not answer within {self._patience_s:g} s"
        except Transient as error:
            LOG.warning("not well: %s", error)
            return str(error)
        return ""

    def _ask(self) -> None:
        with self._db.read() as tx:
            tx.execute(text("SELECT 1"))


def _answer(code: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n" if code != 200 else text, code, {"Retry-After": "1"} if code != 200 else None)
