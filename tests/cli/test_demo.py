"""The demonstrations are tests: every check they make must hold."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest


@pytest.mark.demo
@pytest.mark.parametrize("module", ["homeostat.cli.demo", "homeostat.cli.demo_cluster", "homeostat.cli.demo_rollout"])
def test_the_demo_holds_and_leaves_nothing_behind(module: str) -> None:
    before = set(Path(tempfile.gettempdir()).glob("homeostat-demo-*"))
    run = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, timeout=280, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "All of it held" in run.stdout
    assert set(Path(tempfile.gettempdir()).glob("homeostat-demo-*")) == before
