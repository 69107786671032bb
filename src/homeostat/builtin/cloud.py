"""The cloud adapter of records: software configs, deployments, wait conditions and other kinds.

The adapter is joined to the cloud of each project, so resources with records converge like all resources: the intent is
stored before the record, the record is found again by its token, and observers read it (ADR 0029).
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from homeostat.builtin.addresses import access_key
from homeostat.builtin.kinds.base import RecordKind, _exported_record
from homeostat.builtin.kinds.registry import RECORD_KINDS, observed
from homeostat.builtin.sessions import AdoptingSession, Fields, RecordSession
from homeostat.clock import Entropy
from homeostat.clouds.port import Answer, Change, ChangeNotice, Creation, Operation
from homeostat.identity.stack_users import StackUsers, needed
from homeostat.model.errors import HomeostatError, Terminal, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Action
from homeostat.planner.lifecycle.adopt import ADOPT
from homeostat.resources.families.access import KEY, USER
from homeostat.resources.registry import kind_of
from homeostat.resources.signing import id_of
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.database import Database, Transaction

CHUNK = 500
"""Records read from the database at once."""
Item = TypeVar("Item")


class RecordCloud:
    """The records of a project as a cloud (`clouds.port.Cloud`)."""

    name = "own"
    kinds = frozenset(RECORD_KINDS)
    listing_lag_s = 0.0

    def __init__(self, own: "Records", db: Database, project: str) -> None:
        self._own = own
        self._db = db
        self._project = project

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        with self._db.read() as tx:
            session = self._session(tx)
            return [observation for chunk in _chunks(handles) for observation in _observed(session, kind, chunk)]

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        self._give_keys(kind, tokens)
        with self._db.read() as tx:
            session = self._session(tx)
            by_token = {
                token: observation
                for chunk in _chunks(tokens)
                for token, observation in _carrying(session, kind, chunk)
            }
        return [by_token.get(token) or Observation(Presence.ABSENT, seen_at=session.now) for token in tokens]

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        """Return the names that are ids of records in this project, and None for each other name."""
        with self._db.read() as tx:
            by_id = {id: record for chunk in _chunks(names) for id, record in records.of_ids(tx, kind, chunk).items()}
        return [name if name in by_id and by_id[name].project == self._project else None for name in names]

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        self._own.ensure_users([intent.token for intent in intents if kind == USER or needed(intent.spec)])
        answers: list[Answer] = []
        while len(answers) < len(intents):
            answers += self._create(kind, intents[len(answers) :][:CHUNK])
        self._give_keys(kind, [intent.token for intent in intents])
        return answers

    def _give_keys(self, kind: str, tokens: Sequence[str]) -> None:
        """Store access keys in Keystone, too, before their creation is answered."""
        if kind == KEY and self._own.users is not None:
            self._own.users.give_keys(tokens)

    def _create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        """Create as many of these records as fit into one write transaction; return their answers."""
        record_kind = RECORD_KINDS[kind]
        refused: dict[str, HomeostatError] = {}
        new: list[Record] = []
        with self._db.write() as tx:
            session = self._session(tx)
            tokens = [intent.token for intent in intents]
            existing = records.of_tokens(tx, kind, tokens)
            owners = records.owners(tx, [records.key_of(token) for token in tokens])
            for number, intent in enumerate(intents):
                owner = owners.get(records.key_of(intent.token))
                if intent.token in existing:
                    continue
                if session.load.full:  # the rest is left to the next call
                    tokens = tokens[:number]
                    break
                try:
                    created = record_kind.make(session, intent, _owned(record_kind, owner))
                except Terminal as error:
                    refused[intent.token] = error
                    continue
                new += created
                session.load.put(created)
            records.add(tx, new)
            seen = dict(_carrying(session, kind, tokens))
        return [refused[token] if token in refused else seen[token] for token in tokens]

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        record_kind = RECORD_KINDS[kind]
        self._ensure_users(kind, [change.handle for change in changes if needed(change.spec)])

        def act(session: RecordSession, record: Record, change: Change) -> bool:
            record_kind.change(session, record, change.spec)
            return False

        return self._act_on_all(kind, [(change.handle, change) for change in changes], act)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        record_kind = RECORD_KINDS[kind]
        if kind == KEY and self._own.users is not None:
            with self._db.read() as tx:
                tokens = [record.token for record in records.of_ids(tx, KEY, handles).values()]
            self._own.users.take_keys(tokens)
        return self._act_on_all(
            kind,
            [(handle, None) for handle in handles],
            lambda session, record, _: record_kind.end(session, record),
        )

    def _ensure_users(self, kind: str, handles: Sequence[str]) -> None:
        if handles:
            with self._db.read() as tx:
                tokens = [record.token for record in records.of_ids(tx, kind, handles).values()]
            self._own.ensure_users(tokens)

    def _act_on_all(
        self, kind: str, items: Sequence[tuple[str, Any]], act: Callable[[RecordSession, Record, Any], bool]
    ) -> list[Answer]:
        """Lock and change records, and return an answer for each.

        Args:
            items: Handles with the last argument of `act`.
            act: Changes a record; returns whether the record is removed.
        """
        answers: dict[str, Answer] = {}
        # Locked in the order of handles: two batches cannot deadlock.
        waiting = deque(sorted(items, key=lambda item: item[0]))
        while waiting:
            self._act(kind, waiting, act, answers)
        return [answers[handle] for handle, _ in items]

    def _act(
        self,
        kind: str,
        waiting: deque[tuple[str, Any]],
        act: Callable[[RecordSession, Record, Any], bool],
        answers: dict[str, Answer],
    ) -> None:
        """Act on as many of the waiting records as fit into one write transaction."""
        with self._db.write() as tx:
            session = self._session(tx)
            while waiting and not session.load.full:
                handle, item = waiting.popleft()
                record = records.for_update(tx, handle)
                if record is None or record.kind != kind or record.project != self._project:
                    answers[handle] = Observation(Presence.ABSENT, handle, seen_at=session.now)
                    continue
                try:
                    removed = act(session, record, item)
                except Terminal as error:
                    answers[handle] = error
                    continue
                answers[handle] = (
                    Observation(Presence.ABSENT, handle, seen_at=session.now)
                    if removed
                    else _observed(session, kind, [handle])[0]
                )

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        return [
            self._adopt(kind, operation.arguments) if operation.verb == ADOPT else self._operate(kind, operation)
            for operation in operations
        ]

    def _operate(self, kind: str, operation: Operation) -> Answer:
        record_kind = RECORD_KINDS[kind]

        def act(session: RecordSession, record: Record, operation: Operation) -> bool:
            record_kind.operate(session, record, operation.verb)
            return False

        return self._act_on_all(kind, [(operation.handle, operation)], act)[0]

    def _adopt(self, kind: str, document: Mapping[str, Any]) -> Answer:
        """Adopt the record with the id in the document, or create a new record from it; idempotent by the token."""
        token = document["token"]
        with self._db.write() as tx:
            session = self._session(tx)
            if token not in records.of_tokens(tx, kind, [token]):
                try:
                    self._take(session, kind, dict(document))
                except (Terminal, Transient) as error:
                    return error
            return dict(_carrying(session, kind, [token]))[token]

    def _take(self, session: RecordSession, kind: str, document: Fields) -> None:
        """Adopt a record, or create a new record.

        Raises:
            Terminal: The record belongs to a resource already, or cannot be created.
            Transient: The record belongs to a resource that is being deleted.
        """
        id = str(document["id"] or "")
        existing = records.for_update(session.tx, id) if id else None
        if existing is not None and (existing.kind, existing.project) == (kind, self._project):
            for other in records.owners(session.tx, [records.key_of(existing.token)]).values():
                raise _taken(id, other)
            records.hand_over(session.tx, id, document["token"])
            return
        # The owner of a record that is gone may still delete it by its id, until the owner's row is removed.
        for other in records.owners_of(session.tx, [id]) if existing is None else ():
            if (kind_of(other.type), other.project) == (kind, self._project):
                raise _taken(id, other) if other.action != Action.DELETE else _leaving(id, other)
        record_kind, stored = RECORD_KINDS[kind], _exported_record(document)
        old = {"key": (stored.get("secret") or {}).get("key", "")}
        # Keep the old id only if it is unused here, and in the format of this service's ids.
        if stored and existing is None and id_of(access_key(id)) == id:
            old["id"] = id
        same = {attribute.name: getattr(session, attribute.name) for attribute in fields(session)}
        owner = records.owners(session.tx, [records.key_of(document["token"])]).get(records.key_of(document["token"]))
        intent = Creation(document["token"], document["spec"])
        new = record_kind.restore(AdoptingSession(**same, old=old), intent, _owned(record_kind, owner), document)
        session.add(new)
        record_kind.restore_signals(session, new[0], document)

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """Return no notices: a signal wakes the shards concerned in the transaction that stores it."""
        return iter(())

    def close(self) -> None:
        """Do nothing: the owner of the database closes it."""

    def _session(self, tx: Transaction) -> RecordSession:
        return self._own.session(tx, self._project)


def _chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def _owned(record_kind: RecordKind, owner: Owner | None) -> Owner:
    """Return the resource of a new record; an empty resource if the kind needs none.

    Raises:
        Terminal: The resource is gone: its creation was given up.
    """
    if owner is None and record_kind.needs_owner:
        raise Terminal("the resource that this was asked for is not there any more")
    return owner or Owner("", "", "", "", "", "", "", "", None, 0, "", "", "")


def _observed(session: RecordSession, kind: str, ids: Sequence[str]) -> list[Observation]:
    return observed(session.tx, session.project, kind, ids, session.now)


def _carrying(session: RecordSession, kind: str, tokens: Sequence[str]) -> list[tuple[str, Observation]]:
    """Return the tokens of existing records with observations of the records."""
    by_token = {
        token: record.id
        for token, record in records.of_tokens(session.tx, kind, tokens).items()
        if record.project == session.project
    }
    seen = _observed(session, kind, list(by_token.values()))
    return list(zip(by_token, seen, strict=True))


def _taken(id: str, other: Owner) -> Terminal:
    place = f"{id} is {other.name} of stack {other.stack_name}"
    return Terminal(f"resource_id: {place} already: abandon that first, or take it out of the document")


def _leaving(id: str, other: Owner) -> Transient:
    return Transient(f"resource_id: {id} is still {other.name} of stack {other.stack_name}, which is being deleted")


class Records:
    """The records of all projects."""

    def __init__(
        self,
        db: Database,
        entropy: Entropy,
        url: str,
        users: StackUsers | None = None,
        health_interval_min: int = 60,
    ) -> None:
        """Create the clouds of records.

        Args:
            url: URL of the API for servers, without its version, like `http://10.0.0.1:8004`.
            users: Keystone users for servers; None without Keystone, or without rights to create users.
            health_interval_min: Shortest interval of health checks, in seconds.
        """
        self._db = db
        self._entropy = entropy
        self.users = users
        self._url = url.rstrip("/")
        self._health_interval_min = health_interval_min

    def of(self, project: str) -> RecordCloud:
        """Return the records of one project as a cloud."""
        return RecordCloud(self, self._db, project)

    def session(self, tx: Transaction, project: str) -> RecordSession:
        """Return a transaction on the records of one project."""
        now, limit = tx.now(), self._health_interval_min
        return RecordSession(tx, project, now, self._url, self._entropy, self.users, limit)

    def ensure_users(self, tokens: Sequence[str]) -> None:
        """Make sure that the resources of these tokens have users, if the service can create users.

        Raises:
            HomeostatError: As `StackUsers.ensure`.
        """
        if self.users is not None:
            self.users.ensure(tokens)
