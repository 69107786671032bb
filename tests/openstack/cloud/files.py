"""Files that processes share."""

import contextlib
import fcntl
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Sections = dict[str, dict[str, object]]
"""A file of configuration: section, key, value."""


def replace(path: Path, value: object) -> None:
    """Write JSON so that no reader ever sees half of it."""
    new = path.with_name(path.name + ".tmp")
    new.write_text(json.dumps(value, indent=2))
    new.replace(path)


def read_json(path: Path, default: Any) -> Any:
    """What is in the file, or the default where there is no file."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return default


def write_ini(path: Path, sections: Mapping[str, Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for section, values in sections.items():
        lines += [f"[{section}]", *(f"{key} = {value}" for key, value in values.items()), ""]
    path.write_text("\n".join(lines) + "\n")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the others wait."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
