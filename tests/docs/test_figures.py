"""Figures are shown with their code's age, and the bar notices operations that cost more."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bench import bar, records, report
from bench.benchmarks import BENCHES
from bench.figures import Figure
from bench.targets import COSTS, TARGETS, Target

CODE = '"""About."""\n\n\ndef act() -> int:\n    """Act."""\n    return 1  # one\n'
CACHED = (records.committed, records.is_changed, records.is_known, records._differs)
TARGET = Target("Acts", "act.cpu", 2, 1)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A history of one commit, with a package and a file of data."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "act.py").write_text(CODE)
    (tmp_path / "package" / "words.json").write_text("{}\n")
    monkeypatch.setattr(records, "ROOT", tmp_path)
    for each in CACHED:
        each.cache_clear()
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    yield tmp_path
    for each in CACHED:
        each.cache_clear()


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


@pytest.mark.parametrize(
    ("file", "change", "changed"),
    [
        ("act.py", lambda text: text, False),
        ("act.py", lambda text: text.replace("# one", "# the first number"), False),
        ("act.py", lambda text: text.replace("About", "Of").replace("Act.", "Act once."), False),
        ("act.py", lambda text: text.replace("return 1", "return 2"), True),
        ("words.json", lambda text: "[]\n", True),
    ],
    ids=["nothing", "a comment", "docstrings", "code", "data"],
)
def test_a_figure_is_old_once_its_code_has_changed(
    repository: Path, file: str, change: Callable[[str], str], changed: bool
) -> None:
    path = repository / "package" / file
    path.write_text(change(path.read_text()))
    assert records.is_changed("HEAD", ("package",)) is changed
    assert (records.committed(("package",)) == "") is changed


def test_other_packages_make_no_figure_old(repository: Path) -> None:
    path = repository / "package" / "act.py"
    path.write_text("")
    assert not records.is_changed("HEAD", ("package/words.json",))


def test_a_folder_without_the_commit_says_so(repository: Path, tmp_path: Path) -> None:
    assert not records.is_known("00c0ffee")
    with pytest.raises(records.NoHistory):
        records.is_changed("00c0ffee", ("package",))


def _row(value: float, commit: str = "HEAD") -> records.Row:
    return records.Row(
        TARGET.figure, value, "CPU s", 1, bench="act", commit=commit, date="2026-12-01T00:00:00+00:00", load=3.0
    )


@pytest.mark.parametrize(
    ("row", "code", "words"),
    [
        (_row(1), CODE, "1 CPU s at load 3: reached"),
        (_row(3), CODE, "3 CPU s at load 3: **missed** by a factor of 1.50"),
        (_row(1), "", "unmeasured since 2026-12-01 (`HEAD`), then 1 CPU s"),
        (_row(1, ""), CODE, "unmeasured of 2026-12-01, with code that was not committed, then 1 CPU s"),
        (_row(1, "00c0ffee"), CODE, "1 CPU s at 2026-12-01 (`00c0ffee`), which this checkout does not know"),
        (None, CODE, "unmeasured"),
    ],
    ids=["reached", "missed", "old", "not committed", "no history", "none"],
)
def test_the_verdict_about_old_code_is_none(
    repository: Path, monkeypatch: pytest.MonkeyPatch, row: records.Row | None, code: str, words: str
) -> None:
    (repository / "package" / "act.py").write_text(code)
    monkeypatch.setitem(BENCHES, "act", replace(BENCHES["rows"], code=("package",)))
    monkeypatch.setattr(report, "rows", lambda: [row] if row else [])
    report._newest.cache_clear()
    assert report._measured(TARGET) == words
    report._newest.cache_clear()


def test_a_new_run_replaces_older_figures_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    first = '{"machine": {"cpu": "one"}}'
    records.write("act", first, [_row(1), replace(_row(5), n=2)])
    records.write("act", first.replace("one", "two"), [_row(3)])
    records.write("act", first.replace("one", "three"), [_row(4)])
    lines = records.lines_of(tmp_path / "act.jsonl")
    assert [each.get("value", each.get("machine")) for each in lines] == [{"cpu": "one"}, 5, {"cpu": "three"}, 4]


def test_every_result_has_a_benchmark_and_every_benchmark_code_that_exists() -> None:
    assert {row.bench for row in records.rows()} <= BENCHES.keys()
    assert [path for bench in BENCHES.values() for path in bench.code if not (records.ROOT / path).exists()] == []


def test_a_size_of_the_table_is_measured() -> None:
    """Each cost is of a size that `make bench` measures: of a stack, or of one of its lists."""
    sizes = {n for bench in BENCHES.values() if bench.usual for n in bench.sizes} | {1, 300}
    assert {cost.n for cost in COSTS} <= sizes
    assert len({(each.figure, each.n, each.database) for each in TARGETS}) == len(TARGETS)


def test_figures_of_a_row_are_written_and_read_again() -> None:
    row = records.row_of(Figure("act.cpu", 1.0, "CPU s", 1, about="twice"), "act", ())
    assert records.Row(**json.loads(row.line())) == row


@pytest.mark.parametrize(
    ("now", "same"), [(100, True), (103, True), (97, True), (104, False), (96, False), (None, False)]
)
def test_the_bar_notices_what_costs_more_or_less(now: int | None, same: bool) -> None:
    lines, is_same = bar.compared({"create": 100}, {} if now is None else {"create": now})
    assert is_same is same
    assert lines[0].startswith("   " if same else "!!")


def test_the_bar_notices_an_operation_without_a_figure() -> None:
    assert not bar.compared({}, {"create": 100})[1]


def test_the_bar_counts_the_same_each_time_also_in_threads_that_begin_meanwhile() -> None:
    def work() -> int:
        return sum(number * number for number in range(1000))

    def apart() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    here = bar.codes_of(work)
    assert bar.codes_of(work) == here > 1000
    assert bar.codes_of(apart) > here
