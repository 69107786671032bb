"""Key management: secrets, orders of keys, and containers of secrets.

The id of such a thing is its URL, by which other services name it. What is stored never changes, so each process asks
for a payload once.
"""

import base64
from collections.abc import Mapping
from typing import Any, ClassVar

from cachetools import LRUCache

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InText
from homeostat.model.errors import HomeostatError, ambiguous

BINARY = "application/octet-stream"
TEXT = "text/plain"
PAYLOADS_MAX = 10_000
CONSUMERS = "1.1"
"""The microversion in which a secret tells who uses it; an older service tells of no one."""


class KeyCollection(Collection):
    """A collection of the key manager. Its things have no field for texts but the name, which therefore has the token.

    Attributes:
        ref: Field that has the URL of a thing.
        made: Status of a thing that has just been made.
    """

    service = "key-manager"
    token = InText("name")
    ref: ClassVar[str]
    made: ClassVar[str] = "ACTIVE"

    def handle_of(self, thing: Wire) -> str:
        return str(thing[self.ref])

    def path_of(self, handle: str) -> str:
        return f"{self.path}/{_id(handle)}"

    def object_of(self, thing: Wire) -> Wire:
        """Return a thing with the fields of its kind."""
        found = super().object_of(thing)
        if found.get("status") == "error":
            found["fault"] = f"{thing.get('error_status_code', '')} {thing.get('error_reason', '')}".strip()
        return found

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        given = {name: value for name, value in spec.items() if value not in (None, "", 0)}
        body = self.body_of(self.token.write(given, token))
        made = self.api.request("POST", self.path, body, of=token)
        return {**self.listed(body), "status": self.made, **made}

    def listed(self, body: Wire) -> Wire:
        """Return what a list shows of a thing that was made with a body."""
        return body

    def resolve(self, name: str) -> str | None:
        """Return the URL of the thing with this name, id or URL; None if there is none.

        Raises:
            Rejected: Several things have the name.
        """
        if "/" not in name or "://" in name:
            try:
                return self.handle_of(self.get(name))
            except Missing:
                pass
        named = [each for each in self.list() if self.token.hide(each).get("name") == name]
        if len(named) > 1:
            raise ambiguous(name)
        return self.handle_of(named[0]) if named else None


class Secrets(KeyCollection):
    kind = "secret"
    path, keys, ref = "/secrets", "secrets", "secret_ref"

    def __init__(self, cloud: Any) -> None:
        super().__init__(cloud)
        self._payloads: LRUCache[str, str] = LRUCache(PAYLOADS_MAX)

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        typed = {"payload_content_type": TEXT} if spec.get("payload") else {}
        return {**typed, **spec}

    def listed(self, body: Wire) -> Wire:
        types = {"content_types": {"default": body["payload_content_type"]}} if "payload" in body else {}
        return {**types, **{name: value for name, value in body.items() if name != "payload"}}

    def object_of(self, thing: Wire) -> Wire:
        """Return a thing with the fields of its kind."""
        found = super().object_of(thing)
        payload = self.payload(found["id"], (thing.get("content_types") or {}).get("default"))
        return found if payload is None else {**found, "payload": payload}

    def payload(self, handle: str, content_type: str | None) -> str | None:
        """Return what a secret holds, as base64 where it is binary; None if nothing, or nothing that may be read."""
        if content_type is None:
            return None
        id = _id(handle)
        if id not in self._payloads:
            try:
                answer = self.api.answer("GET", f"{self.path_of(handle)}/payload", headers={"Accept": content_type})
            except HomeostatError:
                return None
            text = content_type == TEXT or answer.content.startswith(b"-----BEGIN ")
            self._payloads[id] = answer.content.decode() if text else base64.b64encode(answer.content).decode()
        return self._payloads[id]


class Orders(KeyCollection):
    kind = "secret_order"
    path, keys, ref = "/orders", "orders", "order_ref"
    made = "PENDING"

    def __init__(self, cloud: Any) -> None:
        super().__init__(cloud)
        self._parts: LRUCache[str, Mapping[str, str]] = LRUCache(PAYLOADS_MAX)

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        meta = {name: value for name, value in spec.items() if name != "type"}
        return {"type": spec.get("type"), "meta": meta}

    def list(self, **filters: Any) -> Any:
        return (_flat(each) for each in super().list(**filters))

    def get(self, handle: str) -> Wire:
        return _flat(super().get(handle))

    def listed(self, body: Wire) -> Wire:
        return _flat(body)

    def object_of(self, thing: Wire) -> Wire:
        """Return a thing with the fields of its kind."""
        return {**super().object_of(thing), **self._made_by(thing.get("container_ref"))}

    def delete(self, handle: str) -> Wire | None:
        """Delete an order, and before it what it has made, unless something else uses that.

        As long as the order is there, what it has made is known: when a worker dies in between, the next one goes on.
        """
        order = self.get(handle)
        container = self._container(order.get("container_ref"))
        if not container.get("consumers"):
            made = {str(each["secret_ref"]) for each in container.get("secret_refs") or ()}
            made |= {str(order["secret_ref"])} if order.get("secret_ref") else set()
            for ref in sorted(made - self._used_outside(order.get("container_ref"))):
                self._delete_made(f"/secrets/{_id(ref)}", handle)
            if container:
                self._delete_made(f"/containers/{_id(order['container_ref'])}", handle)
        return super().delete(handle)

    def _container(self, ref: str | None) -> Wire:
        """Return the container that an order has filled; {} if there is none."""
        try:
            return self.api.get(f"/containers/{_id(ref)}") if ref else {}
        except Missing:
            return {}

    def _used_outside(self, own: str | None) -> set[str]:
        """Return the secrets that other containers of the project have."""
        others = (each for each in self.cloud.collections["secret_container"].list() if each["container_ref"] != own)
        return {secret["secret_ref"] for each in others for secret in each.get("secret_refs") or ()}

    def _delete_made(self, path: str, handle: str) -> None:
        """Delete a secret or a container that an order has made, unless other services have said that they use it."""
        try:
            if not self.api.request("GET", path, microversion=CONSUMERS).get("consumers"):
                self.api.request("DELETE", path, of=handle)
        except Missing:
            return

    def _made_by(self, container: str | None) -> Mapping[str, str]:
        """Return name -> key or certificate, of the container that an order has filled."""
        if not container:
            return {}
        if container not in self._parts:
            secrets = self.cloud.collections["secret"]
            assert isinstance(secrets, Secrets)
            try:
                filled = self.api.get(f"/containers/{_id(container)}")
                parts = {each["name"]: each["secret_ref"] for each in filled.get("secret_refs") or ()}
                read = {name: secrets.payload(ref, BINARY) for name, ref in parts.items()}
            except HomeostatError:
                return {}
            found = {name: value for name, value in read.items() if value is not None}
            if len(found) < len(read):
                return found
            self._parts[container] = found
        return self._parts[container]


class Containers(KeyCollection):
    kind = "secret_container"
    path, keys, ref = "/containers", "containers", "container_ref"

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        secrets = self.cloud.collections["secret"]
        refs = spec.get("secret_refs") or {}
        named = [{"name": name, "secret_ref": secrets.id_of(ref)} for name, ref in refs.items()]
        return {**spec, "secret_refs": named}

    def object_of(self, thing: Wire) -> Wire:
        """Return a thing with the fields of its kind."""
        refs = {each["name"]: each["secret_ref"] for each in thing.get("secret_refs") or ()}
        return {"consumers": [], **super().object_of(thing), "secret_refs": refs}


def _id(handle: str) -> str:
    return handle.rstrip("/").rpartition("/")[2]


def _flat(order: Wire) -> Wire:
    """Return an order with what it orders among its own fields."""
    return {**(order.get("meta") or {}), **{name: value for name, value in order.items() if name != "meta"}}


COLLECTIONS: tuple[type[Collection], ...] = (Secrets, Orders, Containers)
