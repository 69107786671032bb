"""Limits log lines about a server that does not answer to a line per minute, instead of a line per request."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from homeostat.model.errors import Outage, in_detail

EVERY_S = 60.0
"""Shortest time between two lines about the same outage, in seconds."""


@dataclass(slots=True)
class _Told:
    """The last line about an outage: its time (seconds since the epoch), and the number of records left out since."""

    at: float
    left_out: int = 0


class OutageLines(logging.Filter):
    """Filter of a handler for records with an `Outage`, in their arguments or as the cause of their exception.

    The first record of a minute becomes a warning with the details for operators, without a traceback, since an outage
    is no fault of the code. Further records are dropped, and counted in the next line.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, _Told] = {}
        """Message of an outage -> its last line. As few as kinds of servers."""

    def filter(self, record: logging.LogRecord) -> bool:
        outage = next(_outages(record), None)
        if outage is None:
            return True
        told = self._told.get(str(outage))
        if told is not None and 0.0 <= record.created - told.at < EVERY_S:
            told.left_out += 1
            return False
        left_out = told.left_out if told is not None else 0
        self._told[str(outage)] = _Told(record.created)
        more = f" ({left_out} lines about it were left out)" if left_out else ""
        record.msg, record.args = f"%s{more}", (in_detail(outage),)
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        record.exc_info = record.exc_text = None
        return True


def _outages(record: logging.LogRecord) -> Iterator[Outage]:
    raised = [record.exc_info[1]] if record.exc_info else []
    for error in (*(record.args if isinstance(record.args, tuple) else ()), *raised):
        while isinstance(error, BaseException):
            if isinstance(error, Outage):
                yield error
            error = error.__cause__ or error.__context__
