"""Compute besides servers: key pairs, server groups, flavors and host aggregates."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InText
from homeostat.model.errors import Terminal

TEXT_MAX = 65535
KEY_BITS = 2048
LAST_TO_MAKE_KEYS = "2.91"
"""Newest microversion in which Compute generates keys."""


class ComputeCollection(Collection):
    """A collection of Compute, which refuses unknown filters."""

    service = "compute"
    filtered_by_name = False


class KeyPairs(ComputeCollection):
    """Key pairs. Their name is their id; the handle of a pair of another user than the stack's owner is `user/name`.

    The token is the end of the public key's comment. New versions of Compute generate no keys, so this class generates
    an SSH key if no public key is specified; its private key is only in the answer to the creation. A certificate
    (`x509`) has no comment: such a pair is recognized as an earlier creation by its name and public key.
    """

    kind = "keypair"
    path, key, keys = "/os-keypairs", "keypair", "keypairs"
    token = InText("public_key", TEXT_MAX)
    renamed = {"user": "user_id"}
    further_looks = "one for each, if stacks act for their owners: users see only their own"

    def list(self, **filters: Any) -> Iterator[Wire]:
        return (entry[self.key] for entry in super().list(**filters))

    def get(self, handle: str) -> Wire:
        user = handle.rpartition("/")[0]
        # Key pairs belong to users, so the request needs the credentials of the stack's owner.
        thing = self._thing(self.api.request("GET", self.path_of(handle), of=handle, params=_of_user(user)))
        return {**thing, "user_id": user} if user else {**thing, "user_id": ""}

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        return iter(()) if self.api.has_owners else self.list()

    def find(self, tokens: Sequence[str]) -> dict[str, Wire]:
        if not self.api.has_owners:
            return super().find(tokens)
        return {token: thing for token in tokens for thing in self._owned(token) if self.token.read(thing) == token}

    def _owned(self, of: str) -> Iterator[Wire]:
        return (entry[self.key] for entry in self.api.list(self.path, self.keys, of))

    def resolve(self, name: str) -> str | None:
        try:
            return self.handle_of(self._thing(self.api.get(self.path_of(name))) | {"user_id": ""})
        except Missing:
            return None

    def handle_of(self, thing: Wire) -> str:
        # Lists lack the user: they contain only key pairs of the stack's owner.
        user = thing.get("user_id")
        return f"{user}/{thing['name']}" if user else str(thing["name"])

    def path_of(self, handle: str) -> str:
        return f"{self.path}/{quote(handle.rpartition('/')[2], safe='')}"

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        body = self.body_of(self.with_ids(spec))
        how: dict[str, Any] = {}
        private: Wire = {}
        if body.get("type") == "x509":
            how = {} if body.get("public_key") else {"microversion": LAST_TO_MAKE_KEYS}
        else:
            if not body.get("public_key"):
                body["public_key"], private["private_key"] = generated_pair()
            body = self.token.write({**body, "public_key": body["public_key"].strip()}, token)
        handle = self.handle_of(body)
        try:
            thing = self._thing(self.api.request("POST", self.path, self._wrapped(body), of=token, **how))
        except Terminal:
            # The name is taken, perhaps by an earlier request of this creation, whose answer was lost.
            before = self._made_before(handle, token, body)
            if before is None:
                raise
            return before
        return {**thing, **private, "user_id": body.get("user_id") or ""}

    def _made_before(self, handle: str, token: str, body: Wire) -> Wire | None:
        """Return the key pair of an earlier request with this token; None if absent."""
        try:
            # Authenticated by the token: the engine does not know the handle yet.
            params = _of_user(body.get("user_id", ""))
            thing = self._thing(self.api.request("GET", self.path_of(handle), of=token, params=params))
        except Missing:
            return None
        same = body.get("type") == "x509" and thing.get("public_key") == body.get("public_key")
        return {**thing, "user_id": body.get("user_id", "")} if same or self.token.read(thing) == token else None

    def delete(self, handle: str) -> None:
        self.api.request("DELETE", self.path_of(handle), of=handle, params=_of_user(handle.rpartition("/")[0]))

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of({name: value for name, value in thing.items() if name != "user_id"})
        return {**fields, "id": self.handle_of(thing), **({"user": thing["user_id"]} if thing.get("user_id") else {})}


def _of_user(user: str) -> dict[str, str]:
    return {"user_id": user} if user else {}


def generated_pair() -> tuple[str, str]:
    """Return a new public and private key, in the formats of OpenSSH and PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return public.decode(), private.decode()


class ServerGroups(ComputeCollection):
    """Server groups, whose only text is their name, which never changes."""

    kind = "server_group"
    path, key, keys = "/os-server-groups", "server_group", "server_groups"
    token = InText("name")

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        policies = body.pop("policies", None) or ()
        if len(policies) > 1:
            raise Terminal(f"a server group has one policy, not {', '.join(policies)}")
        rules = {name: int(value) for name, value in (body.pop("rules", None) or {}).items()}
        return {**body, **({"policy": policies[0]} if policies else {}), **({"rules": rules} if rules else {})}

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        return {**fields, "policies": [fields.pop("policy")] if "policy" in fields else fields.get("policies")}


class Flavors(ComputeCollection):
    kind = "flavor"
    path, key, keys, detail = "/flavors", "flavor", "flavors", "/detail"
    further_looks = "one for each that is not public"
    token = InText("description", TEXT_MAX)
    renamed = {
        "ephemeral": "OS-FLV-EXT-DATA:ephemeral",
        "is_public": "os-flavor-access:is_public",
        "flavorid": "id",
    }

    def list(self, **filters: Any) -> Iterator[Wire]:
        # Without this filter administrators see public flavors only; Nova ignores it for other users.
        return super().list(is_public="None", **filters)

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        wanted = {name: value for name, value in spec.items() if name not in _OF_FLAVORS}
        thing = super().create(token, wanted)
        apart = [name for name in _OF_FLAVORS if spec.get(name)]
        return self.finish_creation(thing, lambda: self._change(thing, spec, apart)) if apart else thing

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        self._change(self.get(handle), spec, changed)
        return self.get(handle)

    def _change(self, thing: Wire, spec: Mapping[str, Any], changed: Sequence[str]) -> None:
        path, handle = self.path_of(thing["id"]), thing["id"]
        if "extra_specs" in changed:
            wanted = {name: str(value) for name, value in (spec.get("extra_specs") or {}).items()}
            present = thing.get("extra_specs") or {}
            new = {name: value for name, value in wanted.items() if present.get(name) != value}
            if new:
                self.api.request("POST", f"{path}/os-extra_specs", {"extra_specs": new}, of=handle)
            for name in present.keys() - wanted.keys():
                self.api.request("DELETE", f"{path}/os-extra_specs/{quote(name, safe='')}", of=handle)
        if "tenants" in changed:
            tenants = {self.reference("project", name) for name in spec.get("tenants") or ()}
            before = set(self._tenants(thing))
            for verb, projects in (("addTenantAccess", tenants - before), ("removeTenantAccess", before - tenants)):
                for project in sorted(projects):
                    self.api.request("POST", f"{path}/action", {verb: {"tenant": project}}, of=handle)

    def _tenants(self, thing: Wire) -> Sequence[str]:
        """Return the projects that may use a private flavor; none for a public flavor, which has no such list."""
        if thing["os-flavor-access:is_public"]:
            return []
        answer = self.api.get(f"{self.path_of(thing['id'])}/os-flavor-access")
        return sorted(entry["tenant_id"] for entry in answer["flavor_access"])

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        private = [name for name, thing in things.items() if not thing["os-flavor-access:is_public"]]
        tenants = self.cloud.side_by_side(lambda name: self._tenants(things[name]), private) if private else []
        return {**things, **{name: {**things[name], "tenants": t} for name, t in zip(private, tenants, strict=True)}}


_OF_FLAVORS = ("extra_specs", "tenants")
"""Fields that need separate requests."""


class HostAggregates(ComputeCollection):
    """Host aggregates, whose only text is their name; their metadata cannot be set at creation."""

    kind = "host_aggregate"
    path, key, keys = "/os-aggregates", "aggregate", "aggregates"
    token = InText("name")

    def get(self, handle: str) -> Wire:
        # Nova answers 400, not 404, to an id that is no number, such as the name of an aggregate.
        if not handle.isdigit():
            raise Missing(f"there is no host aggregate {handle}: their ids are numbers")
        return super().get(handle)

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        thing = super().create(token, {name: spec[name] for name in ("name", "availability_zone") if name in spec})
        apart = [name for name in ("metadata", "hosts") if spec.get(name)]
        return self.finish_creation(thing, lambda: self._change(thing, spec, apart)) if apart else thing

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        plain = [name for name in changed if name in ("name", "availability_zone")]
        thing = super().update(handle, spec, plain)
        self._change(thing, spec, changed)
        return self.get(handle)

    def _change(self, thing: Wire, spec: Mapping[str, Any], changed: Sequence[str]) -> None:
        if "metadata" in changed:
            wanted = {name: str(value) for name, value in (spec.get("metadata") or {}).items()}
            removed = dict.fromkeys(_metadata(thing).keys() - wanted.keys())
            if wanted != _metadata(thing):
                self._act(thing, "set_metadata", {"metadata": {**wanted, **removed}})
        if "hosts" in changed:
            hosts, before = set(spec.get("hosts") or ()), set(thing.get("hosts") or ())
            for verb, names in (("remove_host", before - hosts), ("add_host", hosts - before)):
                for name in sorted(names):
                    self._act(thing, verb, {"host": name})

    def _act(self, thing: Wire, verb: str, arguments: Wire) -> None:
        handle = self.handle_of(thing)
        self.api.request("POST", f"{self.path_of(handle)}/action", {verb: arguments}, of=handle)

    def delete(self, handle: str) -> None:
        # Nova refuses to delete an aggregate with hosts.
        self._change(self.get(handle), {}, ["hosts"])
        super().delete(handle)

    def object_of(self, thing: Wire) -> Wire:
        return {**super().object_of(thing), "metadata": _metadata(thing)}


def _metadata(thing: Wire) -> Wire:
    """Return the metadata of an aggregate without the availability zone, which is a separate field of the kind."""
    return {name: value for name, value in (thing.get("metadata") or {}).items() if name != "availability_zone"}
