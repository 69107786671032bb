"""`homeostat history` shows earlier revisions of a stack; `homeostat back` returns to a revision."""

from argparse import Namespace
from collections.abc import Iterator

from rich.text import Text

from homeostat.cli import pictures
from homeostat.cli.client import Client, Wire
from homeostat.cli.confirmation import confirm_losses
from homeostat.cli.connection import connect
from homeostat.cli.errors import OK
from homeostat.cli.flags import Commands, add_client_command, add_no_wait, add_stack_name, add_yes
from homeostat.cli.follow import accepted, ended, followed
from homeostat.cli.output import console, write_json
from homeostat.cli.plan_tree import counted, drawn
from homeostat.revision_diff import difference, text_of

COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def history(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        if arguments.revision is None:
            return _list(client, stack, arguments)
        revision = client.revision(stack, arguments.revision)
        if arguments.other is None:
            return _show(revision, arguments)
        return _difference(revision, client.revision(stack, arguments.other), arguments)


def _list(client: Client, stack: Wire, arguments: Namespace) -> int:
    revisions = client.revisions(stack, arguments.limit)
    if arguments.json:
        write_json(revisions)
        return OK
    rows = [
        [
            str(revision["number"]),
            revision["creation_time"],
            revision["action"],
            _by(revision),
            ", ".join(_remarks(revision)),
        ]
        for revision in revisions
    ]
    console().print(pictures.table(("revision", "since", "action", "by", ""), rows))
    return OK


def _by(revision: Wire) -> str:
    """Return the user who requested a revision, or the id of the request if the name is unknown."""
    return str(revision.get("requested_by") or revision.get("request_id") or "")


def _remarks(revision: Wire) -> Iterator[str]:
    if revision["newest"]:
        yield "newest"
    if revision["complete"]:
        yield "the last that was complete"
    if revision["empty"]:
        yield "nothing is to exist"


def _show(revision: Wire, arguments: Namespace) -> int:
    if arguments.json:
        write_json(revision)
    else:
        console().print(Text(text_of(revision)), soft_wrap=True)
    return OK


def _difference(before: Wire, after: Wire, arguments: Namespace) -> int:
    lines = difference(before, after)
    if arguments.json:
        write_json({"from": before["number"], "to": after["number"], "diff": lines})
        return OK
    for line in lines or ["no difference, but for values that are hidden"]:
        console().print(Text(line, style=COLOURS.get(line[:1], "")), soft_wrap=True)
    return OK


def back(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        if arguments.dry_run:
            return _print_preview(client, stack, arguments)
        preview = None if arguments.yes else client.preview_going_back(stack, arguments.revision)
        if preview is not None:
            confirm_losses(stack["stack_name"], preview, (), "or look at it with --dry-run")
        after = client.newest_event(stack)
        client.go_back(stack, arguments.revision, preview)
        if arguments.no_wait:
            return accepted(client, stack["id"], arguments)
        return ended(client, followed(client, stack["id"], arguments, after), arguments)


def _print_preview(client: Client, stack: Wire, arguments: Namespace) -> int:
    preview = client.preview_going_back(stack, arguments.revision)
    if arguments.json:
        write_json({"stack_name": stack["stack_name"], "summary": counted(preview), **preview})
        return OK
    for line in drawn(stack["stack_name"], preview, exists=True):
        console().print(line, soft_wrap=True)
    return OK


# -- flags -------------------------------------------------------------------------------------------------------------


def add_commands(commands: Commands) -> None:
    command = add_client_command(
        commands,
        history,
        "history",
        "homeostat history web-tier\n  homeostat history web-tier 3\n  homeostat history web-tier 3 5",
    )
    add_stack_name(command)
    command.add_argument("revision", metavar="REVISION", nargs="?", type=int, help="show this revision")
    command.add_argument("other", metavar="OTHER", nargs="?", type=int, help="compare with this revision")
    command.add_argument("--limit", metavar="N", type=int, default=100, help="list at most N (default: 100)")
    command = add_client_command(
        commands,
        back,
        "back",
        "homeostat back web-tier 3 --dry-run\n  homeostat back web-tier 3",
    )
    add_stack_name(command)
    command.add_argument("revision", metavar="REVISION", type=int, help="see `homeostat history NAME`")
    command.add_argument("--dry-run", action="store_true", help="show what would change; change nothing")
    add_yes(command)
    add_no_wait(command)
