"""Commands for whole stacks: up, watch, list, show, events, explain, down."""

import time
from argparse import BooleanOptionalAction, Namespace
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from rich.text import Text

from homeostat.cli import explain as explanations
from homeostat.cli import pictures, views
from homeostat.cli.client import Client, Wire
from homeostat.cli.confirmation import confirm, confirm_losses
from homeostat.cli.connection import connect
from homeostat.cli.errors import FAILED, OK, Fault, Problem
from homeostat.cli.flags import (
    Commands,
    add_client_command,
    add_existing,
    add_no_wait,
    add_stack_description,
    add_stack_name,
    add_yes,
)
from homeostat.cli.follow import (
    REASONS,
    EventLines,
    SnapshotLines,
    View,
    accepted,
    ended,
    follow,
    followed,
    print_event,
    view_for,
)
from homeostat.cli.output import SafeConsole, console, write_json
from homeostat.cli.parameter_resets import reset_parameters
from homeostat.cli.stack_files import default_name, source_of, stack_body
from homeostat.cli.views import Snapshot

REASONS_MAX = 1000
"""Maximum number of reasons in the output of `explain`."""
NOT_FOUND = 404


def up(arguments: Namespace) -> int:
    body = stack_body(arguments.template, arguments.environment, arguments.parameter)
    name = arguments.name or default_name(arguments.template)
    if arguments.rollback is not None:
        body["disable_rollback"] = not arguments.rollback
    body["template_source"] = source_of(arguments.template)
    if arguments.timeout is not None:
        body["timeout_mins"] = arguments.timeout
    with connect(arguments, start=True) as client:
        before = client.find_stack(name)
        after = client.newest_event(before) if before else None
        if before is None:
            identity = client.create({**body, "stack_name": name})
        else:
            identity = before["id"]
            if arguments.name is None:
                _confirm_source(before, body["template_source"], arguments)
            _update(client, before, body, arguments)
        if not arguments.json:
            console().print(f"Picture: {client.picture_address(name, identity)}", soft_wrap=True)
        if arguments.no_wait:
            return accepted(client, identity, arguments)
        return ended(client, followed(client, identity, arguments, after), arguments)


def _confirm_source(stack: Wire, source: str, arguments: Namespace) -> None:
    """Ask before updating a stack that was created from a different template file of the same name."""
    name, before = stack["stack_name"], stack.get("template_source")
    if not before or before == source or arguments.yes:
        return
    confirm(
        f"Stack {name} was made from {before}, not from {source}. Update it?",
        f"stack {name} was made from {before}, not from {source}: name the stack that is meant, as in "
        f"homeostat up {arguments.template} NAME, or allow it with -y",
        "nothing was changed",
    )


def _update(client: Client, stack: Wire, body: Wire, arguments: Namespace) -> None:
    """Update a stack; ask before resources are deleted or replaced, unless -y is given."""
    resets = [] if arguments.existing else list(reset_parameters(client, stack, body))
    for reset in resets:
        SafeConsole(stderr=True).print(f"parameter {reset}", soft_wrap=True)
    preview = None if arguments.yes else client.preview_update(stack, body, existing=arguments.existing)
    if preview is not None:
        kept = "or keep the values of all parameters with --existing" if resets else "or look at it: homeostat plan"
        confirm_losses(stack["stack_name"], preview, resets, kept)
    client.update(stack, body, existing=arguments.existing, previewed=preview)


def watch(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        view_context: AbstractContextManager[View] = nullcontext(SnapshotLines())
        if not arguments.json:
            view_context = view_for(client, console(), client.newest_event(stack))
        with view_context as view:
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
    outputs = {output["output_key"]: output for output in stack.get("outputs") or ()}
    if arguments.output not in outputs:
        known = ", ".join(outputs) or "none"
        raise Problem(f"{stack['stack_name']} has no output {arguments.output}; it has: {known}")
    output = outputs[arguments.output]
    if output.get("output_error"):
        raise Problem(f"output {arguments.output}: {output['output_error']}")
    if arguments.json:
        write_json(output["output_value"])
    else:
        console().print(pictures.shown(output), soft_wrap=True)
    return OK


def events(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        if arguments.follow:
            write = write_json if arguments.json else partial(print_event, console())
            follow(client, stack["id"], EventLines(client, write, None), until_rest=False)
            return OK
        listed = list(client.events(stack))
    if arguments.json:
        write_json(listed)
    else:
        for event in listed:
            print_event(console(), event)
    return OK


def explain(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        if arguments.resource:
            return _explain_resource(client, stack, arguments)
        explanation = client.explain_more(client.explain(stack, REASONS), REASONS_MAX)
    if arguments.json:
        write_json({"stack": stack, "explanation": explanation})
        return OK
    read = explanations.read(explanation)
    console().print(pictures.explained_head(stack, read))
    console().print(pictures.reasons_tree(read.reasons, time.time()))
    if read.more:
        console().print(f"… and more: homeostat explain {stack['stack_name']} RESOURCE", style="dim")
    return OK


def _explain_resource(client: Client, stack: Wire, arguments: Namespace) -> int:
    explanation = _resource_explained(client, stack, arguments.resource)
    if arguments.json:
        write_json({"stack": stack, "explanation": explanation})
        return OK
    if explanation["at_rest"]:
        console().print(pictures.at_rest(views.read_resource(explanation["resource"]), time.time()))
    else:
        reasons = [explanations.read_reason(reason) for reason in explanation["reasons"]]
        console().print(pictures.reasons_tree(reasons, time.time()))
    return OK


def _resource_explained(client: Client, stack: Wire, name: str) -> Wire:
    """Explain the resource of this name in the stack, or else in a nested stack."""
    try:
        return client.explain_resource(stack, name)
    except Fault as fault:
        if fault.status != NOT_FOUND:
            raise
    known = client.resources(stack)
    for resource in known:
        if resource["resource_name"] == name:
            return client.explain_resource(views.stack_of(resource), name)
    names = ", ".join(sorted(resource["resource_name"] for resource in known)) or "none"
    raise Problem(f"{stack['stack_name']} has no resource {name}; it has: {names}")


def down(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        if not arguments.yes:
            name = stack["stack_name"]
            confirm(
                f"Delete stack {name} ({stack['id']}) and all it made?",
                f"deleting {name} needs confirmation: add -y",
                "nothing was deleted",
            )
        after = client.newest_event(stack)
        client.delete(stack)
        if arguments.no_wait:
            return accepted(client, stack["id"], arguments)
        return ended(client, followed(client, stack["id"], arguments, after), arguments)


# -- flags -------------------------------------------------------------------------------------------------------------


def add_commands(commands: Commands) -> None:
    _add_up(commands)
    _add_watch(commands)
    add_client_command(commands, list_, "list", "homeostat list --json | jq -r '.[].stack_name'")
    _add_show(commands)
    _add_events(commands)
    _add_explain(commands)
    _add_down(commands)


def _add_up(commands: Commands) -> None:
    command = add_client_command(
        commands,
        up,
        "up",
        "homeostat up examples/hello.yaml\n"
        "  homeostat up web.yaml shop -P message=Hello -P port=8080 -e production.yaml --rollback\n\n"
        "A template describes the whole stack: parameters that are not named return to their defaults, in updates,\n"
        "too; --existing keeps their values. An update that deletes or replaces something asks first, or needs -y.\n"
        "Files named by get_file are read relative to the template. If no service runs, one is started in the\n"
        "background (homeostat serve --detach).",
    )
    add_stack_description(command)
    command.add_argument("--rollback", action=BooleanOptionalAction, help="roll back on failure")
    command.add_argument("--timeout", metavar="MIN", type=int, help="minutes until the operation counts as failed")
    add_existing(command)
    add_yes(command)
    add_no_wait(command)


def _add_watch(commands: Commands) -> None:
    command = add_client_command(commands, watch, "watch", "homeostat watch web-tier --until-complete")
    add_stack_name(command)
    command.add_argument("--until-complete", action="store_true", help="end when the stack is at rest, 1 if it failed")


def _add_show(commands: Commands) -> None:
    command = add_client_command(
        commands,
        show,
        "show",
        "curl $(homeostat show web-tier --output url)",
    )
    add_stack_name(command)
    command.add_argument("--output", metavar="KEY", help="only the value of this output, for use in scripts")


def _add_events(commands: Commands) -> None:
    command = add_client_command(commands, events, "events", "homeostat events web-tier -f")
    add_stack_name(command)
    command.add_argument("-f", "--follow", action="store_true", help="also print new events, until interrupted")


def _add_explain(commands: Commands) -> None:
    command = add_client_command(
        commands,
        explain,
        "explain",
        "homeostat explain web-tier\n  homeostat explain web-tier server_2",
    )
    add_stack_name(command)
    command.add_argument(
        "resource",
        metavar="RESOURCE",
        nargs="?",
        help="only this resource, at rest or not, also of nested stacks",
    )


def _add_down(commands: Commands) -> None:
    command = add_client_command(commands, down, "down", "homeostat down web-tier -y")
    add_stack_name(command)
    add_yes(command)
    add_no_wait(command)
