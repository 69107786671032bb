"""Identity: domains, projects, users, groups, roles and the catalogue, which only administrators may change.

Identity stores unknown fields, so the token is such a field. (Users of a domain in a directory have no unknown fields;
but most of these domains do not accept new users, either.)
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from homeostat.clouds.openstack.answers import Forbidden, Missing
from homeostat.clouds.openstack.collection import FEW, Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InField, Joined, TokenPlace

GRANTS = "homeostat_roles"
"""Field of users and groups with the roles granted by this service, so that it revokes no further roles."""


class IdentityCollection(Collection):
    """A collection of Identity."""

    service = "identity"
    token: ClassVar[TokenPlace] = InField()
    update_method = "PATCH"

    def id_of(self, name: Any) -> Any:
        try:
            return super().id_of(name)
        except Forbidden:
            # Ordinary users may not list Identity's objects, so they refer to them by id.
            return name

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        return super().body_of(self.with_ids(spec))


class Domains(IdentityCollection):
    kind = "domain"
    path, key, keys = "/domains", "domain", "domains"

    def delete(self, handle: str) -> None:
        # Identity refuses to delete an enabled domain.
        self.api.request("PATCH", self.path_of(handle), self._wrapped({"enabled": False}), of=handle)
        super().delete(handle)


class Projects(IdentityCollection):
    kind = "project"
    path, key, keys = "/projects", "project", "projects"


class Roles(IdentityCollection):
    kind = "role"
    path, key, keys = "/roles", "role", "roles"

    def list(self, **filters: Any) -> Iterator[Wire]:
        """Yield all roles: a list has either the roles of one domain, or the roles without a domain."""
        yield from super().list(**filters)
        for domain in self.cloud.collections["domain"].list():
            yield from super().list(**filters, domain_id=domain["id"])

    def resolve(self, name: str) -> str | None:
        """Return the id of the role with this name or id; names of domain-specific roles are not looked up."""
        try:
            return self.handle_of(self.get(name))
        except Missing:
            named = [role for role in super().list(name=name) if role["name"] == name]
            return self.handle_of(named[0]) if named else None


class Services(IdentityCollection):
    kind = "service"
    path, key, keys = "/services", "service", "services"


class Regions(IdentityCollection):
    kind = "region"
    path, key, keys = "/regions", "region", "regions"
    names = "id"

    def list(self, **filters: Any) -> Iterator[Wire]:
        # Unlike other lists of Identity, this one refuses unknown filters, and `limit` is unknown.
        return super().list(limit=None)


class Endpoints(IdentityCollection):
    kind = "endpoint"
    path, key, keys = "/endpoints", "endpoint", "endpoints"


class Holders(IdentityCollection):
    """Users or groups, which may have roles."""

    apart: ClassVar[tuple[str, ...]] = ("roles",)
    """Fields that need separate requests."""

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        grants = self._granted(spec)
        plain = {name: value for name, value in spec.items() if name not in self.apart}
        thing = super().create(token, {**plain, GRANTS: sorted(grants)} if grants else plain)
        apart = [name for name in self.apart if spec.get(name)]
        return self.finish_creation(thing, lambda: self._set(thing, spec, apart)) if apart else thing

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        before = self.get(handle)
        if any(name not in self.apart for name in changed):
            super().update(handle, spec, [name for name in changed if name not in self.apart])
        self._set(before, spec, [name for name in changed if name in self.apart])
        return self.get(handle)

    def _set(self, thing: Wire, spec: Mapping[str, Any], names: Sequence[str]) -> None:
        if "roles" in names:
            grants, id = self._granted(spec), thing["id"]
            known = set(thing.get(GRANTS) or ())
            if known - grants:
                _revoke(self, f"{self.keys}/{id}", known - grants, id)
            # Recorded before the grants: a grant without its record would never be revoked.
            if known != grants:
                self.api.request("PATCH", self.path_of(id), self._wrapped({GRANTS: sorted(grants)}), of=id)
            _grant(self, f"{self.keys}/{id}", grants, id)

    def _granted(self, spec: Mapping[str, Any]) -> set[str]:
        return {_grant_of(self, role) for role in spec.get("roles") or ()}

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        if not things:
            return things
        grants = _grants(self, self.key, [thing["id"] for thing in things.values()])
        return {
            name: {**thing, "roles": [_role(grant) for grant in sorted(grants.get(thing["id"], ()))]}
            for name, thing in things.items()
        }

    def object_of(self, thing: Wire) -> Wire:
        return {name: value for name, value in super().object_of(thing).items() if name not in (GRANTS, "extra")}


class Groups(Holders):
    kind = "group"
    path, key, keys = "/groups", "group", "groups"


class Users(Holders):
    kind = "user"
    path, key, keys = "/users", "user", "users"
    further_looks = "one for each user"
    apart = ("groups", "roles")

    def _set(self, thing: Wire, spec: Mapping[str, Any], names: Sequence[str]) -> None:
        if "groups" in names:
            wanted = {str(self.reference("group", name)) for name in spec.get("groups") or ()}
            before = set(self._groups(thing["id"]))
            for method, groups in (("PUT", wanted - before), ("DELETE", before - wanted)):
                for group in sorted(groups):
                    self.api.request(method, f"/groups/{group}/users/{thing['id']}", of=thing["id"])
        super()._set(thing, spec, names)

    def _groups(self, id: str) -> Sequence[str]:
        return [group["id"] for group in self.api.list(f"{self.path_of(id)}/groups", "groups")]

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        if not things:
            return things
        full = super().complete(things)
        of_users = self.cloud.side_by_side(lambda name: self._groups(full[name]["id"]), list(full))
        return {name: {**full[name], "groups": groups} for name, groups in zip(full, of_users, strict=True)}


class RoleAssignments(IdentityCollection):
    """Role assignments of a user or a group.

    The handle is `users/<id>:<role>@projects/<id>,…`: it names the assignments of this resource, since the user may
    have more.
    """

    kind = "role_assignment"
    path = "/role_assignments"
    token = Joined()

    def get(self, handle: str) -> Wire:
        return self._view(handle, _grants(self, _singular(handle), [_id(handle)]))

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        kinds = {_singular(handle) for handle in handles if ":" in handle}
        by_kind = {
            kind: _grants(self, kind, [_id(handle) for handle in handles if _singular(handle) == kind])
            for kind in kinds
        }
        views = {}
        for handle in handles:
            try:
                views[handle] = self._view(handle, by_kind.get(_singular(handle), {}))
            except Missing:
                continue
        return views

    def _view(self, handle: str, grants: Mapping[str, set[str]]) -> Wire:
        present = _own(handle) & grants.get(_id(handle), set())
        if not present:
            raise Missing(f"none of the roles of {handle} is given")
        roles = [_role(grant) for grant in sorted(present)]
        return {"id": handle, f"{_singular(handle)}_id": _id(handle), "roles": roles}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        kind = "user" if spec.get("user_id") else "group"
        return self._put(f"{kind}s/{self.reference(kind, spec[f'{kind}_id'])}", spec, token)

    def _put(self, holder: str, spec: Mapping[str, Any], of: str) -> Wire:
        grants = {_grant_of(self, role) for role in spec.get("roles") or ()}
        _grant(self, holder, grants, of)
        return {"id": f"{holder}:{','.join(sorted(grants))}", "roles": [_role(grant) for grant in sorted(grants)]}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Change the roles or their holder, which changes the handle."""
        self.get(handle)
        thing = self.create(handle, spec)
        same = thing["id"].partition(":")[0] == handle.partition(":")[0]
        _revoke(self, handle.partition(":")[0], _own(handle) - (_own(thing["id"]) if same else set()), handle)
        return thing

    def delete(self, handle: str) -> None:
        self.get(handle)
        _revoke(self, handle.partition(":")[0], _own(handle), handle)


# -- role assignments: `<role>@projects/<id>` or `<role>@domains/<id>` -----------------------------------------------


def _grant_of(collection: Collection, role: Mapping[str, Any]) -> str:
    kind = "project" if role.get("project_id") else "domain"
    place = collection.reference(kind, role.get(f"{kind}_id"))
    return f"{collection.reference('role', role['role'])}@{kind}s/{place}"


def _role(grant: str) -> Wire:
    role, _, place = grant.partition("@")
    kind, _, id = place.partition("s/")
    return {"role": role, f"{kind}_id": id}


def _grants(collection: Collection, kind: str, ids: Sequence[str]) -> Mapping[str, set[str]]:
    """Return user or group -> its roles: few holders are queried individually, more with one list of all."""
    filters: list[dict[str, Any]] = [{f"{kind}.id": id} for id in set(ids)] if len(set(ids)) <= FEW else [{}]
    grants: dict[str, set[str]] = {}
    for query in filters:
        for entry in collection.api.list("/role_assignments", "role_assignments", limit=None, **query):
            if kind in entry and "OS-INHERIT:inherited_to" not in entry["scope"]:
                places = (f"{place}s/{of['id']}" for place, of in entry["scope"].items() if "id" in of)
                grants.setdefault(entry[kind]["id"], set()).update(f"{entry['role']['id']}@{at}" for at in places)
    return grants


def _grant(collection: Collection, holder: str, grants: set[str], of: str) -> None:
    for grant in sorted(grants):
        collection.api.request("PUT", _path(holder, grant), of=of)


def _revoke(collection: Collection, holder: str, grants: set[str], of: str) -> None:
    for grant in sorted(grants):
        try:
            collection.api.request("DELETE", _path(holder, grant), of=of)
        except Missing:
            continue


def _path(holder: str, grant: str) -> str:
    role, _, place = grant.partition("@")
    return f"/{place}/{holder}/roles/{role}"


def _singular(handle: str) -> str:
    return handle.partition("/")[0].removesuffix("s")


def _id(handle: str) -> str:
    return handle.partition(":")[0].partition("/")[2]


def _own(handle: str) -> set[str]:
    return {grant for grant in handle.partition(":")[2].split(",") if grant}


COLLECTIONS: tuple[type[Collection], ...] = (
    Domains,
    Projects,
    Users,
    Groups,
    Roles,
    RoleAssignments,
    Services,
    Regions,
    Endpoints,
)
