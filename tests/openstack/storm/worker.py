"""What a worker process of the storm runs: the genuine command, forked from a process that has loaded it."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from keystoneauth1 import session

import homeostat.clouds.openstack  # noqa: F401 - loaded before the fork
from homeostat import main as command
from homeostat.composition.service import load_service
from tests.real.processes import end_with_the_tests

load_service()


def run_command(arguments: Sequence[str], environment: Mapping[str, str], log: Path, agent: str) -> None:
    """Run `homeostat ARGUMENTS`. agent — a word more by which the cloud knows this client."""
    end_with_the_tests()
    session.DEFAULT_USER_AGENT += f" {agent}"
    os.environ.clear()
    os.environ.update(environment)
    with log.open("ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.exit(command.main([*arguments]))
