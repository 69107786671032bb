"""Commands for actions on an existing stack: observe, converge, check, suspend, lock, convergence, …."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from rich.text import Text

from homeostat.cli import pictures
from homeostat.cli.client import Client, Wire
from homeostat.cli.connection import connect
from homeostat.cli.errors import FAILED, OK, Problem, Usage
from homeostat.cli.flags import (
    Commands,
    Run,
    add_client_command,
    add_no_wait,
    add_stack_name,
    age_s,
)
from homeostat.cli.follow import POLL_S, ended, followed
from homeostat.cli.output import console, write_json
from homeostat.model.stack_actions import STACK_ACTIONS
from homeostat.switch_flags import add_switches, requested_change

LOOK_PATIENCE_S = 120.0
"""Longest wait for an observation, since the observers may be busy, or the cloud may not answer."""
Found = TypeVar("Found")


def observe(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        requested_at = client.act(stack, "observe", arguments.resource)["observe"]["asked_at"]
        if arguments.no_wait:
            return _print({"asked_at": requested_at}, "it is looked at soon", arguments)
        state = _looked(client, stack, arguments.resource, requested_at)
        resources = [
            resource for resource in client.resources(stack) if arguments.resource in (None, resource["resource_name"])
        ]
    if arguments.json:
        write_json({"convergence": state, "resources": resources})
        return OK
    differing = [resource for resource in resources if _differs(resource)]
    console().print(_counted(len(resources), len(differing)))
    if differing:
        console().print(pictures.table(("resource", "property", "should be", "is", "since"), _drift(differing)))
    return OK


def converge(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        after = client.newest_event(stack)
        client.act(stack, "converge", arguments.resource)
        if arguments.no_wait:
            return _print({"stack": stack["id"]}, f"accepted: homeostat watch {stack['stack_name']}", arguments)
        if arguments.resource is None:
            return ended(client, followed(client, stack["id"], arguments, after), arguments)
        resource = _until(lambda: _at_rest(client, stack, arguments.resource), "it to be converged")
    if arguments.json:
        write_json({"resource": resource})
    else:
        status = pictures.status_text(resource["resource_status"])
        console().print(
            Text.assemble((arguments.resource, "bold"), " is ", status, f": {resource['resource_status_reason']}")
        )
    return FAILED if resource["resource_status"].endswith("FAILED") else OK


def lock(arguments: Namespace) -> int:
    value = {"level": arguments.level, "reason": arguments.reason, "expires_in": arguments.expires_in}
    return _done(arguments, "lock", value)


def _done(arguments: Namespace, action: str, value: Wire | None = None) -> int:
    """Request an action on the whole stack, and follow it to its end."""
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        after = client.newest_event(stack)
        client.act(stack, action, value=value)
        if arguments.no_wait:
            return _print({"stack": stack["id"]}, f"accepted: homeostat watch {stack['stack_name']}", arguments)
        return ended(client, followed(client, stack["id"], arguments, after), arguments)


def convergence(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        try:
            change = requested_change(arguments)
        except ValueError as error:
            raise Usage(str(error)) from error
        state = client.convergence(stack) if change is None else client.switch(stack, change)
    if arguments.json:
        write_json({"convergence": state})
        return OK
    out = console()
    rows = [["(the stack)", _enabled(state), _interval(state), state.get("healing") or "replace"]]
    rows += [
        [name, _enabled(switches), _interval(switches), switches.get("healing") or "as the stack"]
        for name, switches in state["resources"].items()
    ]
    out.print(pictures.table(("resource", "brought back by itself", "looked at", "healing"), rows))
    if state.get("healing_share") is not None:
        out.print(f"at most {state['healing_share']:.0%} of its things are healed at a time", style="dim")
    out.print(f"all of it was looked at {state['looked_at'] or 'never'}", style="dim")
    if state["blind"]:
        out.print(f"some of it cannot be looked at: {state['blind']}", style="yellow")
    return OK


def _enabled(state: Wire) -> str:
    return {True: "yes", False: "no", None: "as the stack"}[state.get("enabled")]


def _interval(state: Wire) -> str:
    seconds = state.get("observe_interval")
    if seconds is None:
        return "as usual"
    return f"every {seconds:g} s" if seconds else "only on request"


def _looked(client: Client, stack: Wire, resource: str | None, requested_at: str) -> Wire:
    """Wait until the stack, or the resource, has been observed since `requested_at`; return the switches' state."""

    def since() -> Wire | None:
        state = client.convergence(stack, resource)
        if state["blind"] and (state["looked_at"] or "") < requested_at:
            raise Problem(f"it cannot be looked at now: {state['blind']}; the service tries again by itself")
        return state if (state["looked_at"] or "") >= requested_at else None

    return _until(since, "a look; see `homeostat doctor`")


def _at_rest(client: Client, stack: Wire, name: str) -> Wire | None:
    resource = client.resource(stack, name)
    busy = resource["resource_status"].endswith("IN_PROGRESS") or resource.get("asked_at")
    return None if busy else resource


def _until(poll: Callable[[], Found | None], what: str) -> Found:
    deadline = time.monotonic() + LOOK_PATIENCE_S
    while time.monotonic() < deadline:
        result = poll()
        if result is not None:
            return result
        time.sleep(POLL_S)
    raise Problem(f"waited {LOOK_PATIENCE_S:.0f} s in vain for {what}")


def _counted(looked_at: int, differing: int) -> str:
    wrong = "1 is not as it should be" if differing == 1 else f"{differing} are not as they should be"
    return f"looked at {looked_at} {'resource' if looked_at == 1 else 'resources'}; {wrong}"


def _differs(resource: Wire) -> bool:
    observed = resource.get("observed") or {}
    return bool(observed.get("drift") or observed.get("left_alone") or observed.get("presence") == "absent")


def _drift(resources: list[Wire]) -> list[list[str]]:
    rows: list[list[Any]] = []
    for resource in resources:
        observed = resource["observed"]
        rows += [
            [
                resource["resource_name"],
                drift["property"],
                str(drift["desired"]),
                str(drift["observed"]),
                drift["since"],
            ]
            for drift in observed["drift"]
        ]
        if not observed["drift"]:
            wrong = observed.get("left_alone") or observed["reason"] or observed["presence"]
            rows.append([resource["resource_name"], "", "there and well", wrong, observed["seen_at"]])
    return rows


def _print(answer: Wire, words: str, arguments: Namespace) -> int:
    if arguments.json:
        write_json(answer)
    else:
        console().print(words)
    return OK


# -- flags -------------------------------------------------------------------------------------------------------------


def add_commands(commands: Commands) -> None:
    _add_observe(commands)
    _add_converge(commands)
    for name, rules in STACK_ACTIONS.items():
        if rules.summary:
            action = name.lower()
            run = partial(_done, action=action)
            _add_whole_stack(commands, run, action, f"homeostat {action} web-tier")
    _add_lock(commands)
    _add_convergence(commands)


def _add_whole_stack(commands: Commands, run: Run, name: str, example: str) -> ArgumentParser:
    """Add an action on a whole stack."""
    command = add_client_command(commands, run, name, example)
    add_stack_name(command)
    add_no_wait(command)
    return command


def _add_observe(commands: Commands) -> None:
    command = _add_whole_stack(
        commands,
        observe,
        "observe",
        "homeostat observe web-tier\n  homeostat observe web-tier server_2 --json",
    )
    _add_resource(command)


def _add_converge(commands: Commands) -> None:
    command = _add_whole_stack(
        commands,
        converge,
        "converge",
        "homeostat converge web-tier\n  homeostat converge web-tier server_2\n\n"
        "It also works where convergence is switched off.",
    )
    _add_resource(command)


def _add_resource(command: ArgumentParser) -> None:
    command.add_argument("resource", metavar="RESOURCE", nargs="?", help="only this resource")


def _add_lock(commands: Commands) -> None:
    command = _add_whole_stack(
        commands,
        lock,
        "lock",
        "homeostat lock web-tier\n  homeostat lock web-tier --level stacks --reason 'new disks' --expires-in 2h",
    )
    command.add_argument(
        "--level",
        choices=("all", "stacks"),
        default="all",
        help="all: also lock servers and protect images; stacks: only the stacks (default: %(default)s)",
    )
    command.add_argument("--reason", metavar="TEXT", help="shown to users who are refused")
    command.add_argument(
        "--expires-in", metavar="TIME", type=age_s, help="unlock automatically after this time: 90s, 15m, 2h or 3d"
    )


def _add_convergence(commands: Commands) -> None:
    command = add_client_command(
        commands,
        convergence,
        "convergence",
        "homeostat convergence web-tier\n  homeostat convergence web-tier --off\n"
        "  homeostat convergence web-tier server_2 --off --look-every 10s\n"
        "  homeostat convergence web-tier server_2 --same\n"
        "  homeostat convergence web-tier --healing ask --healing-share 0.2\n\n"
        "The switches of a stack apply to all its nested stacks.",
    )
    add_stack_name(command)
    _add_resource(command)
    add_switches(command, age_s)
