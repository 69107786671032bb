"""What is stored of a thing whose type has handlers, and who may run them.

Handlers of one thing run one at a time, whoever asks: the right to run them is a turn, a number in the record with a
lease. Whoever has lost its turn writes nothing more, but for the physical id of what it has made: that is kept in any
case, so that it can be deleted.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.model.errors import Superseded
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Event
from homeostat.plugins.types import WORKING
from homeostat.store import events
from homeostat.store.builtin import plugin_records, records
from homeostat.store.builtin.records import Owner
from homeostat.store.database import Database
from homeostat.store.schema import as_stored
from homeostat.store.shards import orphans
from homeostat.store.shards.orphans import Orphan

LOG = logging.getLogger(__name__)
LEASE_S = 15.0
"""How long a turn is kept that nobody renews: its holder died."""
GONE, BURIED = "gone", "buried"
"""Status of a thing that is not there any more, though nobody has deleted it; of one that was deleted, and may be made
yet: its creation was interrupted, and whoever had begun it may be frozen only."""
SIGNAL = "SIGNAL"
"""Action of an event that tells of a signal."""
SWEEP_S, SWEEP_MAX_S = 5.0, 120.0
"""Time between deletions of what is buried; grows to the second."""
BEGUN, POLLED, DONE = "begun", "polled", "done"
"""Phases of an action: its handler was called and has not returned; it is asked whether it is complete; it is."""


@dataclass(slots=True)
class Inner:
    """What handlers and the service keep for themselves. Times are seconds since the epoch.

    name, physical_name — of the resource; properties — as they are; wanted — as an update makes them; action, phase,
    progress — what goes on, and what its handler returned; turn, held_until — see above; due_at — not polled before;
    tries — acts in a row that time has to mend; looked_at — when it was last looked at; data, redacted — texts that
    handlers keep, and names of the secret ones; metadata — where a handler has set it; late — an id came from a handler
    that had lost its turn; interrupted — so was its creation, before an id was known; buried_until — when it is certain
    that nobody makes it any more.
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
    """One thing. seen — what `observe` tells: status, action, id, fault, reference, attributes, live, snapshots."""

    record_id: str
    kind: str
    token: str
    link: str
    seen: dict[str, Any]
    inner: Inner

    @classmethod
    def of(cls, row: Row[Any]) -> "Made":
        return cls(row.id, row.kind, row.token, row.link, dict(row.object), Inner(**row.secret))

    @property
    def handle(self) -> str:
        return self.link or self.record_id

    @property
    def status(self) -> str:
        return str(self.seen.get("status", ""))

    def tell(self, status: str, fault: str = "") -> None:
        self.seen["status"] = status
        if fault:
            self.seen["fault"] = fault
        else:
            self.seen.pop("fault", None)

    def begin(self, action: str, status: str) -> None:
        self.inner.action, self.inner.phase, self.inner.progress = action, BEGUN, None
        self.inner.due_at = 0.0
        self.seen["action"] = action
        self.tell(status)

    def look(self, now: float) -> Observation:
        if self.status in (GONE, BURIED):
            return Observation(Presence.ABSENT, self.handle, seen_at=now, reason=str(self.seen.get("fault", "")))
        return Observation(Presence.PRESENT, self.handle, dict(self.seen), now)


@dataclass(slots=True)
class Turn:
    """The right to run handlers of a thing. made — the thing as it was when it was last changed under this turn;
    owner — what the rows say of its resource; unsaved — an id that could not be stored yet: the next change does it;
    orphan — the id of what was made after the thing was forgotten. An instance keeps its memory through the turn."""

    things: "Things"
    made: Made
    number: int
    owner: Owner | None = None
    lost: bool = False
    unsaved: str | None = None
    orphan: str | None = None

    def keep_id(self, physical_id: str | None) -> None:
        """Stored also by whoever has lost its turn, unless something newer is known."""

        def keep(made: Made) -> None:
            if self.lost and (physical_id is None or made.seen.get("id") not in (None, physical_id)):
                return
            made.seen["id"] = physical_id
            made.inner.late = made.inner.late or self.lost
            if made.status == BURIED:
                made.inner.due_at = 0.0

        self.unsaved = physical_id
        if not self.things.change(self, keep, at_any_time=True):
            self.orphan = physical_id
        self.unsaved = None

    def keep_data(self, key: str, value: str | None, *, redact: bool) -> None:
        def keep(made: Made) -> None:
            made.inner.data.pop(key, None)
            made.inner.redacted = [name for name in made.inner.redacted if name != key]
            if value is not None:
                made.inner.data[key] = value
                made.inner.redacted += [key] if redact else []

        self.must(keep)

    def keep_metadata(self, metadata: Any) -> None:
        def keep(made: Made) -> None:
            made.inner.metadata = as_stored(metadata)

        self.must(keep)

    def must(self, mutate: Callable[[Made], None], *, name: bool = False) -> None:
        """name — let it be known by its physical id from now on.

        Fails: Superseded when somebody else has the turn by now."""
        if not self.things.change(self, mutate, name=name):
            raise Superseded(f"somebody else acts on {self.made.handle} by now")

    def finish(self, mutate: Callable[[Made], None]) -> bool:
        """Store the end of the turn. False when it was lost before."""
        return self.things.change(self, mutate, give_back=True)


class Things:
    """The records of one project. Safe to share between threads."""

    def __init__(self, db: Database, project: str) -> None:
        self.db = db
        self.project = project

    # -- looking -----------------------------------------------------------------------------------------------------

    def by_handle(self, kind: str, handles: list[str]) -> tuple[dict[str, Made], float]:
        """Handle -> thing, and what time it is."""
        with self.db.read() as tx:
            rows = plugin_records.by_handle(tx, kind, self.project, handles)
            now = self.db.now_of(tx)
        return {handle: Made.of(row) for handle, row in rows.items()}, now

    def by_token(self, kind: str, tokens: list[str]) -> tuple[dict[str, Made], float]:
        with self.db.read() as tx:
            rows = plugin_records.by_token(tx, kind, tokens)
            now = self.db.now_of(tx)
        return {token: Made.of(row) for token, row in rows.items()}, now

    def in_stack(self, stack_id: str, kinds: Collection[str]) -> list[tuple[Owner, Made]]:
        """Things of these kinds that are the resources of a stack."""
        with self.db.read() as tx:
            found = [Made.of(row) for row in plugin_records.in_stack(tx, stack_id, kinds)]
            owners = records.owners(tx, [records.key_of(made.token) for made in found])
        return [(owners[key], made) for made in found if (key := records.key_of(made.token)) in owners]

    # -- turns -------------------------------------------------------------------------------------------------------

    def begin(self, kind: str, token: str, spec: Mapping[str, Any]) -> Turn | None:
        """A new thing, its handler not called yet, with the first turn. None when the token has one already."""
        with self.db.write() as tx:
            if plugin_records.by_token(tx, kind, [token]):
                return None
            now = self.db.now_of(tx)
            key, _, attempt = token.rpartition("-")
            owner = records.owners(tx, [key]).get(key)
            # A thing is looked for by its name: that of another attempt, which may come yet, is not its own.
            name = str(spec["physical_name"])
            inner = Inner(
                owner.name if owner is not None else name,
                f"{name}-{attempt}" if orphans.has_given_up(tx, key) else name,
                dict(spec["properties"]),
                held_until=now + LEASE_S,
            )
            made = Made(str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind} {token}")), kind, token, "", {"id": None}, inner)
            made.begin("CREATE", WORKING)
            plugin_records.add(tx, made.record_id, kind, self.project, token, made.seen, asdict(inner), now)
        return Turn(self, made, inner.turn, owner)

    def take(self, record_id: str, may: Callable[[Made, float], bool], change: Callable[[Made], None]) -> Turn | None:
        """The turn, with a change made; None when it is gone, somebody has the turn, or `may(thing, now)` says no."""
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
        """Change the thing under a turn, and renew its lease, or give it back. False: the turn was lost before.

        at_any_time — change it then, too; name — its physical id becomes its handle, unless another one has that.
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
        """Seconds since the epoch, as all workers agree on."""
        with self.db.read() as tx:
            return self.db.now_of(tx)

    def renew(self, turn: Turn) -> None:
        self.change(turn, lambda _made: None)

    def sought(self, made: Made, now: float) -> Observation:
        """What `find` tells of a thing. What is buried is there whenever it is time to delete it once more."""
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
        """Signals, (seq, object, at), that these things have not taken yet."""
        with self.db.read() as tx:
            return plugin_records.signals(tx, record_ids)

    def took(self, turn: Turn, seq: int, at: float, reason: str) -> None:
        """A signal, which came at this time, is taken. reason — for the event that tells of it, "" for none."""
        with self.db.write() as tx:
            plugin_records.forget_signal(tx, seq, at)
            if reason:
                self._event(tx, turn.owner, SIGNAL, reason)

    def record(self, turn: Turn, action: str, reason: str) -> None:
        """An event of the resource, which leaves its status as it is."""
        with self.db.write() as tx:
            self._event(tx, turn.owner, action, reason)

    def _event(self, tx: Connection, owner: Owner | None, action: str, reason: str) -> None:
        if owner is not None:
            event = Event(owner.name, action, owner.status, reason, owner.type, owner.key, owner.handle)
            events.append(tx, owner.stack_id, [event], self.db.now_of(tx))

    # -- the end -----------------------------------------------------------------------------------------------------

    def remove(self, turn: Turn) -> bool:
        """Forget a deleted thing. False when it is not over: an id came late, or the turn was lost."""
        with self.db.write() as tx:
            row = plugin_records.locked(self.db, tx, turn.made.record_id)
            now = self.db.now_of(tx)
            if row is None:
                return True
            made = Made.of(row)
            if made.inner.turn != turn.number:
                turn.lost = True
                return False
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
        """It is looked for by its token, as what other clouds were asked to make, and deleted again and again."""
        inner = made.inner
        if not inner.buried_until:
            inner.buried_until, inner.tries = now + orphans.PATIENCE_S, 0
            orphans.add(self.db, tx, [Orphan(made.token, made.kind, self.project)], now)
        inner.phase, inner.progress, inner.held_until = DONE, None, 0.0
        inner.due_at = now + min(SWEEP_S * 2**inner.tries, SWEEP_MAX_S)
        inner.tries += 1
        made.seen["id"] = None
        made.tell(BURIED, "it was deleted")
        plugin_records.save(tx, made.record_id, made.seen, asdict(inner), now)
