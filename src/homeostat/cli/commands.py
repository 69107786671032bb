"""The commands that talk to a service. Each returns the exit code."""

import sys
import time
from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from rich.console import Console
from rich.text import Text

from homeostat.cli import explain as explanations
from homeostat.cli import pictures, views
from homeostat.cli.arguments import parse
from homeostat.cli.client import Client, Wire
from homeostat.cli.errors import FAILED, OK, Fault, Problem, Unreachable, Usage
from homeostat.cli.follow import (
    REASONS,
    EventLines,
    SnapshotLines,
    Unseen,
    View,
    follow,
    print_event,
    view_for,
    write_json,
)
from homeostat.cli.service import start_for_client
from homeostat.cli.settings import ClientSettings, ServiceSettings
from homeostat.cli.stack_files import default_name, stack_body
from homeostat.cli.state_directory import State
from homeostat.cli.views import Snapshot

WIDE = 240
"""Width of output that is not a terminal."""
REASONS_MAX = 1000
"""Reasons that `explain` shows."""
NOT_FOUND = 404


def up(arguments: Namespace) -> int:
    body = stack_body(arguments.template, arguments.environment, arguments.parameter)
    name = arguments.name or default_name(arguments.template)
    if arguments.rollback is not None:
        body["disable_rollback"] = not arguments.rollback
    if arguments.timeout is not None:
        body["timeout_mins"] = arguments.timeout
    with connect(arguments, start=True) as client:
        before = client.find_stack(name)
        after = client.newest_event(before) if before else None
        if before is None:
            identity = client.create({**body, "stack_name": name})
        else:
            identity = before["id"]
            client.update(before, body)
        if arguments.no_wait:
            return accepted(client, identity, arguments)
        return ended(client, followed(client, identity, arguments, after), arguments)


def watch(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        shown: AbstractContextManager[View] = nullcontext(SnapshotLines())
        if not arguments.json:
            shown = view_for(client, console(), client.newest_event(stack))
        with shown as view:
            last = follow(client, stack["id"], view, until_rest=arguments.until_complete)
        return OK if last.gone or last.succeeded() else FAILED


def list_(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stacks = client.stacks()
    if arguments.json:
        write_json(stacks)
    elif stacks:
        console().print(pictures.stacks_table(stacks))
    else:
        console().print("no stacks; make one: homeostat up TEMPLATE")
    return OK


def show(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name, outputs=True)
        resources = client.resources(stack)
    if arguments.output is not None:
        return _show_output(stack, arguments)
    if arguments.json:
        write_json({"stack": stack, "resources": resources})
        return OK
    out = console()
    out.print(Text.assemble((stack["stack_name"], "bold"), "  ", pictures.status_text(stack["stack_status"])))
    out.print(Text(f"{stack['id']}\n{stack['stack_status_reason']}", style="dim"))
    parameters = [[name, str(value)] for name, value in stack["parameters"].items()]
    out.print(pictures.table(("parameter", "value"), parameters))
    out.print(pictures.resources_table(Snapshot.of(stack, resources).resources))
    if stack.get("outputs"):
        out.print(pictures.outputs_table(stack["outputs"]))
    return OK


def _show_output(stack: Wire, arguments: Namespace) -> int:
    outputs = {each["output_key"]: each for each in stack.get("outputs") or ()}
    if arguments.output not in outputs:
        known = ", ".join(outputs) or "none"
        raise Problem(f"{stack['stack_name']} has no output {arguments.output}; it has: {known}")
    found = outputs[arguments.output]
    if found.get("output_error"):
        raise Problem(f"output {arguments.output}: {found['output_error']}")
    if arguments.json:
        write_json(found["output_value"])
    else:
        console().print(pictures.shown(found), soft_wrap=True)
    return OK


def events(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        if arguments.follow:
            write = write_json if arguments.json else partial(print_event, console())
            follow(client, stack["id"], EventLines(client, write, None), until_rest=False)
            return OK
        found = list(client.events(stack))
    if arguments.json:
        write_json(found)
    else:
        for event in found:
            print_event(console(), event)
    return OK


def explain(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        if arguments.resource:
            return _explain_resource(client, stack, arguments)
        found = client.explain_more(client.explain(stack, REASONS), REASONS_MAX)
    if arguments.json:
        write_json({"stack": stack, "explanation": found})
        return OK
    read = explanations.read(found)
    console().print(pictures.explained_head(stack, read))
    console().print(pictures.reasons_tree(read.reasons, time.time()))
    if read.more:
        console().print(f"… and more: homeostat explain {stack['stack_name']} RESOURCE", style="dim")
    return OK


def _explain_resource(client: Client, stack: Wire, arguments: Namespace) -> int:
    found = _resource_explained(client, stack, arguments.resource)
    if arguments.json:
        write_json({"stack": stack, "explanation": found})
        return OK
    if found["at_rest"]:
        console().print(pictures.at_rest(views.read_resource(found["resource"]), time.time()))
    else:
        reasons = [explanations.read_reason(each) for each in found["reasons"]]
        console().print(pictures.reasons_tree(reasons, time.time()))
    return OK


def _resource_explained(client: Client, stack: Wire, name: str) -> Wire:
    """Explain the resource of this name in the stack, or else in a nested one."""
    try:
        return client.explain_resource(stack, name)
    except Fault as fault:
        if fault.status != NOT_FOUND:
            raise
    known = client.resources(stack)
    for each in known:
        if each["resource_name"] == name:
            return client.explain_resource(views.stack_of(each), name)
    names = ", ".join(sorted(each["resource_name"] for each in known)) or "none"
    raise Problem(f"{stack['stack_name']} has no resource {name}; it has: {names}")


def down(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        if not arguments.yes:
            _confirm(stack)
        after = client.newest_event(stack)
        client.delete(stack)
        if arguments.no_wait:
            return accepted(client, stack["id"], arguments)
        return ended(client, followed(client, stack["id"], arguments, after), arguments)


def connect(arguments: Namespace, *, start: bool = False) -> Client:
    """Return a client of the named service, or of the one that has the state directory.

    Args:
        start: Start a service if none runs.
    """
    settings = ClientSettings.of(arguments)
    if settings.url:
        return Client(settings.url, settings)
    there = State(settings.state).running()
    if there is None and not start:
        remedy = "start one with `homeostat serve --detach`, or name one with --url"
        raise Unreachable(f"no service has the state directory {settings.state}: {remedy}")
    if there is None:
        there = start_for_client(ServiceSettings.of(parse(["serve", "--state-dir", str(settings.state)])))
        if not arguments.json:
            console().print(f"no service was running: started one at {there.url}", style="dim")
    return Client(there.url, settings)


def report(problem: Problem, *, as_json: bool) -> None:
    """Print the error that ended the command: on standard error, or as JSON in place of the result."""
    if as_json:
        write_json({"error": {"type": problem.kind, "message": str(problem)}})
    else:
        Console(stderr=True).print(Text.assemble(("homeostat: ", "red"), str(problem)), soft_wrap=True)


def report_interrupt(arguments: Namespace) -> None:
    """Print, after Ctrl-C, that only the watching ends and the accepted operation continues."""
    if arguments.command in ("up", "back", "down") and not arguments.json:
        Console(stderr=True).print(
            "interrupted; if the service has accepted it, it goes on: homeostat list", style="dim"
        )


def console() -> Console:
    """Return a console: as wide as the terminal, or with long lines for a file or a pipe."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=WIDE)


def _confirm(stack: Wire) -> None:
    if not sys.stdin.isatty():
        raise Usage(f"deleting {stack['stack_name']} needs confirmation: add -y")
    answer = input(f"Delete stack {stack['stack_name']} ({stack['id']}) and all it made? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        raise Problem("nothing was deleted")


def accepted(client: Client, identity: str, arguments: Namespace) -> int:
    stack = client.stack(identity)
    if arguments.json:
        write_json({"stack": stack})
    else:
        console().print(f"{stack['stack_name']} is {stack['stack_status']}: homeostat watch {stack['stack_name']}")
    return OK


def followed(client: Client, identity: str, arguments: Namespace, after: str | None) -> Snapshot:
    """Show the stack until it is at rest; with JSON output, nothing is shown before the end."""
    if arguments.json:
        return follow(client, identity, Unseen())
    with view_for(client, console(), after) as view:
        return follow(client, identity, view)


def ended(client: Client, last: Snapshot, arguments: Namespace) -> int:
    """Report how the operation ended: outputs, or what failed and why."""
    code = OK if last.succeeded() else FAILED
    if arguments.json:
        stack = client.stack(str(last.stack["id"]), outputs=True)
        write_json({"stack": stack, "resources": client.resources(stack)})
        return code
    if last.gone:
        console().print(Text.assemble((last.name, "bold"), " is deleted"))
    elif code == OK:
        outputs = client.stack(str(last.stack["id"]), outputs=True).get("outputs")
        if outputs:
            console().print(pictures.outputs_table(outputs))
    else:
        raise Problem("\n".join(_failure(last)))
    return code


def _failure(last: Snapshot) -> list[str]:
    failed = [each for each in last.resources if each.status == views.FAILED]
    lines = [f"{last.name} is {last.stack['stack_status']}: {last.stack['stack_status_reason']}"]
    lines += [f"  {each.name} ({each.type}) {each.action} failed: {each.reason}" for each in failed]
    return [*lines, f"repair the cause and run the command again; see `homeostat explain {last.name}`"]
