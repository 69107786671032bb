"""Following a stack until it is at rest, shown as a live picture, as lines, or not at all."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

from rich.console import Console, RenderableType
from rich.live import Live

from homeostat.cli.client import Client, Wire
from homeostat.cli.errors import Unreachable
from homeostat.cli.pictures import Durations, StackPicture, event_line
from homeostat.cli.views import Snapshot

ASK_S = 0.2
ASK_SHARE = 0.25
"""Large stacks are asked for less often: asking takes at most this share of the time."""
REASONS = 100
"""More than that is not on one screen."""
PATIENCE_S = 60.0
"""How long a service that does not answer (it may be starting again) is waited for."""


class View(Protocol):
    """Shows a stack again and again."""

    explains: bool
    """Is it to be told why things wait?"""

    def show(self, snapshot: Snapshot) -> None: ...

    def silence(self, error: Unreachable) -> None:
        """The service does not answer now."""


class LiveView:
    """The tree, drawn in place."""

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
        """The picture stays as it is; its clocks go on."""

    def _picture(self) -> RenderableType:
        if self._newest is None:
            return ""
        return self._newest.draw(self._durations, time.time(), self._console.height)


class EventLines:
    """A line an event, each once; `write` gets them as the wire has them."""

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
        """Events are stored; none is missed."""


class SnapshotLines:
    """The stack and its resources as JSON, a line for every change."""

    explains = False

    def __init__(self) -> None:
        self._told: Any = None

    def show(self, snapshot: Snapshot) -> None:
        told = {"stack": snapshot.stack, "resources": snapshot.wires}
        if told != self._told:
            write_json(told)
            self._told = told

    def silence(self, error: Unreachable) -> None:
        """The next change is told when there is an answer again."""


class Unseen:
    """Shows nothing."""

    explains = False

    def show(self, snapshot: Snapshot) -> None: ...

    def silence(self, error: Unreachable) -> None: ...


@contextlib.contextmanager
def view_for(client: Client, console: Console, after: str | None) -> Iterator[View]:
    """A live picture on a terminal; otherwise a line an event, from the event `after` on."""
    if console.is_terminal:
        with LiveView(console) as live:
            yield live
    else:
        yield EventLines(client, partial(print_event, console), after)


def print_event(console: Console, event: Wire) -> None:
    console.print(event_line(event), soft_wrap=True)


def follow(client: Client, identity: str, view: View, *, until_rest: bool = True) -> Snapshot:
    """Show the stack until it is at rest (or for ever). Gives the last snapshot.

    Fails: Unreachable when the service stays away, Fault when the stack is not there.
    """
    answered_at = time.monotonic()
    while True:
        asked_at = time.monotonic()
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
        time.sleep(max(ASK_S, (time.monotonic() - asked_at) / ASK_SHARE))


def look(client: Client, identity: str, *, outputs: bool = False, explained: bool = False) -> Snapshot:
    """The stack with its resources, those of nested stacks too."""
    stack = client.stack(identity, outputs=outputs)
    return Snapshot.of(stack, client.resources(stack), client.explain(stack, REASONS) if explained else None)


def write_json(value: Any) -> None:
    """One document on one line, at once: readers follow along."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
