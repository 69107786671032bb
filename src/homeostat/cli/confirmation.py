"""Confirmation of destructive commands: questions at a terminal, which scripts answer by a flag."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.cli.errors import Problem, Usage
from homeostat.cli.output import SafeConsole
from homeostat.cli.plan_tree import counted, drawn
from homeostat.printable import printable_line

Wire = Mapping[str, Any]
LOST = {"deleted": "delete", "replaced": "replace"}
"""Change of a resource in a plan -> verb for the loss of the existing thing."""


def confirm(question: str, refusal: str, otherwise: str) -> None:
    """Ask the user at the terminal.

    Args:
        question: Ends with a question mark.
        refusal: The message without a terminal, with the flag that answers.
        otherwise: The message if the answer is no.

    Raises:
        Usage: There is no terminal.
        Problem: The answer is no.
    """
    if not sys.stdin.isatty():
        raise Usage(refusal)
    sys.stderr.write(f"{printable_line(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Problem(otherwise)


def confirm_losses(name: str, preview: Wire, resets: Sequence[str], remedy: str) -> None:
    """Ask before a change of a stack that deletes or replaces resources.

    Args:
        preview: Of the change.
        resets: Descriptions of parameters that return to their defaults.
        remedy: Alternative to `-y`, for the message without a terminal; ends without a full stop.

    Raises:
        Usage: There is no terminal.
        Problem: The answer is no.
    """
    counts = counted(preview)
    losses = " and ".join(f"{verb} {counts[change]}" for change, verb in LOST.items() if counts.get(change))
    if not losses:
        return
    out = SafeConsole(stderr=True)
    for line in drawn(name, preview, exists=True):
        out.print(line, soft_wrap=True)
    because = f" ({'; '.join(resets)})" if resets else ""
    confirm(
        f"This would {losses} of the resources of {name}{because}. Go on?",
        f"this would {losses} of the resources of {name}{because}: allow it with -y, {remedy}",
        "nothing was changed",
    )
