"""`homeostat health`: show findings of health policies about members, and approve recoveries (ADR 0072)."""

from argparse import Namespace

from rich.table import Table
from rich.text import Text

from homeostat.cli import pictures
from homeostat.cli.client import Client, Wire
from homeostat.cli.connection import connect
from homeostat.cli.errors import FAILED, OK, Problem, Usage
from homeostat.cli.flags import Commands, add_client_command
from homeostat.cli.output import console, write_json
from homeostat.model.node_health import Finding

STATUS, APPROVE = "status", "approve"
STYLES = {Finding.HEALTHY: "green", Finding.UNHEALTHY: "red", Finding.UNKNOWN: "yellow"}


def health(arguments: Namespace) -> int:
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        if arguments.act == APPROVE:
            return _approve(client, stack, arguments)
        members, hosts = client.health(stack), client.declared_hosts(stack)
        unhealthy = [member for member in members if member["finding"] != Finding.HEALTHY]
        waits = {_place(member): _waits(client, member) for member in unhealthy[: arguments.limit]}
    counts = (len(members) - len(unhealthy), len(members))
    if arguments.resource is not None:
        members = [member for member in members if arguments.resource in (member["resource_name"], _place(member))]
        if not members:
            raise Problem(f"no health policy holds for {arguments.resource} in {stack['stack_name']}")
    if arguments.json:
        write_json({"health": [{**member, "waits": waits.get(_place(member))} for member in members], "hosts": hosts})
    else:
        _print(stack, members, counts, waits, arguments)
        for host in hosts:
            console().print(Text("\n".join(_declared(host))))
    return FAILED if any(member["finding"] == Finding.UNHEALTHY for member in members) else OK


def _approve(client: Client, stack: Wire, arguments: Namespace) -> int:
    unhealthy = client.health(stack, Finding.UNHEALTHY.value)
    chosen = [member for member in unhealthy if arguments.resource in (member["resource_name"], _place(member))]
    if arguments.all:
        chosen = unhealthy
    elif arguments.resource is None:
        raise Usage(f"name the RESOURCE whose recovery you approve, or --all; unhealthy are: {_named(unhealthy)}")
    if not chosen:
        raise Problem(f"nothing to approve in {stack['stack_name']}; unhealthy are: {_named(unhealthy)}")
    for member in chosen:
        client.approve_recovery({"stack_name": member["stack_name"], "id": member["stack_id"]}, member["resource_name"])
        if not arguments.json:
            console().print(
                Text.assemble("approved the recovery of ", (_place(member), "bold"), f": {member['reason']}")
            )
    if arguments.json:
        write_json({"approved": [_place(member) for member in chosen]})
    return OK


def _waits(client: Client, member: Wire) -> Wire | None:
    """Return why the recovery of a member waits; None if it does not wait."""
    stack = {"stack_name": member["stack_name"], "id": member["stack_id"]}
    reasons = client.explain_resource(stack, member["resource_name"])["reasons"]
    return next((reason for reason in reasons if reason["resource_name"] == member["resource_name"]), None)


def _place(member: Wire) -> str:
    return "/".join(member["path"])


def _named(members: list[Wire]) -> str:
    return ", ".join(map(_place, members)) or "none"


def _print(
    stack: Wire, members: list[Wire], counts: tuple[int, int], waits: dict[str, Wire | None], arguments: Namespace
) -> None:
    """Print findings; `counts` are the numbers of healthy members and of all members, including hidden ones."""
    out = console()
    if not members:
        out.print(Text(f"no health policy holds for anything in {stack['stack_name']}"))
        return
    unhealthy = [member for member in members if member["finding"] != Finding.HEALTHY]
    verb = "is" if counts[0] == 1 else "are"
    out.print(Text(f"{stack['stack_name']}: {counts[0]} of {counts[1]} members {verb} healthy"))
    selected = members if arguments.all or arguments.resource is not None else unhealthy
    if not selected:
        return
    table = Table("member", "finding", "status", "why", box=None, pad_edge=False)
    for member in selected[: arguments.limit]:
        finding = Text(member["finding"], style=STYLES[Finding(member["finding"])])
        status = pictures.status_text(member["resource_status"])
        table.add_row(_place(member), finding, status, Text("\n".join(_lines(member, waits.get(_place(member))))))
    out.print(table)
    if len(selected) > arguments.limit:
        out.print(Text(f"… and {len(selected) - arguments.limit} more: --limit N", style="dim"))


def _lines(member: Wire, waits: Wire | None) -> list[str]:
    """Describe a member: the evidence, the actions tried, and the reason to wait."""
    lines = [
        f"{detection['type']}: {detection['evidence']} (since {detection['since']})" for detection in member["detected"]
    ]
    recovery = member.get("recovery")
    if recovery is not None:
        tried = ", ".join(recovery["tried"]) or "nothing yet"
        lines.append(f"in recovery since {recovery['begun_at']}; tried in vain: {tried}")
    if waits is not None and waits.get("reason"):
        lines.append(f"waits: {waits['reason']}")
        lines.append(f"released by: {waits['released_by']}")
    return lines


def _declared(host: Wire) -> list[str]:
    """Describe a host that is declared down."""
    return [
        f"host {host['host']} is declared down since {host['since']}: {'/'.join(host['path'])} was cut off by that",
        f"  found before: {host['reason']}",
        f"  released by: {host['released_by']}",
    ]


def add_commands(commands: Commands) -> None:
    command = add_client_command(
        commands,
        health,
        "health",
        "homeostat health status web\n  homeostat health approve web nodes/3\n\n"
        "  status      show unhealthy members with the evidence of each detection, the waits of recoveries, and\n"
        "              hosts that were declared down: why, since when, and how to lift this\n"
        "  approve     start the recovery of a member that its policy only proposes or holds back\n\n"
        "The exit code of status is 1 if a member is unhealthy.",
    )
    command.add_argument("act", choices=(STATUS, APPROVE), help="show the members (status), or approve a recovery")
    command.add_argument("name", metavar="STACK", help="name or id of the stack, or id of the cluster")
    command.add_argument("resource", metavar="RESOURCE", nargs="?", help="the member, or its path such as nodes/3")
    command.add_argument("--all", action="store_true", help="show healthy members, too; approve all recoveries")
    command.add_argument("--limit", metavar="N", type=int, default=50, help="members to show (default: 50)")
