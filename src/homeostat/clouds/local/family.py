"""Base of the kinds of the local cloud: the port's verbs on records, batch by batch.

A kind is a subclass of `Family`: mostly data (references between kinds), and code if a record has processes or files
behind it. The record is written first: a second `create` then finishes the work of an interrupted first.
"""

import errno
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from homeostat.clouds.local.tree import Damaged, ThingRecord, Tree
from homeostat.clouds.local.tree_snapshot import TreeSnapshot
from homeostat.clouds.port import Answer, Change, Creation, Operation
from homeostat.kinds.registry import KINDS
from homeostat.model.errors import HomeostatError, Terminal, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import DELETE_WITH_PARTS

FULL_S = 2.0
"""Seconds after which an operation on a full disk is retried."""
Item = TypeVar("Item")
Facts = dict[str, Any]

_NAMESPACE = uuid.UUID("6f1c0f0e-5d0c-4a53-9a0b-6c6f63616c21")


def identity(kind: str, token: str) -> str:
    """Return the id of the object with a token; it depends only on kind and token."""
    return str(uuid.uuid5(_NAMESPACE, f"{kind}:{token}"))


@dataclass(frozen=True, slots=True)
class Refers:
    """A reference from a spec to another object.

    Attributes:
        fields: Fields of the spec; the first non-empty field names the object.
        kind: Kind of the object.
        fact: Fact that gets the object's id.
        required: Whether one of the fields must be set.
    """

    fields: tuple[str, ...]
    kind: str
    fact: str
    required: bool = False


class Family:
    """A kind.

    Attributes:
        kind: Its name in the cloud port.
        refers: References in its spec.
        used_by: (kind, fact) of the objects that prevent its deletion, by a fact that holds its id.
    """

    kind: ClassVar[str]
    refers: ClassVar[tuple[Refers, ...]] = ()
    used_by: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    # -- for subclasses ----------------------------------------------------------------------------

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        """Return the facts of a new object; raise Terminal or Transient if it cannot be created. Changes nothing."""
        return self.references(look, spec)

    def amend(self, look: TreeSnapshot, record: ThingRecord, spec: Mapping[str, Any], changed: frozenset[str]) -> Facts:
        """Return the facts after a change to `spec`; raise Terminal if impossible in place. Changes nothing."""
        return {**record.facts, **self.references(look, spec)}

    def settle(self, look: TreeSnapshot, record: ThingRecord) -> None:
        """Bring processes and files in line with the record; finishes interrupted work."""

    def finish(self, look: TreeSnapshot, records: Sequence[ThingRecord]) -> None:
        """Like `settle`, but once for a whole batch; also called after a delete."""

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        """Return the object in the form of `clouds/port.py`."""
        return {**record.spec, **record.facts, "id": self.handle(record)}

    def users(self, look: TreeSnapshot, record: ThingRecord) -> Iterable[ThingRecord]:
        """Yield the objects that prevent its deletion."""
        for kind, fact in self.used_by:
            yield from look.referring(kind, fact, record.id)

    def dismantle(self, look: TreeSnapshot, record: ThingRecord) -> None:
        """Undo `settle`; the record is removed next."""

    def perform(self, look: TreeSnapshot, record: ThingRecord, operation: Operation) -> None:
        """Carry out an operation."""
        raise Terminal(f"{self.kind} {record.id} knows no operation {operation.verb!r}")

    # -- the port's verbs --------------------------------------------------------------------------

    def observe(self, handles: Sequence[str]) -> list[Observation]:
        look = TreeSnapshot(self.tree)
        return [self._looked_at(look, handle) for handle in handles]

    def find(self, tokens: Sequence[str]) -> list[Observation]:
        look = TreeSnapshot(self.tree)
        return [self._seen(look, self.carrying(look, token), "") for token in tokens]

    def create(self, intents: Sequence[Creation]) -> list[Answer]:
        with self.tree.lock():
            look = TreeSnapshot(self.tree)
            return self.act_on_each(look, intents, lambda intent: self._settled(look, self.begin(look, intent)))

    def update(self, changes: Sequence[Change]) -> list[Answer]:
        with self.tree.lock():
            look = TreeSnapshot(self.tree)
            return self.act_on_each(look, changes, lambda change: self._settled(look, self.change(look, change)))

    def delete(self, handles: Sequence[str]) -> list[Answer]:
        with self.tree.lock():
            look = TreeSnapshot(self.tree)
            return self.act_on_each(look, handles, lambda handle: self._delete(look, handle))

    def operate(self, operations: Sequence[Operation]) -> list[Answer]:
        with self.tree.lock():
            look = TreeSnapshot(self.tree)
            return self.act_on_each(look, operations, lambda operation: self._operate(look, operation))

    # -- steps of the verbs ------------------------------------------------------------------------

    def identity(self, intent: Creation) -> str:
        return identity(self.kind, intent.token)

    def known_as(self, look: TreeSnapshot, handle: str) -> ThingRecord | None:
        return look.get(self.kind, handle)

    def changeable(self, look: TreeSnapshot, handle: str) -> ThingRecord | None:
        """Return the record for a change of an object; None if the object does not exist.

        Raises:
            Terminal: The object is built in, and the caller is a project.
        """
        record = self.known_as(look, handle)
        if record is not None and record.is_built_in and self.tree.project is not None:
            raise Terminal(f"The {self.kind} {handle} is part of the cloud: it cannot be changed")
        return record

    def handle(self, record: ThingRecord) -> str:
        """Return the handle, which is the id for most kinds."""
        return record.id

    def carrying(self, look: TreeSnapshot, token: str) -> ThingRecord | None:
        return look.get(self.kind, identity(self.kind, token))

    def begin(self, look: TreeSnapshot, intent: Creation) -> ThingRecord:
        """Return the record of a creation: an existing one with the token, or a new one, which is written."""
        known = self.carrying(look, intent.token)
        if known is not None:
            return known
        id = self.identity(intent)
        facts = self.admit(look, id, intent.spec)
        record = ThingRecord(self.kind, id, intent.token, dict(intent.spec), facts, time.time())
        look.store(record)
        return record

    def change(self, look: TreeSnapshot, change: Change) -> ThingRecord | None:
        """Change a record and write it; None if the object does not exist."""
        record = self.changeable(look, change.handle)
        if record is None:
            return None
        spec = merged(record.spec, change)
        # The caller compares with its own last request. If this request was lost, the record differs in more fields.
        changed = frozenset(change.changed) | {
            name for name in {*spec, *record.spec} if spec.get(name) != record.spec.get(name)
        }
        amended = replace(record, spec=spec, facts=self.amend(look, record, spec, changed))
        look.store(amended)
        return amended

    def references(self, look: TreeSnapshot, spec: Mapping[str, Any]) -> Facts:
        """Return the ids of the objects named in `spec`, by fact."""
        facts: Facts = {}
        for refers in self.refers:
            reference = next((spec[name] for name in refers.fields if spec.get(name)), None)
            if reference is None and refers.required:
                raise Terminal(f"A {self.kind} needs a {refers.kind}: set {refers.fields[0]!r}")
            record = None if reference is None else look.resolve(refers.kind, str(reference))
            facts[refers.fact] = None if record is None else record.id
        return facts

    def act_on_each(
        self, look: TreeSnapshot, items: Sequence[Item], act: Callable[[Item], ThingRecord | None]
    ) -> list[Answer]:
        """Act on each item, and return the state after all acts; the failure of an item affects only this item."""
        outcomes: list[ThingRecord | HomeostatError | None] = []
        for item in items:
            try:
                outcomes.append(act(item))
            except HomeostatError as error:
                outcomes.append(error)
            except OSError as error:
                retry_s = FULL_S if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
                outcomes.append(Transient(f"{self.kind}: {error}", retry_s))
            except ValueError as error:
                outcomes.append(Terminal(f"{self.kind}: {error}"))
        self.finish(look, [outcome for outcome in outcomes if isinstance(outcome, ThingRecord)])
        return [self._answer(look, item, outcome) for item, outcome in zip(items, outcomes, strict=True)]

    def _answer(self, look: TreeSnapshot, item: Any, outcome: ThingRecord | HomeostatError | None) -> Answer:
        if isinstance(outcome, HomeostatError):
            return outcome
        present = None if outcome is None else look.get(self.kind, outcome.id)
        observation = self._seen(look, present, item if isinstance(item, str) else getattr(item, "handle", ""))
        deletes = isinstance(item, str) or getattr(item, "verb", "") == DELETE_WITH_PARTS
        return replace(observation, not_found=True) if outcome is None and deletes else observation

    def _looked_at(self, look: TreeSnapshot, handle: str) -> Observation:
        """Observe an object; UNKNOWN if its record cannot be read."""
        try:
            return self._seen(look, self.known_as(look, handle), handle)
        except Damaged as error:
            return Observation(Presence.UNKNOWN, handle, seen_at=time.time(), reason=str(error))

    def _seen(self, look: TreeSnapshot, record: ThingRecord | None, handle: str) -> Observation:
        if record is None:
            return Observation(Presence.ABSENT, handle, seen_at=time.time(), reason=f"there is no such {self.kind}")
        return Observation(Presence.PRESENT, self.handle(record), self.show(look, record), time.time())

    def _settled(self, look: TreeSnapshot, record: ThingRecord | None) -> ThingRecord | None:
        if record is not None:
            self.settle(look, record)
        return record

    def _delete(self, look: TreeSnapshot, handle: str) -> ThingRecord | None:
        record = self.changeable(look, handle)
        if record is None:
            return None
        self.refuse_if_used(look, record)
        self.dismantle(look, record)
        look.drop(record)
        return record

    def refuse_if_used(self, look: TreeSnapshot, record: ThingRecord) -> None:
        """Refuse the deletion of an object that is in use.

        Users created for an object that was since removed by hand do not count, and are removed here.

        Raises:
            Transient: The object is in use.
        """
        users = list(self.users(look, record))
        outlived = [user for user in users if look.outlived(user)]
        for user in outlived:
            look.drop(user)
        named = [f"{user.kind} {user.spec.get('name') or user.id}" for user in users if user not in outlived]
        if named:
            raise Transient(f"{self.kind} {record.id} is in use by {', '.join(named[:5])}")

    def _operate(self, look: TreeSnapshot, operation: Operation) -> ThingRecord | None:
        record = self.changeable(look, operation.handle)
        # `adopt` only marks the object, which needs no mark here.
        if record is not None and (operation.verb != "adopt" or "adopt" not in KINDS[self.kind].operations):
            self.perform(look, record, operation)
        return record


def merged(spec: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Return the spec after a change of the named fields, or of all fields if none is named."""
    if not change.changed:
        return dict(change.spec)
    result = {name: value for name, value in spec.items() if name not in change.changed}
    result.update({name: change.spec[name] for name in change.changed if name in change.spec})
    return result
