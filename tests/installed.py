"""What is released, installed beside nothing else: commands are run as a user of it would."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from homeostat.cli.state_directory import State
from tests.waiting import until

ROOT = Path(__file__).parents[1]
LIMIT_S = 900.0
"""For each command: downloads take their time on a busy machine."""


def run(*words: str | Path, cwd: Path | None = None, variables: Mapping[str, str] = MappingProxyType({})) -> str:
    """Run a command in an environment that knows nothing of this one; return what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOMEOSTAT_", "PYTHON"))}
    ended = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env={**kept, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def bring_up_the_example(homeostat: Path, folder: Path) -> None:
    """Have an installed program create the example, show it, and delete it; its service is ended then.

    Args:
        homeostat: The program.
        folder: For its state, with a short name: there are sockets in it.
    """
    shutil.copytree(ROOT / "examples", folder / "examples")
    variables = {"HOMEOSTAT_STATE_DIR": str(folder / "state")}
    try:
        run(homeostat, "up", folder / "examples/web-tier.yaml", variables=variables)
        assert "CREATE_COMPLETE" in run(homeostat, "show", "web-tier", variables=variables)
        run(homeostat, "down", "web-tier", "-y", variables=variables)
    finally:
        running = State(folder / "state").running()
        if running is not None:
            os.kill(running.pid, signal.SIGTERM)
            until(lambda: State(folder / "state").running() is None, "the service to end")
