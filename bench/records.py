"""The files in bench/results: figures, each with the commit, the time and the load it was measured at.

A figure is old once the code that it measures differs from that of its commit. Comments and docstrings do not count.
"""

import ast
import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from bench.figures import Figure, load, machine

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"


class NoHistory(Exception):
    """This folder has no git history, or one without the commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Figure):
    """A figure of a file.

    Attributes:
        bench: Name of the benchmark.
        commit: Commit of the code; "" for code that was not committed.
        date: Time of the measurement, UTC.
        load: Processes that wanted to run in the minute before.
    """

    bench: str
    commit: str = ""
    date: str
    load: float


def row_of(figure: Figure, bench: str, code: tuple[str, ...]) -> Row:
    """Return the figure as it was measured now."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Row(**asdict(figure), bench=bench, commit=committed(code), date=now, load=load())


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@cache
def rows() -> list[Row]:
    """Return the figures of all files, the newest last."""
    lines = (each for path in sorted(RESULTS.glob("*.jsonl")) for each in lines_of(path))
    return sorted((Row(**each) for each in lines if "name" in each), key=lambda row: row.date)


def machines() -> list[Mapping[str, Any]]:
    """Return the machines that were measured."""
    lines = (each for path in sorted(RESULTS.glob("*.jsonl")) for each in lines_of(path))
    return [each["machine"] for each in lines if "machine" in each]


def head(settings: Mapping[str, str]) -> str:
    """Return the first line of a run."""
    return json.dumps({**machine(), "settings": settings})


def write(bench: str, first: str, measured: Iterable[Row]) -> None:
    """Add a run to the file of its benchmark, in place of older figures of the same name, size and database."""
    path = RESULTS / f"{bench}.jsonl"
    new = [json.loads(row.line()) for row in measured]
    names = {_key(each) for each in new}
    runs: list[list[dict[str, Any]]] = []
    for each in lines_of(path) if path.exists() else []:
        if "machine" in each:
            runs.append([each])
        elif _key(each) not in names:
            runs[-1].append(each)
    runs = [*(run for run in runs if len(run) > 1), [json.loads(first), *new]]
    path.write_text("".join(json.dumps(each) + "\n" for run in runs for each in run))


def _key(each: Mapping[str, Any]) -> tuple[str, int, str]:
    return each["name"], each["n"], each["database"]


# -- the code of a figure ----------------------------------------------------------------------------------------------


@cache
def committed(code: tuple[str, ...]) -> str:
    """Return the newest commit; "" when this code differs from it, or there is none."""
    try:
        return "" if is_changed("HEAD", code) else _git("rev-parse", "--short=8", "HEAD").strip()
    except NoHistory:
        return ""


@cache
def is_known(commit: str) -> bool:
    """Return whether the history of this folder has a commit."""
    try:
        _git("cat-file", "-e", f"{commit}^{{commit}}")
    except NoHistory:
        return False
    return True


@cache
def is_changed(commit: str, code: tuple[str, ...]) -> bool:
    """Compare files and folders with those of a commit.

    Raises:
        NoHistory: The commit is not known here.
    """
    names = _git("diff", "--name-only", "--no-renames", commit, "--", *code).splitlines()
    return any(_differs(commit, name) for name in names)


@cache
def _differs(commit: str, name: str) -> bool:
    if not name.endswith(".py") or not (ROOT / name).exists():
        return True
    try:
        before = _git("show", f"{commit}:{name}")
    except NoHistory:  # the file is new
        return True
    return _statements(before) != _statements((ROOT / name).read_text(encoding="utf-8"))


def _statements(text: str) -> str:
    return ast.dump(_Bare().visit(ast.parse(text)))


class _Bare(ast.NodeTransformer):
    """Removes strings that are statements of their own."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoHistory(*arguments) from error
