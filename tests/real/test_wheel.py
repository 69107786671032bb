"""A wheel, installed in an empty environment with nothing else and what is newest, does the main job."""

import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.installed import ROOT, bring_up_the_example, run


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="w") as found:
        yield Path(found)


def test_a_wheel_in_an_empty_environment_brings_up_the_example(folder: Path) -> None:
    run(ROOT / "scripts/dist", folder, variables={"PYTHON": sys.executable})
    (wheel,) = folder.glob("homeostat-*.whl")
    venv.create(folder / "environment", with_pip=True)
    run(folder / "environment/bin/pip", "install", "--quiet", wheel)
    assert (folder / "environment/share/man/man1/homeostat-up.1").is_file()
    bring_up_the_example(folder / "environment/bin/homeostat", folder)
