"""`openstack stack convergence show|set`: the switches of convergence, observation and healing."""

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from osc_lib.command.command import ShowOne
from osc_lib.exceptions import CommandError

from homeostat.osc.service import Wire, service_of
from homeostat.osc.v1.arguments import add_stack, lasting, teach

SHOWN = ("enabled", "observe_interval", "healing", "healing_share", "resources", "looked_at", "blind")
DEFAULT, NEVER = "default", "never"


class ShowConvergence(ShowOne):
    """Show the convergence switches of a stack, and of resources with switches of their own

    An empty value means the service's default. Settings in the template are not shown.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        return teach(parser, "openstack stack convergence show web")

    def take_action(self, parsed_args: Namespace) -> tuple[Any, Any]:
        service = service_of(self)
        return _shown(service.get(f"{service.stack(parsed_args.stack)}/convergence"))


class SetConvergence(ShowOne):
    """Set whether a stack or a resource converges by itself, how often it is observed, and how it heals

    The switches of a stack apply to all its nested stacks.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        parser.add_argument("resource", metavar="<resource>", nargs="?", help="Only this resource")
        switch = parser.add_mutually_exclusive_group()
        switch.add_argument(
            "--on", dest="enabled", action="store_true", default=None, help="Bring back what drifts or dies"
        )
        switch.add_argument("--off", dest="enabled", action="store_false", default=None, help="Leave it as it is")
        switch.add_argument("--same", action="store_true", help="Use the stack's switches for the resource again")
        parser.add_argument(
            "--look-every",
            metavar="<time>",
            type=interval,
            default=SUPPRESS,
            help="Interval of observations at rest: 10s, 5m, 12h, never, default",
        )
        parser.add_argument(
            "--healing",
            choices=("replace", "ask", DEFAULT),
            help="Replace what is gone or broken for good, or wait for your consent",
        )
        parser.add_argument(
            "--healing-share",
            metavar="<share>",
            type=share,
            default=SUPPRESS,
            help="Share of the stack's resources that are healed at a time, like 0.2, or default",
        )
        return teach(
            parser,
            "openstack stack convergence set web --off",
            "openstack stack convergence set web database --healing ask",
            "openstack stack convergence set web --healing-share 0.2 --look-every 30s",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[Any, Any]:
        service = service_of(self)
        change = _change(parsed_args)
        place = f"{service.stack(parsed_args.stack)}/convergence"
        return _shown(service.change(place, {"convergence": change}))


def _change(parsed_args: Namespace) -> Wire:
    """Return the requested changes. Raise CommandError for none, and for a switch that only a stack has."""
    change: Wire = {}
    if parsed_args.enabled is not None:
        change["enabled"] = parsed_args.enabled
    if "look_every" in parsed_args:
        change["observe_interval"] = parsed_args.look_every
    if parsed_args.healing is not None:
        change["healing"] = None if parsed_args.healing == DEFAULT else parsed_args.healing
    if "healing_share" in parsed_args:
        change["healing_share"] = parsed_args.healing_share
    if parsed_args.same and (parsed_args.resource is None or change):
        raise CommandError("--same is for a resource, and excludes the other switches")
    if parsed_args.resource is not None and "healing_share" in change:
        raise CommandError("--healing-share is for a whole stack: leave out the resource")
    if not change and not parsed_args.same:
        raise CommandError("nothing to change: add --on, --off, --same, --look-every, --healing or --healing-share")
    return change if parsed_args.resource is None else {"resources": {parsed_args.resource: change or None}}


def _shown(answer: Wire) -> tuple[Any, Any]:
    state: Wire = answer["convergence"]
    return SHOWN, tuple(state[key] for key in SHOWN)


def interval(text: str) -> float | None:
    """Parse a time, `never` (0) or `default` (None). Raise ArgumentTypeError."""
    words = {NEVER: 0.0, DEFAULT: None}
    return words[text] if text in words else lasting(text)


def share(text: str) -> float | None:
    """Parse a number over 0, up to 1, or `default` (None). Raise ArgumentTypeError."""
    if text == DEFAULT:
        return None
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        raise ArgumentTypeError(f"{text!r}: a number over 0 and up to 1 is needed, or {DEFAULT}")
    return number
