"""What the service's processes log, on standard error: lines for people, or JSON objects."""

import json
import logging
import time


class JsonLines(logging.Formatter):
    """One object a line: at, level, logger, process, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def start_logging(level: str, as_json: bool) -> None:
    handler = logging.StreamHandler()
    lines = logging.Formatter("%(asctime)s %(levelname)-7s [%(process)d] %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if as_json else lines)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for chatty in ("alembic", "taskflow", "httpx", "httpcore", "uvicorn.access"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, logging.root.level))
