"""Servers that exist already, and become nodes: each with a profile made from it, in a stack of its own."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, insert

from homeostat.api.services.clusters.moving import add_home
from homeostat.api.services.clusters.nodes import request_of_node
from homeostat.api.services.clusters.requester import Asking
from homeostat.api.services.clusters.specs import SpecService
from homeostat.api.services.clusters.stack_requests import LEFT_ALONE
from homeostat.api.services.pipeline.request import CheckTypes
from homeostat.api.services.stacks import PreparedStack, StackService
from homeostat.clustering.adopted import server_spec
from homeostat.clustering.names import node_id, node_name
from homeostat.clustering.profiles import PROFILE_TYPES, SERVER_PROFILE
from homeostat.clustering.states import ADOPTED
from homeostat.desired.graphs import compile_graph
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.observed import Presence
from homeostat.model.status import Action
from homeostat.model.world import Resource
from homeostat.resources.registry import kind_of
from homeostat.store import schema
from homeostat.store.clusters import living
from homeostat.store.database import Database
from homeostat.store.stacks.action_begin import NewStack
from homeostat.transfer import adoption

SERVER = "OS::Nova::Server"


class Adopter:
    """Makes nodes of servers.

    Args:
        db: The database.
        stack_service: Makes stacks, and knows the clouds.
        profiles: Stores profiles.
    """

    def __init__(self, db: Database, stack_service: StackService, profiles: SpecService) -> None:
        self._db = db
        self._stacks = stack_service
        self._profiles = profiles

    def preview(self, asking: Asking, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the spec of the profile that the node would have: `{type, version, properties}`.

        Args:
            asking: Who asks.
            given: identity, type, overrides, snapshot.

        Raises:
            Rejected: ResourceNotFound: there is no such type or server; BadRequest; InvalidSpec.
            Transient: The cloud does not answer.
        """
        return self._looked(asking, given)[0]

    def adopt(
        self,
        asking: Asking,
        given: Mapping[str, Any],
        check_types: CheckTypes | None,
        profile: Row[Any] | None = None,
    ) -> str:
        """Let a server be a node, and return the id of the node.

        Nothing in the cloud changes but the name and the metadata of the server, once a worker comes by.

        Args:
            asking: Who asks.
            given: identity, type, overrides, snapshot; name, role, metadata.
            check_types: See `StackRequest`.
            profile: Row of the profile from which the server was made; None to make one from the server.

        Raises:
            Rejected: As `preview`; also where a stack has the server already; OverQuota.
            Transient: A cloud does not answer.
        """
        spec, seen = self._looked(asking, given, profile)
        stack_id = self._stacks.entropy.stack_id()
        name = given.get("name") or node_name("", stack_id, 1)
        profile_name = f"prof-{name}"[:255]
        identity, now = node_id(stack_id, 1), self._db.agreed_now()
        row = {
            "id": identity,
            **asking.owner,
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
        checked = self._profiles.checked(asking, profile_name, spec)
        request = request_of_node(checked, row, check_types)
        stack_name = f"node-{identity[:8]}"
        new = NewStack(stack_id, asking.project, stack_name, asking.caller.user, exceptions=LEFT_ALONE)
        home = self._stacks.prepare(new, request)
        with self._stacks.entrusted(stack_id, asking.project, asking.caller) as accept, self._db.write() as tx:
            new_profile = profile is None and self._profiles.add(tx, asking, profile_name, checked, metadata={})
            profile_id = new_profile or (profile.id if profile is not None else "")
            self._store(tx, asking, home, given["identity"], seen)
            living.forget_gone(tx, asking.project)
            tx.execute(insert(schema.node).values(**row, profile_id=profile_id))
            accept(tx)
        return identity

    def _looked(
        self, asking: Asking, given: Mapping[str, Any], profile: Row[Any] | None = None
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the spec of a server, that of the profile or one made from the server, and what was seen of it."""
        PROFILE_TYPES.find(given["type"])
        if given["type"] != SERVER_PROFILE:
            message = f"Nodes of type {given['type']} cannot be adopted; there is {SERVER_PROFILE}."
            raise Rejected("BadRequest", f"{message} Adopt the stack itself instead (openstack stack adopt).")
        if given.get("snapshot"):
            message = "A snapshot is not taken when a server is adopted: make an image of it first, and set snapshot"
            raise Rejected("BadRequest", f"{message} to false.")
        (seen,) = self._stacks.prerequisites.cloud(asking.project).observe(kind_of(SERVER), [given["identity"]])
        if seen.presence is not Presence.PRESENT:
            raise Rejected("ResourceNotFound", f"The server '{given['identity']}' could not be found.")
        if profile is not None:
            return profile.spec, seen.properties
        spec = server_spec(seen.properties, given.get("overrides") or {})
        self._profiles.checked(asking, "prof", spec)
        return spec, seen.properties

    def _store(self, tx: Connection, asking: Asking, home: PreparedStack, handle: str, seen: Mapping[str, Any]) -> None:
        """Store the stack of the node, with the row of the server in its group."""
        now = self._db.now_of(tx)
        place, desired = add_home(self._db, self._stacks, tx, home, asking.caller, now)
        (definition,) = compile_graph(desired, Identity(place.stack_id, "", asking.project), 0).values()
        # What the next pass finds to differ it changes in place: the name, and the metadata that say which node it is.
        known = {name: seen[name] for name in ("name", "metadata") if name in seen}
        row = Resource(
            next(self._stacks.entropy.keys()),
            place.stack_id,
            0,
            place.name,
            definition.type,
            handle=handle,
            action=Action.ADOPT,
            reason=ADOPTED,
            properties={**definition.properties, **known},
            deletion_policy=definition.deletion_policy,
            born=1,
            created_at=now,
            updated_at=now,
        )
        secret = home.revision.secret is not False
        try:
            adoption.add(self._db, tx, asking.project, adoption.write_out(self._db, [row], secret=secret))
        except Terminal as error:
            raise Rejected("BadRequest", f"The server cannot be adopted: {error}") from error
