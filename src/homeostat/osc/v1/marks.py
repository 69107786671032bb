"""`openstack stack mark unhealthy`: several resources at once (MU)."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from osc_lib.command.command import Lister

from homeostat.osc.service import service_of
from homeostat.osc.v1.arguments import add_stack, lasting, teach

COLUMNS = ("Resource", "Status", "Changed")


class Mark(Lister):
    """Mark resources of a stack unhealthy, so that they are replaced: all of them or none

    They are replaced at once if convergence is on, otherwise by the next update of the stack or by `openstack stack
    converge`. Name resources by name, by physical id, or, in nested stacks, by paths such as group/0/server. (A
    single resource can also be marked with `openstack stack resource mark unhealthy`.)
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        parser.add_argument("resource", metavar="<resource>", nargs="+", help="Name, physical id, or path")
        parser.add_argument("--reason", metavar="<text>", help="Why")
        parser.add_argument("--reporter", metavar="<name>", help="Who reports it, such as a health checker")
        parser.add_argument(
            "--expires-in", metavar="<time>", type=lasting, help="The mark ends by itself after this, like 90s or 2h"
        )
        parser.add_argument("--reset", action="store_true", help="Remove marks instead")
        return teach(
            parser,
            'openstack stack mark unhealthy web group/0 group/7 --reason "rack 7"',
            "openstack stack mark unhealthy web server --reporter prober --expires-in 1h",
            "openstack stack mark unhealthy web --reset server",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        service = service_of(self)
        change = {
            "mark_unhealthy": not parsed_args.reset,
            "resources": parsed_args.resource,
            "resource_status_reason": parsed_args.reason,
            "reporter": parsed_args.reporter,
            "expires_in": parsed_args.expires_in,
        }
        body = {name: value for name, value in change.items() if value is not None}
        place = service.stack(parsed_args.stack)
        marked = service.change(f"{place}/resources", body)["resources"]
        return COLUMNS, (("/".join(mark["path"]), mark["resource_status"], mark["changed"]) for mark in marked)
