"""The cloud of `Example::File`: it is asked for many files at once, and answers for each.

A file is kept as `<id>.json`, where the id follows from the token of its creation. So a creation asked for twice
makes one file, and `find` tells of it after a crash.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from example_files import directory
from homeostat.clouds.port import Answer, Change, ChangeNotice, Creation, Operation
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.observed import Observation, Presence


class FileCloud:
    name = "example-files"
    kinds = frozenset({"example_file"})
    listing_lag_s = 0.0

    def __init__(self, root: Path, now: Callable[[], float] = time.time) -> None:
        self._root = root
        self._now = now

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        return [self._look(handle) for handle in handles]

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        return [self._look(_id_of(token)) for token in tokens]

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        return [name if self._path(name).exists() else None for name in names]

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        return [self._write(_id_of(each.token), each.spec) for each in intents]

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        return [
            self._write(each.handle, each.spec) if self._path(each.handle).exists() else self._look(each.handle)
            for each in changes
        ]

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        for handle in handles:
            self._path(handle).unlink(missing_ok=True)
        return list(self.observe(kind, handles))

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        return [Rejected("NotSupported", f"{each.verb} of a file is not supported.") for each in operations]

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        return iter(())

    def close(self) -> None:
        """Nothing is held."""

    def _path(self, handle: str) -> Path:
        return self._root / f"{handle}.json"

    def _look(self, handle: str) -> Observation:
        path = self._path(handle)
        try:
            kept = json.loads(path.read_text())
        except FileNotFoundError:
            return Observation(Presence.ABSENT, handle, seen_at=self._now(), reason="there is no such file")
        size = len(kept.get("content", "").encode())
        seen = {**kept, "id": handle, "status": "written", "path": str(path), "size": size}
        return Observation(Presence.PRESENT, handle, seen, self._now())

    def _write(self, handle: str, spec: Mapping[str, Any]) -> Answer:
        try:
            self._path(handle).write_text(json.dumps(dict(spec)))
        except OSError as error:
            return Terminal(f"the file cannot be written: {error}")
        return self._look(handle)


def _id_of(token: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"example-file:{token}"))


def cloud(project: str) -> FileCloud:
    """What the entry point names: called once for each project."""
    root = directory() / project
    root.mkdir(exist_ok=True)
    return FileCloud(root)
