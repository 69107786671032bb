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
"""Newest microversion with which Compute makes keys itself."""


class ComputeCollection(Collection):
    """A collection of Compute, which refuses filters that it does not know."""

    service = "compute"
    filtered_by_name = False


class KeyPairs(ComputeCollection):
    """Key pairs. Their name is their id; one of another user than the stack's owner is known as `user/name`.

    The token is the end of the comment of the public key. New versions of Compute make no keys, so an SSH key that is
    wanted without a public key is made here; its private key is in the answer to the creation alone. A certificate
    (`x509`) has no comment: of such a pair only the name can tell that it was made already.
    """

    kind = "keypair"
    path, key, keys = "/os-keypairs", "keypair", "keypairs"
    token = InText("public_key", TEXT_MAX)
    renamed = {"user": "user_id"}
    further_looks = "one for each, where the owners of stacks act for themselves: each user sees their own alone"

    def list(self, **filters: Any) -> Iterator[Wire]:
        return (each[self.key] for each in super().list(**filters))

    def get(self, handle: str) -> Wire:
        user = handle.rpartition("/")[0]
        # Only its owner sees it.
        found = self._thing(self.api.request("GET", self.path_of(handle), of=handle, params=_of_user(user)))
        return {**found, "user_id": user} if user else {**found, "user_id": ""}

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        return iter(()) if self.api.has_owners else self.list()

    def find(self, tokens: Sequence[str]) -> dict[str, Wire]:
        if not self.api.has_owners:
            return super().find(tokens)
        return {token: thing for token in tokens for thing in self._owned(token) if self.token.read(thing) == token}

    def _owned(self, of: str) -> Iterator[Wire]:
        return (each[self.key] for each in self.api.list(self.path, self.keys, of))

    def resolve(self, name: str) -> str | None:
        try:
            return self.handle_of(self._thing(self.api.get(self.path_of(name))) | {"user_id": ""})
        except Missing:
            return None

    def handle_of(self, thing: Wire) -> str:
        # A list does not tell the user: it has those of the owner alone.
        user = thing.get("user_id")
        return f"{user}/{thing['name']}" if user else str(thing["name"])

    def path_of(self, handle: str) -> str:
        return f"{self.path}/{quote(handle.rpartition('/')[2], safe='')}"

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        user = self.reference("user", spec.get("user"))
        body = self.body_of({**spec, "user": user} if user else spec)
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
            made = self._thing(self.api.request("POST", self.path, self._wrapped(body), of=token, **how))
        except Terminal:
            before = self._made_before(handle, token, body)
            if before is None:
                raise
            return before
        return {**made, **private, "user_id": user or ""}

    def _made_before(self, handle: str, token: str, body: Wire) -> Wire | None:
        """Return the key pair that an earlier request with this token has made; None if none has."""
        try:
            # The owner is that of the token, while the handle is not known yet.
            params = _of_user(body.get("user_id", ""))
            found = self._thing(self.api.request("GET", self.path_of(handle), of=token, params=params))
        except Missing:
            return None
        same = body.get("type") == "x509" and found.get("public_key") == body.get("public_key")
        return {**found, "user_id": body.get("user_id", "")} if same or self.token.read(found) == token else None

    def delete(self, handle: str) -> None:
        self.api.request("DELETE", self.path_of(handle), of=handle, params=_of_user(handle.rpartition("/")[0]))

    def object_of(self, thing: Wire) -> Wire:
        found = super().object_of({name: value for name, value in thing.items() if name != "user_id"})
        return {**found, "id": self.handle_of(thing), **({"user": thing["user_id"]} if thing.get("user_id") else {})}


def _of_user(user: str) -> dict[str, str]:
    return {"user_id": user} if user else {}


def generated_pair() -> tuple[str, str]:
    """Return a new public and private key, in the formats of OpenSSH and PEM."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    public = made.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    private = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return public.decode(), private.decode()


class ServerGroups(ComputeCollection):
    """Server groups, which have no text but their name; it never changes."""

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
        found = super().object_of(thing)
        return {**found, "policies": [found.pop("policy")] if "policy" in found else found.get("policies")}


class Flavors(ComputeCollection):
    kind = "flavor"
    path, key, keys, detail = "/flavors", "flavor", "flavors", "/detail"
    further_looks = "one for each that not all projects may use"
    token = InText("description", TEXT_MAX)
    renamed = {
        "ephemeral": "OS-FLV-EXT-DATA:ephemeral",
        "is_public": "os-flavor-access:is_public",
        "flavorid": "id",
    }

    def list(self, **filters: Any) -> Iterator[Wire]:
        # Else an administrator sees the public ones only; for others this means nothing.
        return super().list(is_public="None", **filters)

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        wanted = {name: value for name, value in spec.items() if name not in _OF_FLAVORS}
        made = super().create(token, wanted)
        given = [name for name in _OF_FLAVORS if spec.get(name)]
        return self.afterwards(made, lambda: self._change(made, spec, given)) if given else made

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
            tenants = {self.reference("project", each) for each in spec.get("tenants") or ()}
            before = set(self._tenants(thing))
            for verb, projects in (("addTenantAccess", tenants - before), ("removeTenantAccess", before - tenants)):
                for each in sorted(projects):
                    self.api.request("POST", f"{path}/action", {verb: {"tenant": each}}, of=handle)

    def _tenants(self, thing: Wire) -> Sequence[str]:
        """Return the projects that may use a flavor; none of a public one, which all may use."""
        if thing["os-flavor-access:is_public"]:
            return []
        found = self.api.get(f"{self.path_of(thing['id'])}/os-flavor-access")
        return sorted(each["tenant_id"] for each in found["flavor_access"])

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        private = [name for name, thing in things.items() if not thing["os-flavor-access:is_public"]]
        found = self.cloud.side_by_side(lambda name: self._tenants(things[name]), private) if private else []
        return {**things, **{name: {**things[name], "tenants": t} for name, t in zip(private, found, strict=True)}}


_OF_FLAVORS = ("extra_specs", "tenants")
"""Fields that only requests of their own can set."""


class HostAggregates(ComputeCollection):
    """Host aggregates, which have no text but their name; their metadata cannot be given at creation."""

    kind = "host_aggregate"
    path, key, keys = "/os-aggregates", "aggregate", "aggregates"
    token = InText("name")

    def get(self, handle: str) -> Wire:
        if not handle.isdigit():
            raise Missing(f"there is no host aggregate {handle}: their ids are numbers")
        return super().get(handle)

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        made = super().create(token, {name: spec[name] for name in ("name", "availability_zone") if name in spec})
        given = [name for name in ("metadata", "hosts") if spec.get(name)]
        return self.afterwards(made, lambda: self._change(made, spec, given)) if given else made

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        plain = [name for name in changed if name in ("name", "availability_zone")]
        thing = super().update(handle, spec, plain)
        self._change(thing, spec, changed)
        return self.get(handle)

    def _change(self, thing: Wire, spec: Mapping[str, Any], changed: Sequence[str]) -> None:
        if "metadata" in changed:
            wanted = {name: str(value) for name, value in (spec.get("metadata") or {}).items()}
            gone = dict.fromkeys(_metadata(thing).keys() - wanted.keys())
            if wanted != _metadata(thing):
                self._act(thing, "set_metadata", {"metadata": {**wanted, **gone}})
        if "hosts" in changed:
            hosts, before = set(spec.get("hosts") or ()), set(thing.get("hosts") or ())
            for verb, names in (("remove_host", before - hosts), ("add_host", hosts - before)):
                for name in sorted(names):
                    self._act(thing, verb, {"host": name})

    def _act(self, thing: Wire, verb: str, arguments: Wire) -> None:
        handle = self.handle_of(thing)
        self.api.request("POST", f"{self.path_of(handle)}/action", {verb: arguments}, of=handle)

    def delete(self, handle: str) -> None:
        self._change(self.get(handle), {}, ["hosts"])
        super().delete(handle)

    def object_of(self, thing: Wire) -> Wire:
        return {**super().object_of(thing), "metadata": _metadata(thing)}


def _metadata(thing: Wire) -> Wire:
    """Return the metadata of an aggregate without what is a field of its own."""
    return {name: value for name, value in (thing.get("metadata") or {}).items() if name != "availability_zone"}
