"""Processes of the local cloud's guests, in states that are rare."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.waiting import until

from homeostat.clouds.local import processes

VFORKING = """
import os, sys
opened = [(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)]
os.waitpid(os.posix_spawn("/bin/sleep", ["sleep", "1000"], os.environ, file_actions=opened), 0)
"""


def states(directory: str) -> list[str]:
    return sorted(map(processes._state, processes.belonging([directory])[directory]))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_is_about_to_become_another_program_is_stopped_once_it_has(tmp_path: Path) -> None:
    """The one that began it cannot be stopped before: it is in uninterruptible sleep."""
    directory, gate = str(tmp_path / "guest"), tmp_path / "gate"
    os.mkfifo(gate)
    environment = {**os.environ, processes.MARK: directory}
    with subprocess.Popen([sys.executable, "-c", VFORKING, str(gate)], env=environment) as guest:
        try:
            until(lambda: states(directory) == ["D", "S"], "the child to wait at the gate")
            pausing = threading.Thread(target=processes.pause, args=(directory,))
            pausing.start()
            until(lambda: "T" in states(directory), "the child to be stopped")
            with open(gate, "r+b", buffering=0):
                pausing.join()
                assert states(directory) == ["T", "T"]
        finally:
            processes.end([directory])
            guest.wait()
