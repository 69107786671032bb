"""Flags of `homeostat convergence` and `openstack stack convergence set`, and the change of switches they request."""

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

DEFAULT, NEVER = "default", "never"
Duration = Callable[[str], float]
"""Parses a duration into seconds; raises ArgumentTypeError."""


def add_switches(command: ArgumentParser, duration: Duration, *, of_openstack: bool = False) -> None:
    """Add the flags, with help in the style of `openstack` or of `homeostat`."""

    def text(words: str) -> str:
        return words[0].upper() + words[1:] if of_openstack else words

    def value(name: str) -> str:
        return f"<{name}>" if of_openstack else name.upper()

    switch = command.add_mutually_exclusive_group()
    switch.add_argument(
        "--on", dest="enabled", action="store_true", default=None, help=text("correct drift, and heal what dies")
    )
    switch.add_argument("--off", dest="enabled", action="store_false", default=None, help=text("leave it as it is"))
    switch.add_argument("--same", action="store_true", help=text("use the stack's switches for the resource again"))
    command.add_argument(
        "--look-every",
        metavar=value("time"),
        type=partial(interval, duration=duration),
        default=SUPPRESS,
        help=text("interval of observations at rest: 10s, 5m, 12h, never, default"),
    )
    command.add_argument(
        "--healing",
        choices=("replace", "ask", DEFAULT),
        help=text("replace what is gone or broken for good, or wait for your consent"),
    )
    command.add_argument(
        "--healing-share",
        metavar=value("share"),
        type=share_or_default,
        default=SUPPRESS,
        help=text("share of the stack's resources that are healed at a time, like 0.2, or default"),
    )


def requested_change(arguments: Namespace) -> dict[str, Any] | None:
    """Return the body of the request; None if no flag is given.

    Raises:
        ValueError: The flags contradict each other, or are not for a resource.
    """
    change: dict[str, Any] = {}
    if arguments.enabled is not None:
        change["enabled"] = arguments.enabled
    if "look_every" in arguments:
        change["observe_interval"] = arguments.look_every
    if arguments.healing is not None:
        change["healing"] = None if arguments.healing == DEFAULT else arguments.healing
    if "healing_share" in arguments:
        change["healing_share"] = arguments.healing_share
    if arguments.same and (arguments.resource is None or change):
        raise ValueError("--same is for a resource, and excludes the other switches")
    if arguments.resource is not None and "healing_share" in change:
        raise ValueError("--healing-share is for a whole stack: leave out the resource")
    if not change and not arguments.same:
        return None
    return change if arguments.resource is None else {"resources": {arguments.resource: change or None}}


# -- types of values ---------------------------------------------------------------------------------------------------


def interval(text: str, duration: Duration) -> float | None:
    """Parse a duration, `never` (0) or `default` (None)."""
    words = {NEVER: 0.0, DEFAULT: None}
    return words[text] if text in words else duration(text)


def share(text: str) -> float:
    """Parse a number over 0, up to 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        raise ArgumentTypeError(f"{text!r}: a number over 0 and up to 1 is needed")
    return number


def share_or_default(text: str) -> float | None:
    """Parse a share, or `default` (None)."""
    return None if text == DEFAULT else share(text)
