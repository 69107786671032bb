"""`homeostat history` shows earlier desired states of a stack; `homeostat back` returns to one of them."""

from argparse import Namespace
from collections.abc import Iterator

from rich.text import Text

from homeostat.cli import pictures
from homeostat.cli.client import Client, Wire
from homeostat.cli.commands import accepted, connect, console, ended, followed
from homeostat.cli.errors import OK
from homeostat.cli.follow import write_json
from homeostat.cli.plan import counted, drawn
from homeostat.revision_diff import difference, text_of

COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def history(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        if arguments.revision is None:
            return _list(client, stack, arguments)
        shown = client.revision(stack, arguments.revision)
        if arguments.other is None:
            return _show(shown, arguments)
        return _difference(shown, client.revision(stack, arguments.other), arguments)


def _list(client: Client, stack: Wire, arguments: Namespace) -> int:
    found = client.revisions(stack, arguments.limit)
    if arguments.json:
        write_json(found)
        return OK
    rows = [[str(each["number"]), each["creation_time"], each["action"], ", ".join(_remarks(each))] for each in found]
    console().print(pictures.table(("revision", "since", "action", ""), rows))
    return OK


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
        after = client.newest_event(stack)
        client.go_back(stack, arguments.revision)
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
