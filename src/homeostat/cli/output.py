"""Output of commands: text for people, JSON for programs, and errors."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from homeostat.cli.errors import Problem
from homeostat.printable import printable

WIDE = 240
"""Width of output that is not a terminal."""


class SafeConsole(Console):
    """A console for untrusted text: without control characters, and without markup."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render as Rich does. Segments with `control` are Rich's colours and cursor movements."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


def console() -> Console:
    """Return a console: as wide as the terminal, or with long lines for a file or a pipe."""
    out = SafeConsole()
    return out if out.is_terminal else SafeConsole(width=WIDE)


def write_json(value: Any) -> None:
    """Write a document on a line and flush, for readers that follow along."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def report(problem: Problem, *, as_json: bool) -> None:
    """Print the error that ended the command, on standard error, or as JSON instead of the result."""
    if as_json:
        write_json({"error": {"type": problem.kind, "message": str(problem)}})
    else:
        SafeConsole(stderr=True).print(Text.assemble(("homeostat: ", "red"), str(problem)), soft_wrap=True)


def report_interrupt(arguments: Namespace) -> None:
    """Print, after Ctrl-C, that only the watching ends and the accepted operation continues."""
    if arguments.command in ("up", "back", "down") and not arguments.json:
        SafeConsole(stderr=True).print(
            "interrupted; if the service has accepted it, it goes on: homeostat list", style="dim"
        )
