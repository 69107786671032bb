"""Follows a stack until it is at rest, and shows it as a live picture, as lines, or not at all."""

import contextlib
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from homeostat.cli import pictures, views
from homeostat.cli.client import Client, Wire
from homeostat.cli.errors import FAILED, OK, Problem, Unreachable
from homeostat.cli.output import console, write_json
from homeostat.cli.pictures import Durations, StackPicture, event_line
from homeostat.cli.views import Snapshot

POLL_S = 0.2
"""Shortest interval between two requests for the state."""
POLL_SHARE = 0.25
"""Requests take at most this share of the time: large stacks are requested less often."""
REASONS = 100
"""Number of reasons requested: more do not fit on a screen."""
PATIENCE_S = 60.0
"""Longest wait for a service that does not answer: it may be restarting."""


class View(Protocol):
    """A view of a stack, updated repeatedly."""

    explains: bool
    """Whether the view needs explanations."""

    def show(self, snapshot: Snapshot) -> None: ...

    def silence(self, error: Unreachable) -> None:
        """Handle a failed request: the service does not answer now."""


class LiveView:
    """The tree, redrawn in place."""

    explains = True

    def __init__(self, console: Console) -> None:
        self._durations = Durations()
        self._console = console
        self._newest: StackPicture | None = None
        self._live = Live(console=console, get_renderable=self._picture, refresh_per_second=10)

    def __enter__(self) -> "LiveView":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, snapshot: Snapshot) -> None:
        self._durations.see(snapshot.resources, time.time())
        self._newest = StackPicture(snapshot)

    def silence(self, error: Unreachable) -> None:
        """Keep the picture; its clocks keep running."""

    def _picture(self) -> RenderableType:
        if self._newest is None:
            return ""
        return self._newest.draw(self._durations, time.time(), self._console.height)


class EventLines:
    """A line per event; `write` gets events in the format of the API."""

    explains = False

    def __init__(self, client: Client, write: Callable[[Wire], None], after: str | None) -> None:
        self._client = client
        self._write = write
        self._after = after

    def show(self, snapshot: Snapshot) -> None:
        for event in self._client.events(snapshot.stack, self._after):
            self._write(event)
            self._after = event["id"]

    def silence(self, error: Unreachable) -> None:
        """Do nothing: events are stored, so the next request returns them all."""


class SnapshotLines:
    """The stack and its resources as JSON, a line per change."""

    explains = False

    def __init__(self) -> None:
        self._written: Any = None

    def show(self, snapshot: Snapshot) -> None:
        document = {"stack": snapshot.stack, "resources": snapshot.wires}
        if document != self._written:
            write_json(document)
            self._written = document

    def silence(self, error: Unreachable) -> None:
        """Do nothing: the next change is written when the service answers again."""


class Unseen:
    """Shows nothing."""

    explains = False

    def show(self, snapshot: Snapshot) -> None: ...

    def silence(self, error: Unreachable) -> None: ...


@contextlib.contextmanager
def view_for(client: Client, console: Console, after: str | None) -> Iterator[View]:
    """Provide a live picture on a terminal, otherwise a line per event.

    Args:
        after: Id of the event after which lines begin; None for all.
    """
    if console.is_terminal:
        with LiveView(console) as live:
            yield live
    else:
        yield EventLines(client, partial(print_event, console), after)


def print_event(console: Console, event: Wire) -> None:
    console.print(event_line(event), soft_wrap=True)


def follow(client: Client, identity: str, view: View, *, until_rest: bool = True) -> Snapshot:
    """Show the stack until it is at rest (or until it is deleted); return the last snapshot.

    Raises:
        Unreachable: The service does not answer for too long.
        Fault: The stack does not exist.
    """
    answered_at = time.monotonic()
    while True:
        requested_at = time.monotonic()
        try:
            snapshot = look(client, identity, explained=view.explains)
            view.show(snapshot)
            answered_at = time.monotonic()
        except Unreachable as error:
            if time.monotonic() - answered_at > PATIENCE_S:
                raise
            view.silence(error)
        else:
            if snapshot.gone or (until_rest and snapshot.at_rest):
                return snapshot
        time.sleep(max(POLL_S, (time.monotonic() - requested_at) / POLL_SHARE))


def look(client: Client, identity: str, *, outputs: bool = False, explained: bool = False) -> Snapshot:
    """Return the stack with its resources, including those of nested stacks."""
    stack = client.stack(identity, outputs=outputs)
    return Snapshot.of(stack, client.resources(stack), client.explain(stack, REASONS) if explained else None)


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
    """Report the result of the operation: outputs, or failures with reasons."""
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
    failed = [resource for resource in last.resources if resource.status == views.FAILED]
    lines = [f"{last.name} is {last.stack['stack_status']}: {last.stack['stack_status_reason']}"]
    lines += [f"  {resource.name} ({resource.type}) {resource.action} failed: {resource.reason}" for resource in failed]
    return [*lines, f"repair the cause and run the command again; see `homeostat explain {last.name}`"]
