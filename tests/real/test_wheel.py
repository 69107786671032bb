"""A wheel, installed in an empty environment with nothing else, does the main job."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeostat.cli.state_directory import State
from tests.waiting import until

ROOT = Path(__file__).parents[2]
LIMIT_S = 600.0
"""For each command: downloads take their time on a busy machine."""


def run(*words: str | Path, **more: str) -> str:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("HOMEOSTAT_", "PYTHON"))}
    ended = subprocess.run(
        list(map(str, words)), env={**variables, **more}, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short one: there are sockets in it."""
    with tempfile.TemporaryDirectory(prefix="w") as found:
        yield Path(found)


def test_a_wheel_in_an_empty_environment_brings_up_the_example(folder: Path) -> None:
    run(ROOT / "scripts/dist", folder, PYTHON=sys.executable)
    (wheel,) = folder.glob("homeostat-*.whl")
    venv.create(folder / "environment", with_pip=True)
    programs = folder / "environment/bin"
    run(programs / "pip", "install", "--quiet", wheel)
    assert (folder / "environment/share/man/man1/homeostat-up.1").is_file()
    shutil.copytree(ROOT / "examples", folder / "examples")
    state = {"HOMEOSTAT_STATE_DIR": str(folder / "state")}
    try:
        run(programs / "homeostat", "up", folder / "examples/web-tier.yaml", **state)
        assert "CREATE_COMPLETE" in run(programs / "homeostat", "show", "web-tier", **state)
        run(programs / "homeostat", "down", "web-tier", "-y", **state)
    finally:
        running = State(folder / "state").running()
        if running is not None:
            os.kill(running.pid, signal.SIGTERM)
            until(lambda: State(folder / "state").running() is None, "the service to end")
