"""Log formats of the service's processes, on standard error: text lines or JSON objects.

Names from users and clouds can neither end a line nor control a terminal.
"""

import json
import logging
import time
from typing import Any

from homeostat.observability import log_context
from homeostat.observability.outage_lines import OutageLines
from homeostat.printable import printable, printable_line


class JsonLines(logging.Formatter):
    """A JSON object per line.

    Keys: at, level, logger, process, message; stack, shard and resource where they are known; the traceback if any.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
            **log_context.fields(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class Lines(logging.Formatter):
    """Text lines, with stack, shard and resource at the end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s [%(process)d] %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        about = "".join(f" {name}={value}" for name, value in log_context.fields().items())
        return printable_line(super().formatMessage(record) + (f" ({about.strip()})" if about else ""))

    def formatException(self, ei: Any) -> str:
        return printable(super().formatException(ei))


def start_logging(level: str, as_json: bool) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else Lines())
    handler.addFilter(OutageLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for chatty in ("alembic", "taskflow", "httpx", "httpcore", "uvicorn.access"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, logging.root.level))
