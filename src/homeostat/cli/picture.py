"""Pictures for a terminal: the tree of a stack, tables, explanations. Nothing here asks the service."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from homeostat.cli.explain import Explanation
from homeostat.cli.tree import Line, arrange, requirements
from homeostat.cli.views import COMPLETE, FAILED, IN_PROGRESS, Key, ResourceView, Snapshot, lasting, seconds

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_S = 10
Rows = Sequence[Sequence[RenderableType]]


class Durations:
    """How long each resource has been in its state, by this machine's clock: the wire knows whole seconds only."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[str, float, bool]] = {}
        self._took: dict[Key, float] = {}

    def see(self, resources: Sequence[ResourceView], now: float) -> None:
        for resource in resources:
            before = self._known.get(resource.key)
            if before is not None and before[0] == resource.state:
                continue
            if before is not None and resource.status != IN_PROGRESS and IN_PROGRESS in before[0]:
                self._took[resource.key] = now - before[1]
            begun = now if before is not None or resource.since is None else min(now, resource.since)
            self._known[resource.key] = (resource.state, begun, before is not None)

    def gone(self, resources: Sequence[ResourceView]) -> int:
        """How many of those seen before are no more."""
        return len(self._known.keys() - {each.key for each in resources})

    def of(self, resource: ResourceView, now: float) -> str:
        """Of what is in progress: until now. Of what has come to rest while we looked: what it took."""
        if resource.status == IN_PROGRESS and resource.key in self._known:
            return lasting(now - self._known[resource.key][1])
        took = self._took.get(resource.key)
        return "" if took is None else lasting(took)


class StackPicture:
    """One snapshot, to be drawn again and again: what costs time is done once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._lines = arrange(snapshot.resources)
        moving = {each.key for each in snapshot.resources if not each.at_rest}
        needs = requirements(snapshot.resources)
        self._blockers = {key: [need[1] for need in each if need in moving] for key, each in needs.items()}

    def draw(self, durations: Durations, now: float, height: int) -> RenderableType:
        """Head line with progress, and the tree of resources, in at most `height` lines."""
        lines, hidden = self._lines, 0
        room = max(3, height - 4)
        if len(lines) > room:
            lines, hidden = _most_telling(lines, room - 1)
        rows = [_row(line, durations, now, self._blockers.get(line.resource.key, ())) for line in lines]
        grid = Table.grid(padding=(0, 2))
        for _ in range(4):
            grid.add_column(no_wrap=True)
        grid.add_column()  # the only one that gives way on a narrow screen
        for row in rows:
            grid.add_row(*row)
        gone = durations.gone(self._snapshot.resources) if self._snapshot.action == "DELETE" else None
        parts: list[RenderableType] = [_head(self._snapshot, gone, now), grid]
        if hidden:
            parts.append(Text(f"… {hidden} more", style="dim"))
        return Group(*parts)


def _most_telling(lines: Sequence[Line], room: int) -> tuple[list[Line], int]:
    """What failed, moves or waits, before what is at rest; without branches, since there are gaps between them."""
    ranked = sorted(lines, key=lambda line: _interest(line.resource))
    return [Line("", line.resource) for line in ranked[:room]], len(lines) - room


def _interest(resource: ResourceView) -> int:
    if resource.status == FAILED:
        return 0
    if resource.status == IN_PROGRESS:
        return 1
    return 2 if resource.begins else 3


def _head(snapshot: Snapshot, gone: int | None, now: float) -> RenderableType:
    """gone — how many resources are no more, when that is what is wanted."""
    total = len(snapshot.resources) + (gone or 0)
    done = sum(each.at_rest for each in snapshot.resources) if gone is None else gone
    begun = seconds(snapshot.stack.get("updated_time") or snapshot.stack.get("creation_time"))
    head = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=max(total, 1), completed=done, width=24, complete_style=_colour(snapshot.status))
    elapsed = "" if begun is None or snapshot.at_rest else lasting(now - begun)
    status = Text(str(snapshot.stack["stack_status"]), style=_colour(snapshot.status))
    head.add_row(Text(snapshot.name, style="bold"), status, bar, f"{done}/{total}", Text(elapsed, style="dim"))
    return head


def _row(line: Line, durations: Durations, now: float, blockers: Sequence[str]) -> Sequence[Text]:
    resource = line.resource
    symbol, style = _symbol(resource, now)
    name = Text.assemble(
        (line.prefix, "dim"), (f"{symbol} ", style), (resource.name, "" if resource.at_rest else "bold")
    )
    return (
        name,
        Text(resource.type.removeprefix("OS::"), style="dim"),
        Text("waits" if resource.begins else resource.state.lower(), style=style),
        Text(durations.of(resource, now), style="dim"),
        Text(
            _why(resource, blockers), "red" if resource.status == FAILED else "dim", no_wrap=True, overflow="ellipsis"
        ),
    )


def _why(resource: ResourceView, blockers: Sequence[str]) -> str:
    if resource.begins:
        return f"for {', '.join(blockers)}" if blockers else ""
    if resource.status == FAILED:
        return resource.reason
    return resource.waiting if resource.status == IN_PROGRESS else ""


def _symbol(resource: ResourceView, now: float) -> tuple[str, str]:
    if resource.status == FAILED:
        return "✗", "red"
    if resource.status == IN_PROGRESS:
        return SPINNER[int(now * _FRAMES_S) % len(SPINNER)], "yellow"
    return ("○", "dim") if resource.begins else ("✓", "green")


def _colour(status: str) -> str:
    return {FAILED: "red", IN_PROGRESS: "yellow"}.get(status, "green")


def event_line(event: Mapping[str, Any]) -> Text:
    status = str(event["resource_status"])
    at = time.strftime("%H:%M:%S", time.localtime(seconds(event["event_time"])))
    reason = str(event.get("resource_status_reason") or "")
    text = Text.assemble((at, "dim"), "  ", (f"{status:<20}", _colour(status.partition("_")[2])), "  ")
    return text.append(event["resource_name"]).append(f"  {reason}" if reason else "", style="dim")


def table(columns: Sequence[str], rows: Rows) -> RenderableType:
    """With an empty line before it. What does not fit in its column goes on in the next line."""
    found = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    for column in columns:
        found.add_column(column, overflow="fold")
    for row in rows:
        found.add_row(*row)
    return Group("", found)


def stacks_table(stacks: Sequence[Mapping[str, Any]]) -> RenderableType:
    rows: Rows = [
        [
            str(stack["stack_name"]),
            status_text(stack["stack_status"]),
            str(stack.get("updated_time") or stack.get("creation_time") or ""),
            str(stack.get("stack_status_reason") or ""),
        ]
        for stack in stacks
    ]
    return table(("stack", "status", "changed", "reason"), rows)


def resources_table(resources: Sequence[ResourceView]) -> RenderableType:
    rows: Rows = [
        [each.name, each.type, status_text(f"{each.action}_{each.status}"), each.handle, _reason(each)]
        for each in resources
    ]
    return table(("resource", "type", "status", "id", "reason"), rows)


def _reason(resource: ResourceView) -> str:
    return resource.waiting or ("" if resource.status == COMPLETE else resource.reason)


def outputs_table(outputs: Sequence[Mapping[str, Any]]) -> RenderableType:
    rows: Rows = [
        [str(output["output_key"]), shown(output), str(output.get("description") or "")] for output in outputs
    ]
    return table(("output", "value", "description"), rows)


def shown(output: Mapping[str, Any]) -> Text:
    if output.get("output_error"):
        return Text(str(output["output_error"]), style="red")
    value = output.get("output_value")
    return Text(value if isinstance(value, str) else json.dumps(value), style="cyan")


def status_text(status: str) -> Text:
    return Text(status, style=_colour(status.partition("_")[2]))


def explanations(found: Sequence[Explanation]) -> RenderableType:
    parts: list[RenderableType] = []
    for each in found:
        since = "" if each.waiting_s is None else f" for {lasting(each.waiting_s)}"
        style = "red" if FAILED in each.state else "yellow"
        head = Text.assemble((each.name, "bold"), (f"  {each.type}  ", "dim"), (each.state + since, style))
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for word, text in (
            ("  waits for", each.waits_for),
            ("  last seen", each.seen),
            ("  released by", each.released_by),
        ):
            if text:
                grid.add_row(word, text)
        parts += [head, grid]
    return Group(*parts)
