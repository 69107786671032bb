"""What the service's processes log, on standard error: lines for people, or JSON objects."""

import json
import logging
import time

from homeostat.observability import log_context


class JsonLines(logging.Formatter):
    """One object a line: at, level, logger, process, message; stack, shard and resource where they are known, and the
    traceback if there is one."""

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
    """For people: what a line is about stands at its end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s [%(process)d] %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        about = "".join(f" {name}={value}" for name, value in log_context.fields().items())
        return super().formatMessage(record) + (f" ({about.strip()})" if about else "")


def start_logging(level: str, as_json: bool) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else Lines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for chatty in ("alembic", "taskflow", "httpx", "httpcore", "uvicorn.access"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, logging.root.level))
