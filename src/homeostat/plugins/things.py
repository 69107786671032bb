"""The records of things whose types have handlers, and the right to run those handlers.

The handlers of one thing run one at a time, across all processes: the right to run them is a *turn*, a number in the
record with a lease (a fencing token, like the epoch of a shard). A thread that has lost its turn stores nothing more,
except the physical id of what it has created: that is kept in any case, so that it can be deleted.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Connection

from homeostat.model.errors import Superseded
from homeostat.model.observed import Observation, Presence
from homeostat.model.retry import RetryPolicy
from homeostat.plugins.types import WORKING
from homeostat.store import events
from homeostat.store.builtin import plugin_records, records
from homeostat.store.builtin.records import Owner
from homeostat.store.database import Database
from homeostat.store.schema import as_stored
from homeostat.store.schema.rows import RecordRow
from homeostat.store.shards import orphans
from homeostat.store.shards.orphans import Orphan

LOG = logging.getLogger(__name__)
LEASE_S = 15.0
"""Length of the lease of a turn: the turn of a thread that has died ends after that."""
GONE, BURIED = "gone", "buried"
"""Status words beside those of `types`.

A `gone` thing is missing although the service has not deleted it. A `buried` thing was deleted and may still be
created: its creation was interrupted, and the thread that had begun it may only be frozen.
"""
SIGNAL = "SIGNAL"
"""The action of events that report signals."""
SWEEP = RetryPolicy(first_s=5.0, longest_s=120.0)
"""Deletions of a buried thing."""
BEGUN, POLLED, DONE = "begun", "polled", "done"
"""Phases of an action: its handler was called and has not returned; it is polled for completion; it has ended."""


@dataclass(slots=True)
class Inner:
    """The part of a record that handlers and the service keep for themselves. Times are seconds since the epoch.

    Attributes:
        name: The name of the resource.
        physical_name: The physical name of the resource.
        properties: The properties that the thing has.
        wanted: The properties that the newest update wants, until it comes to its end; None if there is none.
        action: The action in progress, or the last one.
        phase: The phase of the action.
        progress: What the handler of the action returned, for its polls.
        turn: The number of the newest turn.
        held_until: The end of that turn's lease; 0.0 if it was given back.
        due_at: The thing is not polled before this time.
        tries: Acts in a row that failed for reasons that time mends.
        looked_at: When the thing was last looked at.
        data: Texts that handlers keep, by name.
        redacted: The names of those texts that are secret.
        metadata: The metadata that a handler has set; None if none has.
        late: An id was stored by a handler that had lost its turn.
        interrupted: The creation was interrupted before an id was known.
        buried_until: When it is certain that a buried thing is not created any more; 0.0 if it is not buried.
    """

    name: str = ""
    physical_name: str = ""
    properties: dict[str, Any] = field(default_factory=dict)
    wanted: dict[str, Any] | None = None
    action: str = "CREATE"
    phase: str = BEGUN
    progress: Any = None
    turn: int = 1
    held_until: float = 0.0
    due_at: float = 0.0
    tries: int = 0
    looked_at: float = 0.0
    data: dict[str, str] = field(default_factory=dict)
    redacted: list[str] = field(default_factory=list)
    metadata: Any = None
    late: bool = False
    interrupted: bool = False
    buried_until: float = 0.0


@dataclass(slots=True)
class Made:
    """One thing, as its record.

    Attributes:
        seen: What `observe` returns: status, action, id, fault, reference, attributes, live, snapshots, and in `unsure`
            the names of properties that updates may have changed which did not come to their end.
        inner: What only the service and the handlers see.
    """

    record_id: str
    kind: str
    token: str
    link: str
    seen: dict[str, Any]
    inner: Inner

    @classmethod
    def of(cls, row: RecordRow) -> "Made":
        return cls(row.id, row.kind, row.token, row.link, dict(row.object), Inner(**(row.secret or {})))

    @property
    def handle(self) -> str:
        return self.link or self.record_id

    @property
    def status(self) -> str:
        return str(self.seen.get("status", ""))

    def set_status(self, status: str, fault: str = "") -> None:
        """Set the status that `observe` returns."""
        self.seen["status"] = status
        if fault:
            self.seen["fault"] = fault
        else:
            self.seen.pop("fault", None)

    def begin(self, action: str, status: str) -> None:
        """Begin an action, whose handler is about to be called."""
        self.inner.action, self.inner.phase, self.inner.progress = action, BEGUN, None
        self.inner.due_at = 0.0
        self.seen["action"] = action
        self.set_status(status)

    def look(self, now: float) -> Observation:
        if self.status in (GONE, BURIED):
            return Observation(Presence.ABSENT, self.handle, seen_at=now, reason=str(self.seen.get("fault", "")))
        return Observation(Presence.PRESENT, self.handle, dict(self.seen), now)


@dataclass(slots=True)
class Turn:
    """The right to run handlers of a thing; instances of its class store their data through it.

    Attributes:
        things: The records of the project.
        made: The thing as it was when it was last changed under this turn.
        number: The number of the turn.
        owner: The resource that the thing belongs to; None if there is no row.
        lost: Another thread has the turn by now.
        unsaved: A physical id that could not be stored yet; the next change stores it.
        orphan: The physical id of a thing that was created after its record was deleted.
    """

    things: "Things"
    made: Made
    number: int
    owner: Owner | None = None
    lost: bool = False
    unsaved: str | None = None
    orphan: str | None = None

    def store_id(self, physical_id: str | None) -> None:
        """Store the physical id, also after the turn was lost, unless a newer id is known then."""

        def keep(made: Made) -> None:
            if self.lost and (physical_id is None or made.seen.get("id") not in (None, physical_id)):
                return
            made.seen["id"] = physical_id
            # The thread that deletes the thing did not know this id, so its deletion must not count as complete.
            made.inner.late = made.inner.late or self.lost
            if made.status == BURIED:  # delete it now, not at the next sweep
                made.inner.due_at = 0.0

        # Kept in memory until it is stored: if the database does not answer now, the next change stores it.
        self.unsaved = physical_id
        if not self.things.change(self, keep, at_any_time=True):
            self.orphan = physical_id
        self.unsaved = None

    def store_data(self, key: str, value: str | None, *, redact: bool) -> None:
        def keep(made: Made) -> None:
            made.inner.data.pop(key, None)
            made.inner.redacted = [name for name in made.inner.redacted if name != key]
            if value is not None:
                made.inner.data[key] = value
                made.inner.redacted += [key] if redact else []

        self.must(keep)

    def store_metadata(self, metadata: Any) -> None:
        def keep(made: Made) -> None:
            made.inner.metadata = as_stored(metadata)

        self.must(keep)

    def must(self, mutate: Callable[[Made], None], *, name: bool = False) -> None:
        """Change the thing, which requires the turn.

        Args:
            mutate: Makes the change.
            name: Make the physical id the handle from now on.

        Raises:
            Superseded: Another thread has the turn by now.
        """
        if not self.things.change(self, mutate, name=name):
            raise Superseded(f"another worker acts on {self.made.handle} by now")

    def finish(self, mutate: Callable[[Made], None]) -> bool:
        """Make a last change and give the turn back; return False if it was lost before."""
        return self.things.change(self, mutate, give_back=True)


class Things:
    """The records of one project. Safe to share between threads."""

    def __init__(self, db: Database, project: str) -> None:
        self.db = db
        self.project = project

    # -- looking -----------------------------------------------------------------------------------------------------

    def by_handle(self, kind: str, handles: list[str]) -> tuple[dict[str, Made], float]:
        """Return the things that exist, by handle, and the agreed time."""
        with self.db.read() as tx:
            rows = plugin_records.by_handle(tx, kind, self.project, handles)
            now = self.db.now_of(tx)
        return {handle: Made.of(row) for handle, row in rows.items()}, now

    def by_token(self, kind: str, tokens: list[str]) -> tuple[dict[str, Made], float]:
        """Return the things that exist, by token, and the agreed time."""
        with self.db.read() as tx:
            rows = plugin_records.by_token(tx, kind, tokens)
            now = self.db.now_of(tx)
        return {token: Made.of(row) for token, row in rows.items()}, now

    def in_stack(self, stack_id: str, kinds: Collection[str]) -> list[tuple[Owner, Made]]:
        """Return the things of these kinds that belong to resources of a stack, each with its resource."""
        with self.db.read() as tx:
            found = [Made.of(row) for row in plugin_records.in_stack(tx, stack_id, kinds)]
            owners = records.owners(tx, [records.key_of(made.token) for made in found])
        return [(owners[key], made) for made in found if (key := records.key_of(made.token)) in owners]

    # -- turns -------------------------------------------------------------------------------------------------------

    def begin(self, kind: str, token: str, spec: Mapping[str, Any]) -> Turn | None:
        """Store the record of a new thing, before its handler is called, and take the first turn.

        Returns:
            The turn; None if there is a thing with this token already.
        """
        with self.db.write() as tx:
            if plugin_records.by_token(tx, kind, [token]):
                return None
            now = self.db.now_of(tx)
            key, _, attempt = token.rpartition("-")
            owner = records.owners(tx, [key]).get(key)
            # Handlers look for their things by name. If an earlier attempt was given up and may still appear, this one
            # needs another name, or the two would be confused.
            name = str(spec["physical_name"])
            inner = Inner(
                owner.name if owner is not None else name,
                f"{name}-{attempt}" if orphans.may_appear(tx, key) else name,
                dict(spec["properties"]),
                held_until=now + LEASE_S,
            )
            made = Made(str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind} {token}")), kind, token, "", {"id": None}, inner)
            made.begin("CREATE", WORKING)
            # Another thread may have begun the same creation since the look above: one of the two has the turn.
            added = plugin_records.add(
                self.db, tx, made.record_id, kind, self.project, token, made.seen, asdict(inner), now
            )
        return Turn(self, made, inner.turn, owner) if added else None

    def take(self, record_id: str, may: Callable[[Made, float], bool], change: Callable[[Made], None]) -> Turn | None:
        """Take the turn, and make a change.

        Returns:
            The turn; None if the thing does not exist, another thread has the turn, or `may(thing, now)` is False.
        """
        with self.db.write() as tx:
            row = plugin_records.locked(self.db, tx, record_id)
            now = self.db.now_of(tx)
            if row is None:
                return None
            made = Made.of(row)
            if made.inner.held_until > now or not may(made, now):
                return None
            made.inner.turn += 1
            made.inner.held_until = now + LEASE_S
            change(made)
            plugin_records.save(tx, made.record_id, made.seen, asdict(made.inner), now)
            key = records.key_of(made.token)
            owner = records.owners(tx, [key]).get(key)
        return Turn(self, made, made.inner.turn, owner)

    def change(
        self,
        turn: Turn,
        mutate: Callable[[Made], None],
        *,
        give_back: bool = False,
        at_any_time: bool = False,
        name: bool = False,
    ) -> bool:
        """Change the thing under a turn, and renew the lease of the turn or give it back.

        Args:
            turn: The turn.
            mutate: Makes the change.
            give_back: Give the turn back.
            at_any_time: Make the change even if the turn was lost.
            name: Make the physical id the handle, unless another thing has that handle.

        Returns:
            False if nothing was changed, since the turn was lost or the record was deleted.
        """
        with self.db.write() as tx:
            row = plugin_records.locked(self.db, tx, turn.made.record_id)
            if row is None:
                turn.lost = True
                return False
            now = self.db.now_of(tx)
            made = Made.of(row)
            if made.inner.turn != turn.number:
                turn.lost = True
                if at_any_time:
                    mutate(made)
                    plugin_records.save(tx, made.record_id, made.seen, asdict(made.inner), now)
                return at_any_time
            if turn.unsaved is not None:
                made.seen["id"] = turn.unsaved
            mutate(made)
            physical_id = str(made.seen.get("id") or "")
            if (
                name
                and physical_id
                and plugin_records.claim_handle(self.db, tx, made.record_id, made.kind, physical_id)
            ):
                made.link = physical_id
            made.inner.held_until = 0.0 if give_back else now + LEASE_S
            plugin_records.save(tx, made.record_id, made.seen, asdict(made.inner), now)
        turn.made = made
        return True

    def now(self) -> float:
        """Return the agreed time, in seconds since the epoch."""
        with self.db.read() as tx:
            return self.db.now_of(tx)

    def renew(self, turn: Turn) -> None:
        self.change(turn, lambda _made: None)

    def sought(self, made: Made, now: float) -> Observation:
        """Return the answer of `find` for a thing.

        A buried thing is reported as present whenever it is time to delete it once more: the sweep for orphans then
        does so.
        """
        if made.status != BURIED:
            return made.look(now)
        if made.inner.buried_until <= now:
            with self.db.write() as tx:
                plugin_records.remove(tx, made.record_id)
        elif made.inner.due_at <= now:
            return Observation(Presence.PRESENT, made.handle, dict(made.seen), now)
        return made.look(now)

    # -- signals -----------------------------------------------------------------------------------------------------

    def signalled(self, record_ids: list[str]) -> dict[str, list[Any]]:
        """Return the signals that these things have not taken yet, as (seq, object, at), by record."""
        with self.db.read() as tx:
            return plugin_records.signals(tx, record_ids)

    def took(self, turn: Turn, seq: int, at: float, reason: str) -> None:
        """Delete a signal that was taken.

        Args:
            turn: The turn.
            seq: The number of the signal.
            at: When it arrived.
            reason: The reason of the event that reports it; "" for no event.
        """
        with self.db.write() as tx:
            plugin_records.forget_signal(tx, seq, at)
            if reason:
                self._event(tx, turn.owner, SIGNAL, reason)

    def record(self, turn: Turn, action: str, reason: str) -> None:
        """Store an event of the resource that does not change its status."""
        with self.db.write() as tx:
            self._event(tx, turn.owner, action, reason)

    def _event(self, tx: Connection, owner: Owner | None, action: str, reason: str) -> None:
        if owner is not None:
            events.append(tx, owner.stack_id, [owner.event(action, reason)], self.db.now_of(tx))

    # -- the end -----------------------------------------------------------------------------------------------------

    def remove(self, turn: Turn) -> bool:
        """Delete the record of a deleted thing.

        Returns:
            False if the deletion is not complete, since an id was stored late, or the turn was lost.
        """
        with self.db.write() as tx:
            row = plugin_records.locked(self.db, tx, turn.made.record_id)
            now = self.db.now_of(tx)
            if row is None:
                return True
            made = Made.of(row)
            if made.inner.turn != turn.number:
                turn.lost = True
                return False
            # A frozen handler has stored the id of what it created while this thread was deleting: delete that, too.
            if made.inner.late:
                made.inner.late, made.inner.held_until = False, 0.0
                made.begin("DELETE", made.status)
                plugin_records.save(tx, made.record_id, made.seen, asdict(made.inner), now)
                return False
            if made.inner.interrupted:
                self._bury(tx, made, now)
            else:
                plugin_records.remove(tx, made.record_id)
        return True

    def _bury(self, tx: Connection, made: Made, now: float) -> None:
        """Keep the record of a deleted thing whose creation may still happen, and have it deleted again and again.

        Its token is looked for like those of orphans in other clouds.
        """
        inner = made.inner
        if not inner.buried_until:
            inner.buried_until, inner.tries = now + orphans.PATIENCE_S, 0
            orphans.add(self.db, tx, [Orphan(made.token, made.kind, self.project)], now)
        inner.phase, inner.progress, inner.held_until = DONE, None, 0.0
        inner.due_at = now + SWEEP.delay_s(inner.tries + 1)
        inner.tries += 1
        made.seen["id"] = None
        made.set_status(BURIED, "it was deleted")
        plugin_records.save(tx, made.record_id, made.seen, asdict(inner), now)
