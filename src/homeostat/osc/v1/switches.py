"""`openstack stack convergence show|set`: the switches of convergence, observation and healing."""

from argparse import ArgumentParser, Namespace
from typing import Any

from osc_lib.command.command import ShowOne
from osc_lib.exceptions import CommandError

from homeostat.osc.service import Wire, service_of
from homeostat.osc.v1.arguments import add_stack, lasting, teach
from homeostat.switch_flags import add_switches, requested_change

SHOWN = ("enabled", "observe_interval", "healing", "healing_share", "resources", "looked_at", "blind")


class ShowConvergence(ShowOne):
    """Show the convergence switches of a stack, and of resources with separate switches

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
        add_switches(parser, lasting, of_openstack=True)
        return teach(
            parser,
            "openstack stack convergence set web --off",
            "openstack stack convergence set web database --healing ask",
            "openstack stack convergence set web --healing-share 0.2 --look-every 30s",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[Any, Any]:
        service = service_of(self)
        try:
            change = requested_change(parsed_args)
        except ValueError as error:
            raise CommandError(str(error)) from error
        if change is None:
            raise CommandError("nothing to change: add --on, --off, --same, --look-every, --healing or --healing-share")
        place = f"{service.stack(parsed_args.stack)}/convergence"
        return _shown(service.change(place, {"convergence": change}))


def _shown(answer: Wire) -> tuple[Any, Any]:
    state: Wire = answer["convergence"]
    return SHOWN, tuple(state[key] for key in SHOWN)
