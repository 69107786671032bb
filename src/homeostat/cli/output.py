"""What commands write: text for people, JSON for programs, and errors."""

import json
import sys
from argparse import Namespace
from typing import Any

from rich.console import Console
from rich.text import Text

from homeostat.cli.errors import Problem

WIDE = 240
"""Width of output that is not a terminal."""


def console() -> Console:
    """Return a console: as wide as the terminal, or with long lines for a file or a pipe."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=WIDE)


def write_json(value: Any) -> None:
    """Write one document on one line and flush: readers follow along."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def report(problem: Problem, *, as_json: bool) -> None:
    """Print the error that ended the command: on standard error, or as JSON in place of the result."""
    if as_json:
        write_json({"error": {"type": problem.kind, "message": str(problem)}})
    else:
        Console(stderr=True).print(Text.assemble(("homeostat: ", "red"), str(problem)), soft_wrap=True)


def report_interrupt(arguments: Namespace) -> None:
    """Print, after Ctrl-C, that only the watching ends and the accepted operation continues."""
    if arguments.command in ("up", "back", "down") and not arguments.json:
        Console(stderr=True).print(
            "interrupted; if the service has accepted it, it goes on: homeostat list", style="dim"
        )
