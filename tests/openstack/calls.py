"""What this process asks of an OpenStack, counted as its HTTP library logs it."""

import logging
from collections import Counter
from collections.abc import Iterable


class Calls(logging.Handler):
    """The requests that this process sends meanwhile: method, and port with path, of each."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.sent: list[tuple[str, str]] = []
        self._log = logging.getLogger("urllib3.connectionpool")

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, tuple) and len(record.args) == 8:
            _, _, port, method, path, *_ = record.args
            self.sent.append((str(method), f"{port}{path}"))

    def __enter__(self) -> "Calls":
        self._before = (self._log.level, self._log.propagate)
        self._log.setLevel(logging.DEBUG)
        self._log.propagate = False
        self._log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._log.removeHandler(self)
        self._log.level, self._log.propagate = self._before
        self._log.setLevel(self._log.level)

    @property
    def mutating(self) -> Counter[str]:
        """How often what was changed; a login changes nothing."""
        return _counted(each for each in self.sent if not _looks(*each))

    @property
    def reading(self) -> Counter[str]:
        """How often what was read; logins, and the discovery of versions, included."""
        return _counted(each for each in self.sent if _looks(*each))


def _looks(method: str, path: str) -> bool:
    return method in ("GET", "HEAD") or path.endswith("/auth/tokens")


def _counted(sent: Iterable[tuple[str, str]]) -> Counter[str]:
    return Counter(f"{method} {_plain(path)}" for method, path in sent)


def _plain(path: str) -> str:
    """Return a path without its version, ids and query."""
    parts = path.partition("?")[0].split("/")[1:]
    return "/" + "/".join("*" if len(each) > 30 else each for each in parts[1:])
