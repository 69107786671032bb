"""`homeostat rollout`: show and steer rollouts of metadata, or definitions, to the members of a group (RU8)."""

import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from rich.live import Live
from rich.text import Text

from homeostat.cli import pictures, rollout_pictures
from homeostat.cli.client import Client, Wire
from homeostat.cli.connection import connect
from homeostat.cli.errors import FAILED, OK, Fault, Problem, Unreachable, Usage
from homeostat.cli.flags import Commands, add_client_command
from homeostat.cli.follow import PATIENCE_S
from homeostat.cli.output import console, write_json
from homeostat.model.rollout import Steering

STATUS = "status"
ACTS = (STATUS, *(verb.command for verb in Steering))
POLL_S = 0.5
NOT_FOUND = 404
GOING = ("running", "paused", "held")
"""States of a rollout in progress."""
ENDING = (Steering.ABORT.command, Steering.ROLL_BACK.command)
"""Acts after which the failure of the group is expected."""
LEFT_OUT = ("seconds_left",)
"""Fields that change with every request."""
Show = Callable[[Wire], None]


def rollout(arguments: Namespace) -> int:
    if arguments.step is not None and arguments.act != Steering.APPROVE:
        raise Usage(f"--step is for approve, not for {arguments.act}")
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        if arguments.act == STATUS:
            return _status(client, stack, arguments)
        selected = _chosen(client, stack, arguments.resource)
        steered = _steered(client, selected, arguments)
        # The answer has the path from the group's own stack; the user may have named an ancestor.
        result = {**steered, "path": selected["path"]}
        if arguments.watch:
            return _watched(client, stack, result, arguments)
    if arguments.json:
        write_json({"rollout": result})
    else:
        console().print(rollout_pictures.drawn(result, stack["stack_name"], time.time()))
    return OK


def _steered(client: Client, selected: Wire, arguments: Namespace) -> Wire:
    if arguments.act == Steering.APPROVE.command:
        # The step displayed here: a step that begins meanwhile must not be approved by mistake.
        step = arguments.step if arguments.step is not None else selected["step"] or None
        return client.approve_rollout(_stack_of(selected), selected["resource_name"], step)
    return client.steer_rollout(_stack_of(selected), selected["resource_name"], arguments.act.replace("-", "_"))


def _status(client: Client, stack: Wire, arguments: Namespace) -> int:
    if arguments.watch:
        begun = _begun(client, stack, arguments)
        return (
            _ended(client.stack(stack["id"]), arguments) if begun is None else _watched(client, stack, begun, arguments)
        )
    rollouts = client.rollouts(stack) if arguments.resource is None else [_chosen(client, stack, arguments.resource)]
    if arguments.json:
        write_json({"rollouts": rollouts} if arguments.resource is None else {"rollout": rollouts[0]})
    elif not rollouts:
        console().print(Text(f"no rollout is in progress in {stack['stack_name']}"))
    elif len(rollouts) == 1:
        console().print(rollout_pictures.drawn(rollouts[0], stack["stack_name"], time.time()))
    else:
        console().print(rollout_pictures.table(rollouts, time.time()))
    return OK


# -- selection ---------------------------------------------------------------------------------------------------------


def _chosen(client: Client, stack: Wire, resource: str | None) -> Wire:
    """Return the rollout selected by the user.

    Raises:
        Problem: No rollout is in progress.
        Usage: Several rollouts are in progress.
        Fault: The resource does not exist.
    """
    known = client.rollouts(stack)
    matches = [candidate for candidate in known if resource in (None, rollout_pictures.place(candidate))]
    matches = matches or [candidate for candidate in known if resource == candidate["resource_name"]]
    if len(matches) > 1:
        names = ", ".join(sorted(map(rollout_pictures.place, matches)))
        raise Usage(f"{stack['stack_name']} has {len(matches)} rollouts: add RESOURCE, one of {names}")
    if matches:
        return matches[0]
    if resource is not None and "/" not in resource:
        return client.rollout(stack, resource)
    where = f" of {resource}" if resource is not None else ""
    raise Problem(f"no rollout{where} is in progress in {stack['stack_name']}; see homeostat explain")


def _stack_of(rollout: Wire) -> Wire:
    return {"stack_name": rollout["stack_name"], "id": rollout["stack_id"]}


# -- watching ----------------------------------------------------------------------------------------------------------


def _begun(client: Client, stack: Wire, arguments: Namespace) -> Wire | None:
    """Wait for the rollout while the stack is in progress; return None if no rollout begins."""
    while True:
        busy = client.stack(stack["id"])["stack_status"].endswith("IN_PROGRESS")
        try:
            return _chosen(client, stack, arguments.resource)
        except Usage:
            raise
        except Problem:
            if not busy:
                if arguments.resource is not None:
                    raise
                return None
        time.sleep(POLL_S)


def _watched(client: Client, stack: Wire, first: Wire, arguments: Namespace) -> int:
    """Show a rollout, and any newer rollout of the same group, until the group is at rest."""
    if arguments.json:
        last = _follow(client, first, _changes(lambda state: write_json({"rollout": state})))
        write_json({"resource": last})
        return _code(last, arguments)
    out = console()
    if out.is_terminal:
        newest = first
        with Live(
            console=out,
            get_renderable=lambda: rollout_pictures.drawn(newest, stack["stack_name"], time.time()),
            refresh_per_second=8,
            transient=True,
        ):

            def show(state: Wire) -> None:
                nonlocal newest
                newest = state

            last = _follow(client, first, show)
    else:
        last = _follow(client, first, _changes(lambda state: out.print(rollout_pictures.line(state), soft_wrap=True)))
    return _resource_ended(last, arguments)


def _changes(write: Show) -> Show:
    """Wrap `write` to skip states equal to the state written last."""
    written: Any = None

    def show(state: Wire) -> None:
        nonlocal written
        seen = {key: value for key, value in state.items() if key not in LEFT_OUT}
        if seen != written:
            written = seen
            write(state)

    return show


def _follow(client: Client, first: Wire, show: Show) -> Wire:
    """Show a rollout until its group is at rest; return the group.

    Raises:
        Unreachable: The service does not answer for too long.
        Fault: The group or its stack was deleted.
    """
    stack, name, path = _stack_of(first), first["resource_name"], first["path"]
    show(first)
    answered_at = time.monotonic()
    while True:
        time.sleep(POLL_S)
        try:
            state = _rollout(client, stack, name)
            group = client.resource(stack, name) if state is None or state["state"] not in GOING else None
            answered_at = time.monotonic()
        except Unreachable:
            if time.monotonic() - answered_at > PATIENCE_S:
                raise
            continue
        if state is not None:
            show({**state, "path": path})
        if group is not None and not group["resource_status"].endswith("IN_PROGRESS"):
            return group


def _rollout(client: Client, stack: Wire, name: str) -> Wire | None:
    try:
        return client.rollout(stack, name)
    except Fault as fault:
        if (fault.status, fault.kind) == (NOT_FOUND, "NotFound"):
            return None
        raise


def _resource_ended(group: Wire, arguments: Namespace) -> int:
    status = str(group["resource_status"])
    if _code(group, arguments) != OK:
        raise Problem(f"{group['resource_name']} is {status}: {group['resource_status_reason']}")
    reason = f": {group['resource_status_reason']}" if status.endswith("FAILED") else ""
    console().print(
        Text.assemble((group["resource_name"], "bold"), " is ", pictures.status_text(status), reason), soft_wrap=True
    )
    return OK


def _code(group: Wire, arguments: Namespace) -> int:
    return OK if arguments.act in ENDING or group["resource_status"].endswith("COMPLETE") else FAILED


def _ended(stack: Wire, arguments: Namespace) -> int:
    """Report a stack at rest without a rollout."""
    if arguments.json:
        write_json({"rollouts": []})
    else:
        status = pictures.status_text(stack["stack_status"])
        console().print(Text.assemble("no rollout is in progress: ", (stack["stack_name"], "bold"), " is ", status))
    return FAILED if stack["stack_status"].endswith("FAILED") else OK


# -- flags -------------------------------------------------------------------------------------------------------------


def add_commands(commands: Commands) -> None:
    command = add_client_command(
        commands,
        rollout,
        "rollout",
        "homeostat rollout status web -w\n  homeostat rollout approve web fleet --step 2\n"
        "  homeostat rollout roll-back web\n\n"
        "  status      show progress, waits, messages of failed members, and the possible commands\n"
        "  pause       pause the rollout; members keep their present values\n"
        "  resume      continue a paused or held rollout; failures so far are accepted\n"
        "  approve     start the next step, where update_policy.rollout requires approval\n"
        "  promote     give the new values to all members now, without gates\n"
        "  abort       end the rollout at its present step: some members have the new values, and the stack fails\n"
        "  roll-back   give the old values back to all members; the stack fails\n\n"
        "To correct a rollout, update the stack: members with the wrong values change first.\n"
        "With --watch the exit code is 1 if the group fails, unless you have aborted or rolled it back.",
    )
    command.add_argument("act", choices=ACTS, help="show the rollout (status), or control it")
    command.add_argument("name", metavar="STACK", help="name or id of the stack")
    command.add_argument(
        "resource",
        metavar="RESOURCE",
        nargs="?",
        help="the group, or its path such as tier/fleet; optional while only one rollout is in progress",
    )
    command.add_argument("-w", "--watch", action="store_true", help="show the rollout live until it has ended")
    command.add_argument("--step", metavar="N", type=int, help="approve only this step (default: the step in progress)")
