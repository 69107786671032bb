"""Rendering for a terminal: the tree of a stack, tables, explanations. Nothing here sends requests."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from homeostat.cli.explain import Explained, Reason, arranged, details, how, left, read, since
from homeostat.cli.tree import Line, arrange
from homeostat.cli.views import COMPLETE, FAILED, IN_PROGRESS, Key, ResourceView, Snapshot, lasting, seconds

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_S = 10
Rows = Sequence[Sequence[RenderableType]]


class Durations:
    """Time of each resource in its state, by this machine's clock, since the API's times have whole seconds only."""

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
        """Count the resources seen before that no longer exist."""
        return len(self._known.keys() - {resource.key for resource in resources})

    def of(self, resource: ResourceView, now: float) -> str:
        """Return the time in progress so far; for a resource that came to rest while watched, the time it took."""
        if resource.status == IN_PROGRESS and resource.key in self._known:
            return lasting(now - self._known[resource.key][1])
        took = self._took.get(resource.key)
        return "" if took is None else lasting(took)


class StackPicture:
    """A snapshot that is rendered repeatedly: expensive preparation is done once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._lines = arrange(snapshot.resources)
        self._explained = read(snapshot.explanation) if snapshot.explanation is not None else Explained()
        self._reasons = {reason.key: reason for reason in self._explained.reasons if not reason.leftover}

    def draw(self, durations: Durations, now: float, height: int) -> RenderableType:
        """Render a head line with progress, and the tree of resources, in at most `height` lines."""
        lines, hidden = self._lines, 0
        room = max(3, height - 5 - len(self._trouble()))
        if len(lines) > room:
            lines, hidden = _most_interesting(lines, room - 1)
        rows = [_row(line, durations, now, self._reasons.get(line.resource.key)) for line in lines]
        grid = Table.grid(padding=(0, 2))
        for _ in range(4):
            grid.add_column(no_wrap=True)
        grid.add_column()  # the only column that shrinks on a narrow screen
        for row in rows:
            grid.add_row(*row)
        parts: list[RenderableType] = [self._head(durations, now), *self._tally(), *self._trouble(), grid]
        if hidden:
            parts.append(Text(f"… {hidden} more", style="dim"))
        return Group(*parts)

    def _head(self, durations: Durations, now: float) -> RenderableType:
        """Render name, state, progress, elapsed time and estimate."""
        snapshot, outlook = self._snapshot, self._explained.outlook
        done, total = self._progress(durations)
        begun = seconds(snapshot.stack.get("updated_time") or snapshot.stack.get("creation_time"))
        head = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=max(total, 1), completed=done, width=24, complete_style=_colour(snapshot.status))
        elapsed = "" if begun is None or snapshot.at_rest else lasting(now - begun)
        status = Text(str(snapshot.stack["stack_status"]), style=_colour(snapshot.status))
        times = ", ".join(part for part in (elapsed, left(outlook)) if part)
        head.add_row(Text(snapshot.name, style="bold"), status, bar, f"{done}/{total}", Text(times, style="dim"))
        return head

    def _progress(self, durations: Durations) -> tuple[int, int]:
        """Return the numbers of finished and planned resources. Deleted resources, which are unlisted, are finished."""
        resources, outlook = self._snapshot.resources, self._explained.outlook
        if self._snapshot.action == "DELETE":
            deleted = durations.gone(resources)
            return deleted, len(resources) + deleted
        if outlook.planned:
            return outlook.done, outlook.planned
        return sum(resource.at_rest for resource in resources), len(resources)

    def _trouble(self) -> list[Text]:
        """Return the problems of the stack as a whole."""
        return [Text(line, "yellow") for line in (self._explained.unseen, self._explained.waiting) if line]

    def _tally(self) -> list[Text]:
        """Count resources that failed, are in progress, or wait."""
        resources = self._snapshot.resources
        counts = {
            "failed": sum(resource.status == FAILED for resource in resources),
            "under way": sum(resource.status == IN_PROGRESS for resource in resources),
            "waiting": sum(resource.begins for resource in resources),
            "on their way out": sum(len(resource.leftovers) for resource in resources),
        }
        shown_counts = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        return [Text(shown_counts, style="dim")] if shown_counts else []


def _most_interesting(lines: Sequence[Line], room: int) -> tuple[list[Line], int]:
    """Choose failed, moving and waiting resources before resources at rest.

    The lines have no branches, since there are gaps between them.
    """
    ranked = sorted(lines, key=lambda line: _interest(line.resource))
    return [Line("", line.resource) for line in ranked[:room]], len(lines) - room


def _interest(resource: ResourceView) -> int:
    if resource.status == FAILED:
        return 0
    if resource.status == IN_PROGRESS:
        return 1
    return 2 if resource.begins else 3


def _row(line: Line, durations: Durations, now: float, reason: Reason | None) -> Sequence[Text]:
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
        Text(_why(resource, reason), "red" if resource.status == FAILED else "dim", no_wrap=True, overflow="ellipsis"),
    )


def _why(resource: ResourceView, reason: Reason | None) -> str:
    if resource.status == FAILED:
        return resource.reason
    if reason is not None:
        return reason.words
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
    if event.get("requested_by"):
        reason = f"{reason} (by {event['requested_by']})" if reason else f"by {event['requested_by']}"
    text = Text.assemble((at, "dim"), "  ", (f"{status:<20}", _colour(status.partition("_")[2])), "  ")
    return text.append(event["resource_name"]).append(f"  {reason}" if reason else "", style="dim")


def table(columns: Sequence[str], rows: Rows) -> RenderableType:
    """Render a table after an empty line; long text continues on the next line of its column."""
    grid = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return Group("", grid)


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
    """Render resources, each with its leftovers below it."""
    rows: Rows = [
        [name, item.type, status_text(f"{item.action}_{item.status}"), item.handle, _reason(item)]
        for resource in resources
        for name, item in ((resource.name, resource), *(("└ leftover", old) for old in resource.leftovers))
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


def explained_head(stack: Mapping[str, Any], explained: Explained) -> RenderableType:
    """Render the state of a stack, the number of resources not at rest, and the estimate with its method."""
    outlook = explained.outlook
    moving = outlook.planned - outlook.done
    head = Text.assemble((str(stack["stack_name"]), "bold"), " is ", status_text(stack["stack_status"]))
    head.append(f": {moving} of {outlook.planned} resources are not at rest")
    if outlook.left_s is not None:
        head.append(f", {left(outlook)}")
    return Group(
        head, *(Text(f"  {line}", "dim") for line in (explained.unseen, explained.waiting, how(outlook)) if line)
    )


def reasons_tree(reasons: Sequence[Reason], now: float) -> RenderableType:
    """Render causes in full, and their consequences in a line each."""
    parts: list[RenderableType] = []
    for prefix, reason in arranged(reasons):
        style = "red" if reason.why == "failed" else "dim" if reason.follows else "yellow"
        name = reason.name + (" (leftover)" if reason.leftover else "")
        kind = f"  {reason.type.removeprefix('OS::')}  "
        head = Text.assemble((prefix, "dim"), (name, "bold"), (kind, "dim"), (reason.state + since(reason, now), style))
        if prefix and reason.follows:
            parts.append(head.append(f"  {reason.words}", "dim"))
            continue
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for label, text in details(reason, now):
            grid.add_row(" " * (len(prefix) + 2) + label, text)
        parts += [head, grid]
    return Group(*parts)


def at_rest(resource: ResourceView, now: float) -> RenderableType:
    """Render a resource at rest."""
    state = Text.assemble((resource.name, "bold"), (f"  {resource.type}  ", "dim"), (resource.state, "green"))
    seen = f"{resource.presence}{f', {resource.seen}' if resource.seen else ''}"
    if resource.presence and resource.seen_at is not None:
        seen += f"; nothing new for {lasting(now - resource.seen_at)}"
    lines = ["it waits for nothing: it is at rest", *([f"last seen: {seen}"] if seen else ())]
    return Group(state, *(Text(f"  {line}", "dim") for line in lines))
