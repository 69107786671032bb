"""Clusters, nodes, profiles, policies and receivers of templates, behind the port of a cloud.

What the API does for users is done here for resources: on behalf of the user of the stack, and with a record of the
token in the transaction that makes the thing, so that it is found again (ADR 0077).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from homeostat.clock import Entropy
from homeostat.clouds.port import Answer, Change, ChangeNotice, Creation, Operation
from homeostat.clustering.resources.api import ClusteringResources
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
from homeostat.store.database import Database

TYPE_KINDS = frozenset({"cluster_profile_type", "cluster_policy_type"})
"""Types of profiles and policies, which can only be resolved."""
BUSY = frozenset(
    {"ActionConflict", "ActionInProgress", "ResourceInUse", "ResourceIsLocked", "StackExists", "StackLocked"}
)
"""Faults that pass, or that another id avoids: what is asked for is asked for again."""
MISSING = frozenset({"EntityNotFound", "ResourceNotFound"})
CHUNK = 500
"""Things looked at in one transaction."""
BATCH_S = 20.0
"""Seconds after which no more things of a batch are begun: to make a cluster may take a while."""


class AlreadyCreated(HomeostatError):
    """The thing of this token was made meanwhile, by another worker."""


class ClusteringCloud:
    """The things of one project, behind the port of a cloud (`clouds.port.Cloud`)."""

    name = "clustering"
    kinds = frozenset(KINDS) | TYPE_KINDS
    listing_lag_s = 0.0

    def __init__(
        self,
        db: Database,
        entropy: Entropy,
        api: ClusteringResources,
        project: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._db = db
        self._entropy = entropy
        self._api = api
        self._project = project

    # -- looking -----------------------------------------------------------------------------------------------------

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        found: dict[str, Fields] = {}
        for start in range(0, len(handles), CHUNK):
            found |= self._api.look(kind, self._project, handles[start : start + CHUNK])
        now = self._db.agreed_now()
        return [
            Observation(Presence.PRESENT, handle, found[handle], now)
            if handle in found
            else Observation(Presence.ABSENT, handle, seen_at=now, reason="it is gone")
            for handle in handles
        ]

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        with self._db.read() as tx:
            known = {
                token: each.id
                for token, each in records.of_tokens(tx, kind, tokens).items()
                if each.project == self._project
            }
        looks = dict(zip(known, self.observe(kind, list(known.values())), strict=True))
        none = Observation(Presence.ABSENT, seen_at=self._db.agreed_now())
        return [looks.get(token, none) for token in tokens]

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        found = []
        for name in names:
            try:
                found.append(self._api.find(kind, self._project, name))
            except Rejected as error:
                raise ambiguous(name) from error
        return found

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        """Create things one by one; each is there for good before the next is begun.

        What does not come to its turn in `BATCH_S` is put off: a pass that answers nothing for long counts as hung.
        """
        began, answers = self._monotonic(), list[Answer]()
        for each in intents:
            if self._monotonic() - began > BATCH_S:
                answers.append(Transient("others of its batch come first", retry_after_s=0.0))
            else:
                answers.append(_answered(self._create, kind, each.token, each.spec))
        return answers

    def _create(self, kind: str, token: str, spec: Fields) -> Observation:
        (there,) = self.find(kind, [token])
        if there.present:
            return there
        owner, by = self._requester([token], [])
        if owner is None:
            raise Terminal("the resource that this was asked for is not there any more")
        try:
            self._api.make(kind, by, spec, self._keep(kind, token, owner))
        except AlreadyCreated:
            pass
        (made,) = self.find(kind, [token])
        return made

    def _keep(self, kind: str, token: str, owner: Owner | None) -> Callable[[Connection, ResourceRecord], None]:
        """Return what stores the record of a token."""

        def keep(tx: Connection, kept: ResourceRecord) -> None:
            now = self._db.now_of(tx)
            tokens.forget_gone(tx, kind, self._project)
            wanted = Record(kept.id, kind, self._project, token, dict(kept.asked), kept.stack_id, created_at=now)
            records.add(self._db, tx, [wanted])
            if records.of_tokens(tx, kind, [token])[token].id != kept.id:
                raise AlreadyCreated
            if kept.stack_id:
                share_trust(tx, owner, kept.stack_id, self._entropy, now)

        return keep

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        return [_answered(self._update, kind, each.handle, each.spec) for each in changes]

    def _update(self, kind: str, handle: str, spec: Fields) -> Observation:
        record, owner, by = self._known(kind, handle)

        def keep(tx: Connection, kept: ResourceRecord) -> None:
            stored = records.for_update(self._db, tx, handle)
            now = self._db.now_of(tx)
            if stored is not None and stored.kind == kind:
                stored.object, stored.link = dict(kept.asked), kept.stack_id
                records.save(tx, stored, now)
            if kept.stack_id:
                share_trust(tx, owner, kept.stack_id, self._entropy, now)

        try:
            self._api.change(kind, by, handle, spec, record.object if record is not None else {}, keep)
        except Rejected as error:
            return self._unless_gone(kind, handle, error)
        return self.observe(kind, [handle])[0]

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        return [_answered(self._delete, kind, each) for each in handles]

    def _delete(self, kind: str, handle: str) -> Observation:
        record, _, by = self._known(kind, handle)

        def forget(tx: Connection) -> None:
            # Its deletion is stored with this: from now on the token leads nowhere, and the thing goes by itself.
            records.remove(tx, [handle] if record is not None else [])

        try:
            self._api.remove(kind, by, handle, record.object if record is not None else {}, forget)
        except Rejected as error:
            gone = self._unless_gone(kind, handle, error)
            with self._db.write() as tx:
                forget(tx)
            return Observation(Presence.ABSENT, handle, seen_at=gone.seen_at, not_found=True)
        return self.observe(kind, [handle])[0]

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        return [_answered(self._operate, kind, each) for each in operations]

    def _operate(self, kind: str, operation: Operation) -> Observation:
        if operation.verb == ADOPT:
            return self._adopt(kind, operation.arguments)
        record, _, by = self._known(kind, operation.handle)
        try:
            self._api.operate(kind, by, operation.handle, operation.verb, record.object if record is not None else {})
        except Rejected as error:
            return self._unless_gone(kind, operation.handle, error)
        return self.observe(kind, [operation.handle])[0]

    def _adopt(self, kind: str, document: Mapping[str, Any]) -> Observation:
        """Take over the thing of that id, or make one from the document; idempotent by the token.

        Raises:
            Terminal: A resource has the thing already.
            Transient: A resource that is being deleted has it still.
        """
        token, id = str(document["token"]), str(document["id"] or "")
        (record,) = self.find(kind, [token])
        if record.present:
            return record
        there = self.observe(kind, [id])[0].present if id else False
        if not there:
            return self._create(kind, token, document["spec"])
        owner, by = self._requester([token], [])
        with self._db.read() as tx:
            others = [each for each in records.owners_of(tx, [id]) if each.token != token]
        for other in others:
            if (kind_of(other.type), other.project) == (kind, self._project):
                raise _taken(id, other)
        keep = self._keep(kind, token, owner)

        def take_over(tx: Connection, kept: ResourceRecord) -> None:
            records.remove(tx, [id])
            keep(tx, kept)

        self._api.take_over(kind, by, id, document["spec"], take_over)
        return self.observe(kind, [id])[0]

    # -- who asks ----------------------------------------------------------------------------------------------------

    def _known(self, kind: str, handle: str) -> tuple[Record | None, Owner | None, Requester]:
        """Return the record of a thing, if it has one, the resource that it is, and on whose behalf that acts."""
        with self._db.read() as tx:
            record = records.get(tx, handle, kind, self._project)
        return record, *self._requester([record.token] if record is not None else [], [handle])

    def _requester(self, tokens: Sequence[str], handles: Sequence[str]) -> tuple[Owner | None, Requester]:
        with self._db.read() as tx:
            owners = list(records.owners(tx, [records.key_of(each) for each in tokens]).values())
            owners = owners or records.owners_of(tx, handles)
            owner = next((each for each in owners if each.project == self._project), None)
            return owner, requester_of(tx, self._project, owner)

    def _unless_gone(self, kind: str, handle: str, error: Rejected) -> Observation:
        """Return that a thing is gone, where an error says so; raise the error where the thing is there."""
        (seen,) = self.observe(kind, [handle])
        if error.fault in MISSING and not seen.present:
            return seen
        raise error

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """Return no notices: things in progress are looked at every second."""
        return iter(())

    def close(self) -> None:
        """Do nothing: the database is closed by its owner."""


def _answered(act: Callable[..., Observation], *arguments: Any) -> Answer:
    """Return what came of an act on one thing."""
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
    """The things of all projects.

    Args:
        db: The database.
        entropy: Randomness for ids.
        api: What the API does for them.
    """

    def __init__(self, db: Database, entropy: Entropy, api: ClusteringResources) -> None:
        self._db = db
        self._entropy = entropy
        self._api = api

    def of(self, project: str) -> ClusteringCloud:
        """Return the things of one project as a cloud."""
        return ClusteringCloud(self._db, self._entropy, self._api, project)
