"""Adoption: existing servers and stacks become nodes without a cluster, with profiles made from them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import insert

from homeostat.clustering.decisions.names import node_id, node_name
from homeostat.clustering.decisions.profiles import PROFILE_TYPES, STACK_PROFILE
from homeostat.clustering.decisions.server_profile import server_spec
from homeostat.clustering.decisions.states import ADOPTED
from homeostat.clustering.service import adopted_stacks
from homeostat.clustering.service.change_rows import new_node
from homeostat.clustering.service.membership_moves import add_home
from homeostat.clustering.service.quotas import with_size
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.service.specs import SpecService
from homeostat.clustering.service.stack_requests import LEFT_ALONE, node_request
from homeostat.clustering.store import living, moves
from homeostat.desired.graphs import compile_graph
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.observed import Presence
from homeostat.model.status import Action
from homeostat.model.world import Resource
from homeostat.resources.registry import kind_of
from homeostat.services.pipeline.request import CheckTypes
from homeostat.services.stacks import PreparedStack, StackService
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import ProfileRow, StackRow
from homeostat.store.stacks.action_begin import NewStack
from homeostat.transfer import adoption

SERVER = "OS::Nova::Server"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server or stack to adopt.

    Attributes:
        spec: Spec of the profile.
        handle: Handle of the server, or id of the stack.
        known: Current properties that may differ from the desired ones of the node.
        stack: Row of the stack; None for a server.
    """

    spec: Mapping[str, Any]
    handle: str
    known: Mapping[str, Any]
    stack: StackRow | None = None


class Adopter:
    """Makes nodes of servers and stacks."""

    def __init__(self, db: Database, stack_service: StackService, profiles: SpecService[ProfileRow]) -> None:
        self._db = db
        self._stacks = stack_service
        self._profiles = profiles

    def preview(self, scope: RequestScope, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the spec of the node's future profile: `{type, version, properties}`.

        Args:
            fields: identity, type, overrides, snapshot.

        Raises:
            Rejected: ResourceNotFound: the type, server or stack does not exist; BadRequest; InvalidSpec.
            Transient: The cloud does not answer.
        """
        return self._candidate(scope, fields).spec

    def adopt(
        self,
        scope: RequestScope,
        fields: Mapping[str, Any],
        check_types: CheckTypes | None,
        profile: ProfileRow | None = None,
    ) -> str:
        """Adopt a server or a stack as a node, and return the id of the node.

        In the cloud only the name and the metadata of a server change, by the next pass of a worker.

        Args:
            fields: identity, type, overrides, snapshot; name, role, metadata.
            check_types: See `StackRequest`.
            profile: Profile of the server; None to store a new profile made from the server.

        Raises:
            Rejected: As `preview`; also if the server belongs to a stack already; OverQuota.
            Transient: A cloud does not answer.
        """
        candidate = self._candidate(scope, fields, profile)
        stack_id = self._stacks.entropy.stack_id()
        name = fields.get("name") or node_name("", stack_id, 1)
        profile_name = f"prof-{name}"[:255]
        identity, now = node_id(stack_id, 1), self._db.agreed_now()
        columns = {"role": fields.get("role"), "metadata": fields.get("metadata", {})}
        row = new_node(scope.owner, identity, name, stack_id, now, **columns)
        checked = self._profiles.checked(scope, profile_name, candidate.spec)
        request = node_request(checked, row, check_types)
        stack_name = f"node-{identity[:8]}"
        new = NewStack(stack_id, scope.project, stack_name, scope.caller.user, exceptions=LEFT_ALONE)
        home = self._stacks.prepare(new, request)
        with self._stacks.entrusted(stack_id, scope.project, scope.caller) as accept, self._db.write() as tx:
            if candidate.stack is not None:
                adopted_stacks.lock(tx, candidate.stack)
            new_profile = profile is None and self._profiles.add(tx, scope, profile_name, checked, metadata={})
            profile_id = new_profile or (profile.id if profile is not None else "")
            self._store(tx, scope, home, candidate)
            living.forget_gone(tx, scope.project)
            tx.execute(insert(schema.node).values(**with_size(tx, scope.project, row), profile_id=profile_id))
            accept(tx)
        return identity

    def _candidate(
        self, scope: RequestScope, fields: Mapping[str, Any], profile: ProfileRow | None = None
    ) -> Candidate:
        """Return a server or a stack, with the spec of its profile: `profile`, or a spec made from it."""
        PROFILE_TYPES.find(fields["type"])
        if fields.get("snapshot"):
            message = "A snapshot is not taken when a node is adopted: make an image of it first, and set snapshot"
            raise Rejected("BadRequest", f"{message} to false.")
        candidate_of = self._stack if fields["type"] == STACK_PROFILE else self._server
        candidate = candidate_of(scope, fields["identity"], fields.get("overrides") or {})
        if profile is not None:
            return replace(candidate, spec=profile.spec)
        self._profiles.checked(scope, "prof", candidate.spec)
        return candidate

    def _server(self, scope: RequestScope, identity: str, overrides: Mapping[str, Any]) -> Candidate:
        (seen,) = self._stacks.prerequisites.cloud(scope.project).observe(kind_of(SERVER), [identity])
        if seen.presence is not Presence.PRESENT:
            raise Rejected("ResourceNotFound", f"The server '{identity}' could not be found.")
        # The next pass updates differing properties in place: the name, and the metadata with the ids of the node.
        known = {name: seen.properties[name] for name in ("name", "metadata") if name in seen.properties}
        return Candidate(server_spec(seen.properties, overrides), identity, known)

    def _stack(self, scope: RequestScope, identity: str, overrides: Mapping[str, Any]) -> Candidate:
        with self._db.read() as tx:
            row = adopted_stacks.find(tx, scope.project, identity, self._stacks.quotas.depth_max)
            return Candidate(adopted_stacks.stack_spec(tx, row, overrides), row.id, {}, row)

    def _store(self, tx: Transaction, scope: RequestScope, home: PreparedStack, candidate: Candidate) -> None:
        """Store the stack of the node, with the row of the server or stack in its group."""
        now = tx.now()
        place, content = add_home(self._stacks, tx, home, scope.caller, now)
        (definition,) = compile_graph(content, Identity(place.stack_id, "", scope.project), 0).values()
        row = Resource(
            next(self._stacks.entropy.keys()),
            place.stack_id,
            0,
            place.name,
            definition.type,
            handle=candidate.handle,
            action=Action.ADOPT,
            reason=ADOPTED,
            properties={**definition.properties, **candidate.known},
            deletion_policy=definition.deletion_policy,
            born=1,
            created_at=now,
            updated_at=now,
        )
        secret = home.revision.secret is not False
        try:
            adoption.add(tx, scope.project, adoption.write_out(self._db, [row], secret=secret))
        except Terminal as error:
            raise Rejected("BadRequest", f"It cannot be adopted: {error}") from error
        if candidate.stack is not None:
            moves.nest(tx, candidate.stack.id, row.key, place, adopted_stacks.LEVELS)
