"""`openstack stack history list|show|diff` and `openstack stack back`: earlier revisions of a stack."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from osc_lib.command.command import Command, Lister, ShowOne

from homeostat.osc.service import Wire, service_of
from homeostat.osc.v1.arguments import add_stack, add_wait, teach
from homeostat.osc.v1.convergence import outcome
from homeostat.revision_diff import difference, text_of

LISTED = ("Revision", "Since", "Action", "Newest", "Complete", "Empty")
LIMIT = 100
SAME = "no difference, but for values that are hidden"


class ListHistory(Lister):
    """List the revisions of a stack, newest first"""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        parser.add_argument(
            "--limit", metavar="<number>", type=int, default=LIMIT, help=f"How many at most (default: {LIMIT})"
        )
        return teach(parser, "openstack stack history list web")

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        service = service_of(self)
        revisions = service.get(f"{service.stack(parsed_args.stack)}/revisions?limit={parsed_args.limit}")["revisions"]
        keys = ("number", "creation_time", "action", "newest", "complete", "empty")
        return LISTED, (tuple(revision[key] for key in keys) for revision in revisions)


class ShowHistory(Command):
    """Show a revision of a stack: template, environment and files"""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        _add_revision(parser, "revision")
        return teach(parser, "openstack stack history show web 3")

    def take_action(self, parsed_args: Namespace) -> None:
        service = service_of(self)
        place = service.stack(parsed_args.stack)
        self.app.stdout.write(text_of(service.get(f"{place}/revisions/{parsed_args.revision}")["revision"]))


class DiffHistory(Command):
    """Show how two revisions of a stack differ"""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        _add_revision(parser, "revision")
        _add_revision(parser, "other")
        return teach(parser, "openstack stack history diff web 3 5")

    def take_action(self, parsed_args: Namespace) -> None:
        service = service_of(self)
        place = service.stack(parsed_args.stack)
        numbers = (parsed_args.revision, parsed_args.other)
        before, after = (service.get(f"{place}/revisions/{number}")["revision"] for number in numbers)
        self.app.stdout.writelines(f"{line}\n" for line in difference(before, after) or [SAME])


class Back(ShowOne):
    """Return a stack to an earlier revision

    It is stored as the newest revision, so this can be undone in the same way.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_stack(parser)
        _add_revision(parser, "revision")
        parser.add_argument("--dry-run", action="store_true", help="Show what would change; change nothing")
        add_wait(parser, "the stack is at rest")
        return teach(parser, "openstack stack back web 3 --dry-run", "openstack stack back --wait web 3")

    def take_action(self, parsed_args: Namespace) -> tuple[Any, Any]:
        service = service_of(self)
        place, body = service.stack(parsed_args.stack), {"revision": parsed_args.revision}
        if parsed_args.dry_run:
            return _preview_columns(service.change(f"{place}/preview?show_nested=true", body))
        service.change(place, body)
        return outcome(service, place, parsed_args)


def _add_revision(parser: ArgumentParser, name: str) -> None:
    parser.add_argument(name, metavar=f"<{name}>", type=int, help="Number; see `stack history list`")


def _preview_columns(preview: Wire) -> tuple[Any, Any]:
    """Return changes and the paths of their resources."""
    changes: dict[str, list[Wire]] = preview["resource_changes"]
    named = {change: [_name(entry) for entry in entries] for change, entries in changes.items()}
    for more in preview["more_members"]:
        named[more["change"]].append(f"{more['count']} more of {'/'.join(more['path'])}")
    return tuple(named), tuple(", ".join(names) for names in named.values())


def _name(entry: Wire) -> str:
    return "/".join([*entry["path"], entry["resource_name"]])
