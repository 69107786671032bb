"""The `homeostat` command, to be run by `tests.forked`: to load a service takes three seconds of CPU time.

Nothing of the command differs, but that it inherits no PYTHONPATH: plug-ins that it names are not found.
"""

import sys

from homeostat import main as command
from homeostat.composition.service import load_service

NAME = "homeostat"
STARTED = ["-m", "homeostat"]
"""Arguments with which the command runs itself in the background."""


def load() -> None:
    load_service()


def main(program: str, arguments: list[str]) -> int:
    if arguments[: len(STARTED)] == STARTED:
        return command.main(arguments[len(STARTED) :])
    sys.executable = program  # a service that it starts is forked too
    return command.main(arguments)
