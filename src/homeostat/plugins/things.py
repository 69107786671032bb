"""The records of resources whose types have handlers, and the right to run these handlers.

The handlers of a resource run one at a time, across all processes: the right to run them is a *turn*, a number in the
record with a lease (a fencing token, like the epoch of a shard). A thread that has lost its turn stores nothing more,
except the physical id of an object just created: the id is always stored, for a later deletion.
"""

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from homeostat.model.errors import Superseded
from homeostat.model.observed import Observation, Presence
from homeostat.model.retry import RetryPolicy
from homeostat.plugins.types import WORKING
from homeostat.store import events
from homeostat.store.builtin import plugin_records, records
from homeostat.store.builtin.records import Owner
from homeostat.store.database import Database, Transaction
from homeostat.store.schema import as_stored
from homeostat.store.schema.rows import RecordRow
from homeostat.store.shards import orphans
from homeostat.store.shards.orphans import Orphan

LEASE_S = 15.0
"""Length of the lease of a turn: a turn ends this long after its thread has died."""
GONE, BURIED = "gone", "buried"
"""Status words besides the words of `types`.

A `gone` object is missing although the service has not deleted it. A `buried` one was deleted and may still be
created: its creation was interrupted, and the creating thread may only be frozen.
"""
SIGNAL = "SIGNAL"
"""The action of events that report signals."""
SWEEP = RetryPolicy(first_s=5.0, longest_s=120.0)
"""Intervals between deletions of a buried resource."""
BEGUN, POLLED, DONE = "begun", "polled", "done"
"""Phases of an action: its handler was called and has not returned; it is polled for completion; it has ended."""


@dataclass(slots=True)
class Inner:
    """The part of a record that only handlers and the service see. Times are seconds since the epoch.

    Attributes:
        physical_name: Physical name of the resource.
        properties: Present properties.
        wanted: Properties of the newest update, until its success; None without an update.
        action: The action in progress, or the last one.
        progress: Return value of the action's handler, for polls.
        turn: Number of the newest turn.
        held_until: End of the lease of the newest turn; 0.0 after its return.
        due_at: No poll before this time.
        tries: Number of consecutive transient failures.
        looked_at: Time of the last observation.
        data: Texts stored by handlers, by name.
        redacted: Names of the secret texts in `data`.
        metadata: Metadata set by a handler; None if unset.
        late: An id was stored by a handler after the loss of its turn.
        interrupted: The creation was interrupted before an id was known.
        buried_until: End of the time in which a buried resource may still be created; 0.0 unless buried.
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
class StoredThing:
    """A resource, as stored in its record.

    Attributes:
        seen: Result of `observe`: status, action, id, fault, reference, attributes, live, snapshots, and in `unsure`
            the names of properties that unfinished updates may have changed.
        inner: Internal data of the service and the handlers.
    """

    record_id: str
    kind: str
    token: str
    link: str
    seen: dict[str, Any]
    inner: Inner

    @classmethod
    def of(cls, row: RecordRow) -> "StoredThing":
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
        """Begin an action, before its handler is called."""
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
    """The right to run handlers of a resource; instances of its class store their data through the turn.

    Attributes:
        things: The records of the project.
        thing: The resource after the last change under this turn.
        owner: Owner of the record; None if there is no row.
        lost: Another thread has the turn by now.
        unsaved: A physical id not stored yet; the next change stores it.
        orphan: Physical id of an object that was created after the deletion of its record.
    """

    things: "Things"
    thing: StoredThing
    number: int
    owner: Owner | None = None
    lost: bool = False
    unsaved: str | None = None
    orphan: str | None = None

    def store_id(self, physical_id: str | None) -> None:
        """Store the physical id, even after the loss of the turn, unless a newer id is known by then."""

        def keep(thing: StoredThing) -> None:
            if self.lost and (physical_id is None or thing.seen.get("id") not in (None, physical_id)):
                return
            thing.seen["id"] = physical_id
            # The thread that deletes the object did not know this id, so its deletion must not count as complete.
            thing.inner.late = thing.inner.late or self.lost
            if thing.status == BURIED:  # delete it now, not at the next sweep
                thing.inner.due_at = 0.0

        # Kept in memory until stored: if the database does not answer now, the next change stores the id.
        self.unsaved = physical_id
        if not self.things.change(self, keep, at_any_time=True):
            self.orphan = physical_id
        self.unsaved = None

    def store_data(self, key: str, value: str | None, *, redact: bool) -> None:
        def keep(thing: StoredThing) -> None:
            thing.inner.data.pop(key, None)
            thing.inner.redacted = [name for name in thing.inner.redacted if name != key]
            if value is not None:
                thing.inner.data[key] = value
                thing.inner.redacted += [key] if redact else []

        self.must(keep)

    def store_metadata(self, metadata: Any) -> None:
        def keep(thing: StoredThing) -> None:
            thing.inner.metadata = as_stored(metadata)

        self.must(keep)

    def must(self, mutate: Callable[[StoredThing], None], *, name: bool = False) -> None:
        """Change the resource, which requires the turn.

        Args:
            mutate: Makes the change.
            name: Make the physical id the handle from now on.

        Raises:
            Superseded: Another thread has the turn by now.
        """
        if not self.things.change(self, mutate, name=name):
            raise Superseded(f"another worker acts on {self.thing.handle} by now")

    def finish(self, mutate: Callable[[StoredThing], None]) -> bool:
        """Make a last change and give the turn back; return False if the turn was lost before."""
        return self.things.change(self, mutate, give_back=True)


class Things:
    """The records of one project. Safe to share between threads."""

    def __init__(self, db: Database, project: str) -> None:
        self.db = db
        self.project = project

    # -- looking -----------------------------------------------------------------------------------------------------

    def by_handle(self, kind: str, handles: list[str]) -> tuple[dict[str, StoredThing], float]:
        """Return the existing resources, by handle, and the agreed time."""
        with self.db.read() as tx:
            rows = plugin_records.by_handle(tx, kind, self.project, handles)
            now = tx.now()
        return {handle: StoredThing.of(row) for handle, row in rows.items()}, now

    def by_token(self, kind: str, tokens: list[str]) -> tuple[dict[str, StoredThing], float]:
        """Return the existing resources, by token, and the agreed time."""
        with self.db.read() as tx:
            rows = plugin_records.by_token(tx, kind, tokens)
            now = tx.now()
        return {token: StoredThing.of(row) for token, row in rows.items()}, now

    def in_stack(self, stack_id: str, kinds: Collection[str]) -> list[tuple[Owner, StoredThing]]:
        """Return the records of these kinds in a stack, each with its owner."""
        with self.db.read() as tx:
            things = [StoredThing.of(row) for row in plugin_records.in_stack(tx, stack_id, kinds)]
            owners = records.owners(tx, [records.key_of(thing.token) for thing in things])
        return [(owners[key], thing) for thing in things if (key := records.key_of(thing.token)) in owners]

    # -- turns -------------------------------------------------------------------------------------------------------

    def begin(self, kind: str, token: str, spec: Mapping[str, Any]) -> Turn | None:
        """Store the record of a new resource, before its handler is called, and take the first turn.

        Returns:
            The turn; None if a record with this token exists already.
        """
        with self.db.write() as tx:
            if plugin_records.by_token(tx, kind, [token]):
                return None
            now = tx.now()
            key, _, attempt = token.rpartition("-")
            owner = records.owners(tx, [key]).get(key)
            # Handlers look up their objects by name. If the object of an abandoned attempt may still appear, this
            # attempt needs a different name, or the two would be confused.
            name = str(spec["physical_name"])
            inner = Inner(
                owner.name if owner is not None else name,
                f"{name}-{attempt}" if orphans.may_appear(tx, key) else name,
                dict(spec["properties"]),
                held_until=now + LEASE_S,
            )
            thing = StoredThing(
                str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind} {token}")), kind, token, "", {"id": None}, inner
            )
            thing.begin("CREATE", WORKING)
            # Another thread may have begun the same creation since the check above: only one of them gets the turn.
            added = plugin_records.add(tx, thing.record_id, kind, self.project, token, thing.seen, asdict(inner), now)
        return Turn(self, thing, inner.turn, owner) if added else None

    def take(
        self, record_id: str, may: Callable[[StoredThing, float], bool], change: Callable[[StoredThing], None]
    ) -> Turn | None:
        """Take the turn, and make a change.

        Returns:
            The turn; None if the record does not exist, another thread has the turn, or `may(thing, now)` is False.
        """
        with self.db.write() as tx:
            row = plugin_records.locked(tx, record_id)
            now = tx.now()
            if row is None:
                return None
            thing = StoredThing.of(row)
            if thing.inner.held_until > now or not may(thing, now):
                return None
            thing.inner.turn += 1
            thing.inner.held_until = now + LEASE_S
            change(thing)
            plugin_records.save(tx, thing.record_id, thing.seen, asdict(thing.inner), now)
            key = records.key_of(thing.token)
            owner = records.owners(tx, [key]).get(key)
        return Turn(self, thing, thing.inner.turn, owner)

    def change(
        self,
        turn: Turn,
        mutate: Callable[[StoredThing], None],
        *,
        give_back: bool = False,
        at_any_time: bool = False,
        name: bool = False,
    ) -> bool:
        """Make a change under a turn, and renew the lease of the turn or give it back.

        Args:
            mutate: Makes the change.
            give_back: Give the turn back.
            at_any_time: Make the change even if the turn was lost.
            name: Make the physical id the handle, unless another record has this handle.

        Returns:
            False if nothing was changed, since the turn was lost or the record was deleted.
        """
        with self.db.write() as tx:
            row = plugin_records.locked(tx, turn.thing.record_id)
            if row is None:
                turn.lost = True
                return False
            now = tx.now()
            thing = StoredThing.of(row)
            if thing.inner.turn != turn.number:
                turn.lost = True
                if at_any_time:
                    mutate(thing)
                    plugin_records.save(tx, thing.record_id, thing.seen, asdict(thing.inner), now)
                return at_any_time
            if turn.unsaved is not None:
                thing.seen["id"] = turn.unsaved
            mutate(thing)
            physical_id = str(thing.seen.get("id") or "")
            if name and physical_id and plugin_records.claim_handle(tx, thing.record_id, thing.kind, physical_id):
                thing.link = physical_id
            thing.inner.held_until = 0.0 if give_back else now + LEASE_S
            plugin_records.save(tx, thing.record_id, thing.seen, asdict(thing.inner), now)
        turn.thing = thing
        return True

    def now(self) -> float:
        """Return the agreed time, in seconds since the epoch."""
        with self.db.read() as tx:
            return tx.now()

    def renew(self, turn: Turn) -> None:
        self.change(turn, lambda _thing: None)

    def sought(self, thing: StoredThing, now: float) -> Observation:
        """Return the answer of `find`.

        A buried resource is reported as present whenever its next deletion is due: the sweep for orphans then deletes
        it.
        """
        if thing.status != BURIED:
            return thing.look(now)
        if thing.inner.buried_until <= now:
            with self.db.write() as tx:
                plugin_records.remove(tx, thing.record_id)
        elif thing.inner.due_at <= now:
            return Observation(Presence.PRESENT, thing.handle, dict(thing.seen), now)
        return thing.look(now)

    # -- signals -----------------------------------------------------------------------------------------------------

    def signalled(self, record_ids: list[str]) -> dict[str, list[Any]]:
        """Return the pending signals, as (seq, object, at), by record."""
        with self.db.read() as tx:
            return plugin_records.signals(tx, record_ids)

    def took(self, turn: Turn, seq: int, at: float, reason: str) -> None:
        """Delete a signal after its delivery.

        Args:
            seq: Number of the signal.
            at: Time of its arrival.
            reason: Reason of the event about the signal; "" for no event.
        """
        with self.db.write() as tx:
            plugin_records.forget_signal(tx, seq, at)
            if reason:
                self._event(tx, turn.owner, SIGNAL, reason)

    def record(self, turn: Turn, action: str, reason: str) -> None:
        """Store an event of the resource that does not change its status."""
        with self.db.write() as tx:
            self._event(tx, turn.owner, action, reason)

    def _event(self, tx: Transaction, owner: Owner | None, action: str, reason: str) -> None:
        if owner is not None:
            events.append(tx, owner.stack_id, [owner.event(action, reason)], tx.now())

    # -- the end -----------------------------------------------------------------------------------------------------

    def remove(self, turn: Turn) -> bool:
        """Delete the record of a deleted resource.

        Returns:
            False if the deletion is not complete, since an id was stored late, or the turn was lost.
        """
        with self.db.write() as tx:
            row = plugin_records.locked(tx, turn.thing.record_id)
            now = tx.now()
            if row is None:
                return True
            thing = StoredThing.of(row)
            if thing.inner.turn != turn.number:
                turn.lost = True
                return False
            # A frozen handler has stored the id of a new object while this thread was deleting: delete that one, too.
            if thing.inner.late:
                thing.inner.late, thing.inner.held_until = False, 0.0
                thing.begin("DELETE", thing.status)
                plugin_records.save(tx, thing.record_id, thing.seen, asdict(thing.inner), now)
                return False
            if thing.inner.interrupted:
                self._bury(tx, thing, now)
            else:
                plugin_records.remove(tx, thing.record_id)
        return True

    def _bury(self, tx: Transaction, thing: StoredThing, now: float) -> None:
        """Keep the record of a deleted resource whose creation may still happen, for repeated deletions.

        Its token is looked up like the tokens of orphans in real clouds.
        """
        inner = thing.inner
        if not inner.buried_until:
            inner.buried_until, inner.tries = now + orphans.PATIENCE_S, 0
            orphans.add(tx, [Orphan(thing.token, thing.kind, self.project)], now)
        inner.phase, inner.progress, inner.held_until = DONE, None, 0.0
        inner.due_at = now + SWEEP.delay_s(inner.tries + 1)
        inner.tries += 1
        thing.seen["id"] = None
        thing.set_status(BURIED, "it was deleted")
        plugin_records.save(tx, thing.record_id, thing.seen, asdict(inner), now)
