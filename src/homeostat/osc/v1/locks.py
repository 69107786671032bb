"""`openstack stack lock` and `openstack stack unlock` (LK6)."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from osc_lib.command.command import Lister
from osc_lib.exceptions import CommandError

from homeostat.osc.service import Service, Wire, service_of, until
from homeostat.osc.v1.arguments import add_wait, lasting, teach

COLUMNS = ("ID", "Stack Name", "Stack Status", "Stack Status Reason")


class _OnStacks(Lister):
    """An action on several stacks in turn."""

    action = ""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("stack", metavar="<stack>", nargs="+", help="Name or id; may be repeated")
        add_wait(parser, "it is done")
        return parser

    def value(self, parsed_args: Namespace) -> Any:
        """Return the argument of the action."""
        return None

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterator[tuple[str, ...]]]:
        service = service_of(self)
        places = [service.stack(name) for name in parsed_args.stack]
        for place in places:
            service.act(place, self.action, self.value(parsed_args))
        rows = [self._shown(service, place, parsed_args) for place in places]
        return COLUMNS, iter(rows)

    def _shown(self, service: Service, place: str, parsed_args: Namespace) -> tuple[str, ...]:
        stack: Wire = service.get(f"{place}?resolve_outputs=False")["stack"]
        if parsed_args.wait:
            stack = until(lambda: _ended(service, place), parsed_args.timeout, f"{stack['stack_name']} is in progress")
            if stack["stack_status"].endswith("FAILED"):
                raise CommandError(f"{stack['stack_name']} is {stack['stack_status']}: {stack['stack_status_reason']}")
        return tuple(str(stack[key]) for key in ("id", "stack_name", "stack_status", "stack_status_reason"))


class Lock(_OnStacks):
    """Lock stacks and their nested stacks: nothing changes them until they are unlocked

    Updates, deletions, signals and background healing are refused or wait. Locking a locked stack changes its level.
    """

    action = "lock"

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--level",
            choices=("all", "stacks"),
            default="all",
            help="all: protect resources that can be protected, too (servers, images); stacks: only the stacks",
        )
        parser.add_argument("--reason", metavar="<text>", help="Why; shown to users who are refused")
        parser.add_argument(
            "--expires-in", metavar="<time>", type=lasting, help="Unlock by itself after this time, like 90s, 15m or 2h"
        )
        return teach(
            parser,
            'openstack stack lock web --reason "audit until Friday" --expires-in 3d',
            "openstack stack lock --level stacks --wait web data",
        )

    def value(self, parsed_args: Namespace) -> Any:
        value = {"level": parsed_args.level, "reason": parsed_args.reason, "expires_in": parsed_args.expires_in}
        return {name: item for name, item in value.items() if item is not None}


class Unlock(_OnStacks):
    """Unlock stacks and their nested stacks

    Resources that locking protected in the cloud get their previous protection. Drift since then is corrected if
    convergence is on.
    """

    action = "unlock"

    def get_parser(self, prog_name: str) -> ArgumentParser:
        return teach(super().get_parser(prog_name), "openstack stack unlock --wait web")


def _ended(service: Service, place: str) -> Wire | None:
    stack: Wire = service.get(f"{place}?resolve_outputs=False")["stack"]
    return None if stack["stack_status"].endswith("IN_PROGRESS") else stack
