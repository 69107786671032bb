"""The demonstrations are tests: every check they make must hold, and on a quiet machine their times, too."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.waiting import QUIET


@pytest.mark.heavy
@pytest.mark.parametrize("module", ["homeostat.cli.demo", "homeostat.cli.demo_cluster", "homeostat.cli.demo_rollout"])
def test_the_demo_holds_and_leaves_nothing_behind(module: str) -> None:
    # A folder of its own, and a short one: there are sockets in it, and other demonstrations run beside this one.
    with tempfile.TemporaryDirectory(prefix="d") as folder:
        run = subprocess.run(
            [sys.executable, "-m", module],
            env={**os.environ, "TMPDIR": folder},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        assert "All of it held" in run.stdout
        assert "  ! " not in run.stdout or not QUIET, run.stdout
        assert list(Path(folder).glob("homeostat-demo-*")) == []
