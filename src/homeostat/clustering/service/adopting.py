"""Servers and stacks that exist already, and become nodes: each with a profile made from it, in a stack of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, insert

from homeostat.clustering.decisions.adopted import server_spec
from homeostat.clustering.decisions.names import node_id, node_name
from homeostat.clustering.decisions.profiles import PROFILE_TYPES, STACK_PROFILE
from homeostat.clustering.decisions.states import ADOPTED
from homeostat.clustering.service import adopted_stacks
from homeostat.clustering.service.membership_moves import add_home
from homeostat.clustering.service.nodes import request_of_node
from homeostat.clustering.service.quotas import with_size
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.service.specs import SpecService
from homeostat.clustering.service.stack_requests import LEFT_ALONE
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
from homeostat.store.database import Database
from homeostat.store.schema.rows import ProfileRow, StackRow
from homeostat.store.stacks.action_begin import NewStack
from homeostat.transfer import adoption

SERVER = "OS::Nova::Server"


@dataclass(frozen=True, slots=True)
class Looked:
    """What is to become a node.

    Attributes:
        spec: Spec of its profile.
        handle: Handle of the server, or id of the stack.
        known: Properties that it has, where they may differ from those that the node is to have.
        stack: Row of the stack; None for a server.
    """

    spec: Mapping[str, Any]
    handle: str
    known: Mapping[str, Any]
    stack: StackRow | None = None


class Adopter:
    """Makes nodes of servers and stacks.

    Args:
        db: The database.
        stack_service: Makes stacks, and knows the clouds.
        profiles: Stores profiles.
    """

    def __init__(self, db: Database, stack_service: StackService, profiles: SpecService[ProfileRow]) -> None:
        self._db = db
        self._stacks = stack_service
        self._profiles = profiles

    def preview(self, scope: RequestScope, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the spec of the profile that the node would have: `{type, version, properties}`.

        Args:
            scope: Who asks.
            given: identity, type, overrides, snapshot.

        Raises:
            Rejected: ResourceNotFound: there is no such type, server or stack; BadRequest; InvalidSpec.
            Transient: The cloud does not answer.
        """
        return self._looked(scope, given).spec

    def adopt(
        self,
        scope: RequestScope,
        given: Mapping[str, Any],
        check_types: CheckTypes | None,
        profile: ProfileRow | None = None,
    ) -> str:
        """Let a server or a stack be a node, and return the id of the node.

        Nothing in the cloud changes but the name and the metadata of a server, once a worker comes by.

        Args:
            scope: Who asks.
            given: identity, type, overrides, snapshot; name, role, metadata.
            check_types: See `StackRequest`.
            profile: Row of the profile from which the server was made; None to make one from the server.

        Raises:
            Rejected: As `preview`; also where a stack has the server already; OverQuota.
            Transient: A cloud does not answer.
        """
        looked = self._looked(scope, given, profile)
        stack_id = self._stacks.entropy.stack_id()
        name = given.get("name") or node_name("", stack_id, 1)
        profile_name = f"prof-{name}"[:255]
        identity, now = node_id(stack_id, 1), self._db.agreed_now()
        row = {
            "id": identity,
            **scope.owner,
            "name": name,
            "cluster_id": None,
            "stack_id": stack_id,
            "number": 0,
            "role": given.get("role"),
            "metadata": given.get("metadata", {}),
            "data": {},
            "own": True,
            "tainted": False,
            "leaving": False,
            "init_at": now,
        }
        checked = self._profiles.checked(scope, profile_name, looked.spec)
        request = request_of_node(checked, row, check_types)
        stack_name = f"node-{identity[:8]}"
        new = NewStack(stack_id, scope.project, stack_name, scope.caller.user, exceptions=LEFT_ALONE)
        home = self._stacks.prepare(new, request)
        with self._stacks.entrusted(stack_id, scope.project, scope.caller) as accept, self._db.write() as tx:
            if looked.stack is not None:
                adopted_stacks.lock(self._db, tx, looked.stack)
            new_profile = profile is None and self._profiles.add(tx, scope, profile_name, checked, metadata={})
            profile_id = new_profile or (profile.id if profile is not None else "")
            self._store(tx, scope, home, looked)
            living.forget_gone(tx, scope.project)
            tx.execute(insert(schema.node).values(**with_size(tx, scope.project, row), profile_id=profile_id))
            accept(tx)
        return identity

    def _looked(self, scope: RequestScope, given: Mapping[str, Any], profile: ProfileRow | None = None) -> Looked:
        """Return what a server or a stack is like, and the spec of its profile: `profile`, or one made from it."""
        PROFILE_TYPES.find(given["type"])
        if given.get("snapshot"):
            message = "A snapshot is not taken when a node is adopted: make an image of it first, and set snapshot"
            raise Rejected("BadRequest", f"{message} to false.")
        look = self._stack if given["type"] == STACK_PROFILE else self._server
        looked = look(scope, given["identity"], given.get("overrides") or {})
        if profile is not None:
            return replace(looked, spec=profile.spec)
        self._profiles.checked(scope, "prof", looked.spec)
        return looked

    def _server(self, scope: RequestScope, identity: str, overrides: Mapping[str, Any]) -> Looked:
        (seen,) = self._stacks.prerequisites.cloud(scope.project).observe(kind_of(SERVER), [identity])
        if seen.presence is not Presence.PRESENT:
            raise Rejected("ResourceNotFound", f"The server '{identity}' could not be found.")
        # What the next pass finds to differ it changes in place: name, and metadata that say which node it is.
        known = {name: seen.properties[name] for name in ("name", "metadata") if name in seen.properties}
        return Looked(server_spec(seen.properties, overrides), identity, known)

    def _stack(self, scope: RequestScope, identity: str, overrides: Mapping[str, Any]) -> Looked:
        with self._db.read() as tx:
            row = adopted_stacks.find(tx, scope.project, identity, self._stacks.quotas.depth_max)
            return Looked(adopted_stacks.stack_spec(tx, row, overrides), row.id, {}, row)

    def _store(self, tx: Connection, scope: RequestScope, home: PreparedStack, looked: Looked) -> None:
        """Store the stack of the node, with the row of what it is in its group."""
        now = self._db.now_of(tx)
        place, desired = add_home(self._db, self._stacks, tx, home, scope.caller, now)
        (definition,) = compile_graph(desired, Identity(place.stack_id, "", scope.project), 0).values()
        row = Resource(
            next(self._stacks.entropy.keys()),
            place.stack_id,
            0,
            place.name,
            definition.type,
            handle=looked.handle,
            action=Action.ADOPT,
            reason=ADOPTED,
            properties={**definition.properties, **looked.known},
            deletion_policy=definition.deletion_policy,
            born=1,
            created_at=now,
            updated_at=now,
        )
        secret = home.revision.secret is not False
        try:
            adoption.add(self._db, tx, scope.project, adoption.write_out(self._db, [row], secret=secret))
        except Terminal as error:
            raise Rejected("BadRequest", f"It cannot be adopted: {error}") from error
        if looked.stack is not None:
            moves.nest(tx, looked.stack.id, row.key, place, adopted_stacks.LEVELS)
