"""Types with handlers as a cloud: the verbs of the port call the methods of their classes (ADR 0021).

Each resource is a record with the token of its creation, stored before `handle_create` is called. An interrupted
creation is not continued: the result is deleted, and a new resource is created. A call of the port waits for handlers
`call_s` at most; they continue in their threads, and a later observation reports the result. A handler that runs longer
than `hang_s` loses its turn.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from homeostat.clouds.port import Answer, Change, ChangeNotice, Cloud, Creation, Operation
from homeostat.model.errors import Rejected, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.plugins import handlers
from homeostat.plugins.clients import Missing
from homeostat.plugins.exception import EntityNotFound
from homeostat.plugins.handlers import Handlers
from homeostat.plugins.resource import Resource
from homeostat.plugins.things import BEGUN, BURIED, DONE, LEASE_S, POLLED, StoredThing, Things, Turn
from homeostat.plugins.translation import TranslationRule
from homeostat.plugins.types import DELETING, WORKING, kind_of_class
from homeostat.store.database import Database

LOG = logging.getLogger(__name__)
REFRESH_S = 10.0
"""Time for which an observation at rest stays valid while further resources, in progress, are observed every second."""
SNAPSHOT = "snapshot"
FINDER = re.compile(r"(?:find|get)_(?P<kind>\w+?)(?:_id)?(?:_by_name_or_id)?")
"""Matches names of methods that look up one kind of object."""
Clouds = Callable[[str], Cloud]


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits.

    Attributes:
        call_s: How long a call of the port waits for handlers.
        hang_s: How long a handler may take before it loses its turn.
    """

    call_s: float = 5.0
    hang_s: float = 300.0


class HandlerPool:
    """The heartbeat of running handlers: renews their turns until they hang.

    Args:
        patience: The time limits.
        monotonic: A monotonic clock, in seconds.
    """

    def __init__(self, patience: Patience, monotonic: Callable[[], float]) -> None:
        self._patience = patience
        self._monotonic = monotonic
        self._running: dict[int, tuple[Turn, float]] = {}
        self._hanging: set[int] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def run(self, turn: Turn, act: Callable[[Turn], None]) -> None:
        with self._lock:
            self._running[id(turn)] = (turn, self._monotonic())
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="plugin-turns", daemon=True)
                self._thread.start()
        try:
            act(turn)
        finally:
            with self._lock:
                del self._running[id(turn)]
                hung = id(turn) in self._hanging
                self._hanging.discard(id(turn))
            if hung:
                LOG.warning("the handler of %s that hung has ended", turn.thing.handle)

    def _keep(self) -> None:
        while not self._stop.wait(LEASE_S / 3):
            for turn in self.alive():
                try:
                    turn.things.renew(turn)
                except Transient as error:
                    LOG.warning("the turn of %s is not renewed: %s", turn.thing.handle, error)
                except Exception:
                    LOG.exception("the turn of %s is not renewed", turn.thing.handle)

    def alive(self) -> list[Turn]:
        """Return the turns of the handlers that do not hang; log, once, each handler that hangs."""
        since = self._monotonic() - self._patience.hang_s
        with self._lock:
            running = list(self._running.values())
            new = [turn for turn, began_at in running if began_at < since and id(turn) not in self._hanging]
            self._hanging |= {id(turn) for turn in new}
        for turn in new:
            LOG.error("a handler of %s hangs: its turn is over", turn.thing.handle)
        return [turn for turn, began_at in running if began_at >= since and not turn.lost]

    def close(self) -> None:
        self._stop.set()


class PluginClouds:
    """The types with handlers, for all projects.

    Args:
        classes: Type name -> class.
        clouds: Returns the cloud of a project, in which names are resolved.
        monotonic: A monotonic clock. None runs handlers one after the other in the calling thread, without renewing
            their turns.
        patience: The time limits.
        threads: Number of handlers that run at once.
    """

    def __init__(
        self,
        db: Database,
        classes: Mapping[str, type[Resource]],
        clouds: Clouds | None = None,
        monotonic: Callable[[], float] | None = None,
        patience: Patience = Patience(),
        threads: int = 32,
    ) -> None:
        self.db = db
        self.classes = dict(classes)
        self.clouds = clouds
        self.patience = patience
        self.turns = HandlerPool(patience, monotonic) if monotonic is not None else None
        self.executor: Executor | None = None
        if monotonic is not None and classes:
            self.executor = ThreadPoolExecutor(threads, "plugin")
        self._made: dict[str, PluginCloud] = {}

    def of(self, project: str) -> "PluginCloud":
        """Return the cloud of one project."""
        return self._made.setdefault(project, PluginCloud(self, project))

    def close(self) -> None:
        """Stop without waiting for running handlers: the records contain all the data to continue."""
        if self.turns is not None:
            self.turns.close()
        if self.executor is not None:
            self.executor.shutdown(wait=False, cancel_futures=True)


class PluginCloud:
    """The cloud port of one project for types with handlers."""

    name = "plugins"
    listing_lag_s = 0.0

    def __init__(self, all_of_them: PluginClouds, project: str) -> None:
        self._all = all_of_them
        self._project = project
        self._things = Things(all_of_them.db, project)
        self._handlers = {
            kind_of_class(name): Handlers(plugin_class, name, project, self._resolve, self._peers)
            for name, plugin_class in all_of_them.classes.items()
        }
        self.kinds = frozenset(self._handlers)

    # -- looking -----------------------------------------------------------------------------------------------------

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        things, now = self._things.by_handle(kind, list(handles))
        # An observation calls methods of the plug-in, so at rest it is rarer than in progress.
        believed_s = REFRESH_S if any(thing.inner.phase != DONE for thing in things.values()) else 0.0
        is_due = partial(_is_due, believed_s)
        self._hand_over(kind, things)
        self._run([partial(self._attend, kind, thing, is_due) for thing in things.values() if is_due(thing, now)])
        return self._looks(kind, handles)

    def _hand_over(self, kind: str, things: Mapping[str, StoredThing]) -> None:
        """Pass signals to resources at rest; busy resources take theirs later."""
        of_kind = self._handlers[kind]
        if not of_kind.can("signal"):
            return
        signalled = self._things.signalled([thing.record_id for thing in things.values()])

        def one(record_id: str) -> None:
            turn = self._things.take(record_id, lambda thing, _now: handlers.may_refresh(thing), lambda _thing: None)
            if turn is not None:
                # Read again under the turn: its last holder may have taken some of the signals.
                left = self._things.signalled([record_id]).get(record_id, [])
                self._take_turn(turn, partial(of_kind.signal, signals=left))

        self._run([partial(one, record_id) for record_id in signalled])

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        things, now = self._things.by_token(kind, list(tokens))
        return [self._things.sought(things[token], now) if token in things else _absent("", now) for token in tokens]

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        """Return the handles of resources; there are no names besides handles."""
        things, _ = self._things.by_handle(kind, list(names))
        return [things[name].handle if name in things else None for name in names]

    def _looks(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        things, now = self._things.by_handle(kind, list(handles))
        return [things[handle].look(now) if handle in things else _absent(handle, now) for handle in handles]

    def _attend(self, kind: str, thing: StoredThing, is_due: Callable[[StoredThing, float], bool]) -> None:
        """Continue whatever is due: a poll, an interrupted deletion, or an observation at rest."""

        def change(current: StoredThing) -> None:
            # The turn was free although a handler had been called: the calling thread has died, or hangs. Repeating a
            # deletion is safe; the planner decides about every other action.
            if current.inner.phase == BEGUN and current.inner.action != "DELETE":
                handlers.interrupted(current)
            elif current.inner.phase == DONE:
                current.inner.looked_at = now

        now = self._things.now()
        turn = self._things.take(thing.record_id, is_due, change)
        if turn is None:
            return
        inner, of_kind = turn.thing.inner, self._handlers[kind]
        if inner.phase == POLLED:
            self._take_turn(turn, of_kind.poll)
        elif inner.phase == BEGUN:
            self._take_turn(turn, of_kind.delete)
        elif handlers.may_refresh(turn.thing):
            self._take_turn(turn, of_kind.refresh)
        else:
            turn.finish(lambda _thing: None)

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        self._run([partial(self._create, kind, intent) for intent in intents])
        things, now = self._things.by_token(kind, [intent.token for intent in intents])
        busy = Transient("all threads for handlers of plug-ins are taken", 2.0)
        return [things[intent.token].look(now) if intent.token in things else busy for intent in intents]

    def _create(self, kind: str, intent: Creation) -> None:
        turn = self._things.begin(kind, intent.token, intent.spec)
        if turn is not None:
            self._take_turn(turn, self._handlers[kind].create)

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        def wanted(change: Change) -> Callable[[StoredThing], None]:
            def begin(thing: StoredThing) -> None:
                handlers.want(thing, dict(change.spec["properties"]))
                handlers.begin(thing, "UPDATE", WORKING)

            return begin

        begins = {change.handle: wanted(change) for change in changes}
        return self._act(kind, begins, self._handlers[kind].update)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        of_kind = self._handlers[kind]
        before: dict[str, tuple[str, str]] = {}

        def begin(thing: StoredThing) -> None:
            before[thing.record_id] = (thing.inner.action, "COMPLETE" if thing.inner.phase == DONE else "IN_PROGRESS")
            # A deletion that is polled already is not started again, which would lose its progress.
            if not (thing.inner.action == "DELETE" and thing.inner.phase == POLLED):
                handlers.begin(thing, "DELETE", DELETING)

        def act(turn: Turn) -> None:
            if turn.thing.inner.phase == POLLED:
                of_kind.poll(turn)
            else:
                of_kind.delete(turn, before[turn.thing.record_id])

        return self._act(kind, dict.fromkeys(handles, begin), act)

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        return [self._operate(kind, operation) for operation in operations]

    def _operate(self, kind: str, operation: Operation) -> Answer:
        of_kind = self._handlers[kind]
        if operation.verb == SNAPSHOT and of_kind.can("snapshot_delete"):
            return self._promise_snapshot(kind, operation)
        if not of_kind.can(operation.verb):
            return Rejected("NotSupported", f"{operation.verb} of {kind.partition(':')[2]} is not supported.")

        def begin(thing: StoredThing) -> None:
            handlers.begin(thing, operation.verb.upper(), WORKING)

        (answer,) = self._act(
            kind, {operation.handle: begin}, lambda turn: of_kind.operate(turn, operation.verb, operation.arguments)
        )
        return answer

    def _promise_snapshot(self, kind: str, operation: Operation) -> Answer:
        """Report a snapshot as available that the deletion will create.

        `handle_snapshot_delete` creates the snapshot and deletes the resource in one call, so there is nothing to wait
        for before the deletion.
        """
        token, name = str(operation.arguments["token"]), str(operation.arguments["name"])

        def begin(thing: StoredThing) -> None:
            snapshots = [snapshot for snapshot in thing.seen.get("snapshots", ()) if snapshot["token"] != token]
            thing.seen["snapshots"] = [*snapshots, {"id": token, "token": token, "name": name, "status": "available"}]

        (answer,) = self._act(kind, {operation.handle: begin}, lambda turn: _only_kept(turn))
        return answer

    def _act(
        self, kind: str, begins: Mapping[str, Callable[[StoredThing], None]], act: Callable[[Turn], None]
    ) -> list[Answer]:
        """Run an action, and return the observations afterwards.

        Args:
            begins: Handle -> the first change of the action.
            act: Runs the handler.
        """
        things, _ = self._things.by_handle(kind, list(begins))
        begun: set[str] = set()

        def one(handle: str, thing: StoredThing) -> None:
            turn = self._things.take(thing.record_id, lambda _thing, _now: True, begins[handle])
            if turn is not None:
                begun.add(handle)
                self._take_turn(turn, act)

        self._run([partial(one, handle, thing) for handle, thing in things.items()])
        looks = self._looks(kind, list(begins))
        busy = Transient("a handler of it is at work", 1.0)
        waiting = {handle for handle, thing in things.items() if handle not in begun and thing.status != BURIED}
        # A resource named by the id of its record keeps this handle, even if it has got a physical id meanwhile.
        return [
            busy if handle in waiting else replace(look, handle=handle)
            for handle, look in zip(begins, looks, strict=True)
        ]

    # -- running -----------------------------------------------------------------------------------------------------

    def _take_turn(self, turn: Turn, act: Callable[[Turn], None]) -> None:
        if self._all.turns is None:
            act(turn)
        else:
            self._all.turns.run(turn, act)

    def _run(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Run jobs in parallel, and wait for them as long as a call may take.

        Late jobs are cancelled if still queued; running jobs continue unattended.

        Raises:
            Transient: The database does not answer.
        """
        executor = self._all.executor
        if executor is None:
            for job in jobs:
                job()
            return
        futures = [executor.submit(job) for job in jobs]
        ended, late = wait(futures, self._all.patience.call_s)
        for future in late:
            if not future.cancel():
                future.add_done_callback(_report)
        errors = [error for future in ended if (error := future.exception()) is not None]
        if errors:
            raise errors[0]

    def _resolve(self, rule: TranslationRule, value: Any) -> Any:
        """Resolve a name to an id, by the client of the rule or else by the project's cloud."""
        finder = str(rule.finder)
        if rule.client_plugin is not None and not isinstance(rule.client_plugin, Missing):
            find = getattr(rule.client_plugin, finder)
            return find(value) if rule.entity is None else find(rule.entity, value)
        named = FINDER.fullmatch(finder)
        kind = rule.entity or (named["kind"] if named is not None else "")
        if not kind or self._all.clouds is None:
            raise EntityNotFound(entity="Client that has", name=finder)
        (id,) = self._all.clouds(self._project).resolve(kind, [str(value)])
        if id is None:
            raise EntityNotFound(entity=kind, name=value)
        return id

    def _peers(self, stack_id: str) -> dict[str, Resource]:
        """Return the resources of a stack whose types have handlers, by name, as stored."""
        return {
            owner.name: self._handlers[thing.kind].stored(thing, owner)
            for owner, thing in self._things.in_stack(stack_id, self.kinds)
        }

    # -- the rest ----------------------------------------------------------------------------------------------------

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """Return no notices: handlers send none."""
        return iter(())

    def close(self) -> None:
        """Do nothing: the threads belong to `PluginClouds`."""


def _is_due(believed_s: float, thing: StoredThing, now: float) -> bool:
    """Return whether anything is due.

    Args:
        believed_s: How long an observation at rest stays valid.
        now: The agreed time.
    """
    inner = thing.inner
    if inner.held_until > now or inner.due_at > now:
        return False
    return inner.phase != DONE or (handlers.may_refresh(thing) and inner.looked_at + believed_s <= now)


def _absent(handle: str, now: float) -> Observation:
    return Observation(Presence.ABSENT, handle, seen_at=now, reason="there is no such thing")


def _only_kept(turn: Turn) -> None:
    """Give the turn back: the change at its beginning was everything."""
    turn.finish(lambda _thing: None)


def _report(future: Future[None]) -> None:
    error = future.exception() if not future.cancelled() else None
    if error is not None:
        LOG.error("a handler that was no longer waited for has failed", exc_info=error)
