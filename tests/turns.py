"""Watches what is done while a write turn is held: on SQLite everybody who writes waits for its end."""

import contextlib
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from homeostat.desired import compiling
from homeostat.store.database import Database
from homeostat.store.encryption.encrypted_cells import Keyring
from homeostat.store.schema import cells

WRITTEN_MAX = 8_000
"""Characters that may be written out, or encrypted, in one turn: what is known only there is small."""


class _Turn(threading.local):
    """Of this thread. held — how many it has; written — characters in them."""

    held = 0
    written = 0


@contextlib.contextmanager
def watched(report: Callable[[str], None], written_max: int = WRITTEN_MAX) -> Iterator[None]:
    """Tell, with the place, of each template that is compiled in a write turn, and when more is written out than may
    be."""
    turn = _Turn()
    plain = Database.write

    @contextlib.contextmanager
    def write(db: Database) -> Iterator[Any]:
        with plain(db) as tx:
            turn.held, turn.written = turn.held + 1, 0
            try:
                yield tx
            finally:
                turn.held -= 1

    def written(text: Any) -> None:
        before, turn.written = turn.written, turn.written + len(text)
        if before <= written_max < turn.written:
            report(f"{turn.written} characters are written out in a write turn\n{_place()}")

    def watching(function: Callable[..., Any], *, writes: bool) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            made = function(*arguments, **named)
            if turn.held and writes:
                written(made)
            elif turn.held:
                report(f"{function.__name__} is called in a write turn\n{_place()}")
            return made

        return watched

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "write", write)
        patch.setattr(cells, "orjson", _Shim(watching(orjson.dumps, writes=True)))
        patch.setattr(Keyring, "encrypt", watching(Keyring.encrypt, writes=True))
        for name in ("compile_template", "parse_template"):
            patch.setattr(compiling, name, watching(getattr(compiling, name), writes=False))
        yield


class _Shim:
    """`orjson`, with another `dumps`."""

    def __init__(self, dumps: Callable[..., Any]) -> None:
        self.dumps = dumps

    def __getattr__(self, name: str) -> Any:
        return getattr(orjson, name)


def _place() -> str:
    """Where this is called from, in the service."""
    return "".join(line for line in traceback.format_stack() if "homeostat/" in line)
