"""The cloud adapter of `OS::Senlin::*` resources (port `clouds.port.Cloud`).

It acts on behalf of the user of the stack. The transaction that creates an object also records its token, so the object
is found again after a crash (ADR 0077).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from homeostat.clock import Entropy
from homeostat.clouds.port import Answer, Change, ChangeNotice, Creation, Operation
from homeostat.clustering.resources.records import Fields, Requester, ResourceRecord
from homeostat.clustering.resources.requesters import requester_of, share_trust
from homeostat.clustering.store import tokens
from homeostat.model.errors import HomeostatError, Rejected, Terminal, Transient, ambiguous
from homeostat.model.observed import Observation, Presence
from homeostat.planner.lifecycle.adopt import ADOPT
from homeostat.resources.families.senlin import KINDS
from homeostat.resources.registry import kind_of
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.database import Database, Transaction

if TYPE_CHECKING:  # only workers with such resources load the Clustering API
    from homeostat.clustering.resources.api import ClusteringResources

TYPE_KINDS = frozenset({"cluster_profile_type", "cluster_policy_type"})
"""Kinds for types of profiles and policies, which can only be resolved."""
BUSY = frozenset(
    {"ActionConflict", "ActionInProgress", "ResourceInUse", "ResourceIsLocked", "StackExists", "StackLocked"}
)
"""Temporary faults, or faults that another id avoids: the engine retries."""
MISSING = frozenset({"EntityNotFound", "ResourceNotFound"})
CHUNK = 500
"""Objects read in one transaction."""
BATCH_S = 20.0
"""Seconds after which no more creations of a batch are started: a cluster may take a while."""


class AlreadyCreated(HomeostatError):
    """Another worker has created the object of this token meanwhile."""


class ClusteringCloud:
    """The clusters, nodes, profiles, policies and receivers of a project as a cloud."""

    name = "clustering"
    kinds = frozenset(KINDS) | TYPE_KINDS
    listing_lag_s = 0.0

    def __init__(
        self,
        db: Database,
        entropy: Entropy,
        api: "Callable[[], ClusteringResources]",
        project: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._db = db
        self._entropy = entropy
        self._api = api
        self._project = project

    # -- observing ---------------------------------------------------------------------------------------------------

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        objects: dict[str, Fields] = {}
        for start in range(0, len(handles), CHUNK):
            objects |= self._api().look(kind, self._project, handles[start : start + CHUNK])
        now = self._db.agreed_now()
        return [
            Observation(Presence.PRESENT, handle, objects[handle], now)
            if handle in objects
            else Observation(Presence.ABSENT, handle, seen_at=now, reason="it is gone")
            for handle in handles
        ]

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        with self._db.read() as tx:
            known = {
                token: record.id
                for token, record in records.of_tokens(tx, kind, tokens).items()
                if record.project == self._project
            }
        observations = dict(zip(known, self.observe(kind, list(known.values())), strict=True))
        absent = Observation(Presence.ABSENT, seen_at=self._db.agreed_now())
        return [observations.get(token, absent) for token in tokens]

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        ids = []
        for name in names:
            try:
                ids.append(self._api().find(kind, self._project, name))
            except Rejected as error:
                raise ambiguous(name) from error
        return ids

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        """Create objects one by one, each committed before the next.

        Objects not started within `BATCH_S` are postponed: a pass without answers for long counts as hung.
        """
        began, answers = self._monotonic(), list[Answer]()
        for creation in intents:
            if self._monotonic() - began > BATCH_S:
                answers.append(Transient("others of its batch come first", retry_after_s=0.0))
            else:
                answers.append(_answered(self._create, kind, creation.token, creation.spec))
        return answers

    def _create(self, kind: str, token: str, spec: Fields) -> Observation:
        (existing,) = self.find(kind, [token])
        if existing.present:
            return existing
        owner, by = self._requester([token], [])
        if owner is None:
            raise Terminal("the resource that this was asked for is not there any more")
        try:
            self._api().make(kind, by, spec, self._keep(kind, token, owner))
        except AlreadyCreated:
            pass
        (created,) = self.find(kind, [token])
        return created

    def _keep(self, kind: str, token: str, owner: Owner | None) -> Callable[[Transaction, ResourceRecord], None]:
        """Return the function that stores the record of a token."""

        def keep(tx: Transaction, new: ResourceRecord) -> None:
            now = tx.now()
            tokens.forget_gone(tx, kind, self._project)
            record = Record(new.id, kind, self._project, token, dict(new.asked), new.stack_id, created_at=now)
            records.add(tx, [record])
            if records.of_tokens(tx, kind, [token])[token].id != new.id:
                raise AlreadyCreated
            if new.stack_id:
                share_trust(tx, owner, new.stack_id, self._entropy, now)

        return keep

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        return [_answered(self._update, kind, change.handle, change.spec) for change in changes]

    def _update(self, kind: str, handle: str, spec: Fields) -> Observation:
        record, owner, by = self._known(kind, handle)

        def keep(tx: Transaction, new: ResourceRecord) -> None:
            stored = records.for_update(tx, handle)
            now = tx.now()
            if stored is not None and stored.kind == kind:
                stored.object, stored.link = dict(new.asked), new.stack_id
                records.save(tx, stored, now)
            if new.stack_id:
                share_trust(tx, owner, new.stack_id, self._entropy, now)

        try:
            self._api().change(kind, by, handle, spec, record.object if record is not None else {}, keep)
        except Rejected as error:
            return self._unless_gone(kind, handle, error)
        return self.observe(kind, [handle])[0]

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        return [_answered(self._delete, kind, handle) for handle in handles]

    def _delete(self, kind: str, handle: str) -> Observation:
        record, _, by = self._known(kind, handle)

        def forget(tx: Transaction) -> None:
            # In the transaction of the deletion: afterwards the token is unknown, and the service completes it.
            records.remove(tx, [handle] if record is not None else [])

        try:
            self._api().remove(kind, by, handle, record.object if record is not None else {}, forget)
        except Rejected as error:
            observation = self._unless_gone(kind, handle, error)
            with self._db.write() as tx:
                forget(tx)
            return Observation(Presence.ABSENT, handle, seen_at=observation.seen_at, not_found=True)
        return self.observe(kind, [handle])[0]

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        return [_answered(self._operate, kind, operation) for operation in operations]

    def _operate(self, kind: str, operation: Operation) -> Observation:
        if operation.verb == ADOPT:
            return self._adopt(kind, operation.arguments)
        record, _, by = self._known(kind, operation.handle)
        try:
            self._api().operate(kind, by, operation.handle, operation.verb, record.object if record is not None else {})
        except Rejected as error:
            return self._unless_gone(kind, operation.handle, error)
        return self.observe(kind, [operation.handle])[0]

    def _adopt(self, kind: str, document: Mapping[str, Any]) -> Observation:
        """Adopt the object with this id, or create an object from the document; idempotent by the token.

        Raises:
            Terminal: The object belongs to a resource already.
            Transient: The object belongs to a resource that is being deleted.
        """
        token, id = str(document["token"]), str(document["id"] or "")
        (record,) = self.find(kind, [token])
        if record.present:
            return record
        exists = self.observe(kind, [id])[0].present if id else False
        if not exists:
            return self._create(kind, token, document["spec"])
        owner, by = self._requester([token], [])
        with self._db.read() as tx:
            others = [other for other in records.owners_of(tx, [id]) if other.token != token]
        for other in others:
            if (kind_of(other.type), other.project) == (kind, self._project):
                raise _taken(id, other)
        keep = self._keep(kind, token, owner)

        def take_over(tx: Transaction, new: ResourceRecord) -> None:
            records.remove(tx, [id])
            keep(tx, new)

        self._api().take_over(kind, by, id, document["spec"], take_over)
        return self.observe(kind, [id])[0]

    # -- the requester -----------------------------------------------------------------------------------------------

    def _known(self, kind: str, handle: str) -> tuple[Record | None, Owner | None, Requester]:
        """Return the record of an object, if any, with the resource that owns the object, and the requester."""
        with self._db.read() as tx:
            record = records.get(tx, handle, kind, self._project)
        return record, *self._requester([record.token] if record is not None else [], [handle])

    def _requester(self, tokens: Sequence[str], handles: Sequence[str]) -> tuple[Owner | None, Requester]:
        with self._db.read() as tx:
            owners = list(records.owners(tx, [records.key_of(token) for token in tokens]).values())
            owners = owners or records.owners_of(tx, handles)
            owner = next((candidate for candidate in owners if candidate.project == self._project), None)
            return owner, requester_of(tx, self._project, owner)

    def _unless_gone(self, kind: str, handle: str, error: Rejected) -> Observation:
        """Return the observation that an object is absent if `error` is due to that; otherwise raise the error."""
        (observation,) = self.observe(kind, [handle])
        if error.fault in MISSING and not observation.present:
            return observation
        raise error

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """Return no notices: objects in progress are observed every second."""
        return iter(())

    def close(self) -> None:
        """Do nothing: the owner of the database closes it."""


def _answered(act: Callable[..., Observation], *arguments: Any) -> Answer:
    """Return the result of an operation on an object, with errors classified for the engine."""
    try:
        return act(*arguments)
    except Rejected as error:
        return Transient(str(error)) if error.fault in BUSY else Terminal(str(error))
    except HomeostatError as error:
        return error


def _taken(id: str, other: Owner) -> HomeostatError:
    place = f"{id} is {other.name} of stack {other.stack_name}"
    if other.action == "DELETE":
        return Transient(f"resource_id: {place} still, which is being deleted")
    return Terminal(f"resource_id: {place} already: abandon that first, or take it out of the document")


class ClusteringResourceClouds:
    """The clustering clouds of all projects; `api` returns the operations when they are first needed."""

    def __init__(self, db: Database, entropy: Entropy, api: "Callable[[], ClusteringResources]") -> None:
        self._db = db
        self._entropy = entropy
        self._api = api

    def of(self, project: str) -> ClusteringCloud:
        """Return the clustering cloud of a project."""
        return ClusteringCloud(self._db, self._entropy, self._api, project)
