"""Everything that is expected of a type, asked of ours: each case is one test."""

from pathlib import Path

import pytest
from example_files.cloud import FileCloud
from example_files.handlers import Note
from example_files.types import File

from homeostat.testing import Example, Setting, cases, check_conforms, plugin


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXAMPLE_FILES_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("case", cases())
def test_file(case: str, root: Path) -> None:
    example = Example({"content": "one"}, change={"content": "two"}, replace={"name": "other"})
    check_conforms(File, example, cloud=lambda setting: FileCloud(root, setting.now), case=case)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("case", cases())
def test_note(case: str, root: Path) -> None:
    kind, cloud = plugin("Example::Note", Note)
    check_conforms(
        kind, Example({"text": "one"}, change={"text": "two"}, replace={"title": "Other"}), cloud=cloud, case=case
    )
    assert list(root.iterdir()) == []


def test_what_is_written_into_a_file_by_hand_is_undone(root: Path) -> None:
    from homeostat.testing import Bench
    from homeostat.testing.cases import known

    def make(setting: Setting) -> FileCloud:
        return FileCloud(root, setting.now)

    with known(File):
        bench = Bench(make)
        stack_id = bench.create({"file": {"type": "Example::File", "properties": {"content": "mine"}}})
        bench.rest()
        (path,) = root.iterdir()
        path.write_text(path.read_text().replace("mine", "yours"))
        bench.live(120)
        assert bench.things(stack_id)["file"].seen.properties["content"] == "mine"
