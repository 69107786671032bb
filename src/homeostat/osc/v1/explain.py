"""`openstack stack explain` and `openstack stack resource explain` (CV19)."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from osc_lib.command.command import Lister

from homeostat.osc.service import Wire, resource_of, service_of
from homeostat.osc.v1.arguments import add_resource, add_stack, teach

COLUMNS = ("Resource", "Status", "Why", "Reason", "Waits For", "Since", "Released By", "Next", "Next At")
LIMIT = 100
ALL_LEVELS = 1000


class _Explain(Lister):
    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "-n",
            "--nested-depth",
            metavar="<depth>",
            type=int,
            default=ALL_LEVELS,
            help="Levels of nested stacks to explain, too (default: all; 0: none)",
        )
        add_stack(parser)
        return parser


class Explain(_Explain):
    """Explain why a stack is not at rest: the waits of its resources, root causes first, and the events that end them

    Shows nothing if the stack is at rest.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--limit", metavar="<number>", type=int, default=LIMIT, help=f"How many at most (default: {LIMIT})"
        )
        return teach(
            parser, "openstack stack explain web", "openstack stack explain -n 0 web -f json -c Resource -c Why"
        )

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        service = service_of(self)
        place = service.stack(parsed_args.stack)
        page = max(1, min(parsed_args.limit, 1000))
        query = f"nested_depth={parsed_args.nested_depth}&limit={page}"
        explanation, reasons = service.pages(f"{place}/explain?{query}", "explanation", parsed_args.limit)
        if explanation.get("waiting"):
            waiting = explanation["waiting"]
            self.app.stderr.write(
                f"{explanation['stack_name']} waits for {waiting['released_by']}: {waiting['reason']}\n"
            )
        return COLUMNS, map(_row, reasons)


class ExplainResource(_Explain):
    """Explain why a resource is not at rest: its waits, and the events that end them

    Shows nothing if the resource is at rest.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_resource(parser)
        return teach(parser, "openstack stack resource explain web server")

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        service = service_of(self)
        place = resource_of(service.stack(parsed_args.stack), parsed_args.resource)
        explanation: Wire = service.get(f"{place}/explain?nested_depth={parsed_args.nested_depth}")["explanation"]
        return COLUMNS, map(_row, explanation["reasons"])


def _row(reason: Wire) -> tuple[Any, ...]:
    return (
        "/".join(reason["path"]),
        reason["resource_status"],
        reason["why"],
        reason["reason"],
        ", ".join(reason["waits_for"]),
        reason["since"],
        reason["released_by"],
        reason["next"],
        reason["next_at"],
    )
