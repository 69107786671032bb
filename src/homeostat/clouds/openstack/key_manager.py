"""Key management: secrets, orders of keys, and containers of secrets.

The id of such an object is its URL, by which other services refer to it. Stored data never changes, so each process
reads a payload once.
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
"""Microversion in which secrets show their consumers; older services show none."""


class KeyCollection(Collection):
    """A collection of the key manager. The only text field of its objects is the name, which therefore has the token.

    Attributes:
        ref: Field with the URL of an object.
        initial_status: Status of a new object.
    """

    service = "key-manager"
    token = InText("name")
    ref: ClassVar[str]
    initial_status: ClassVar[str] = "ACTIVE"

    def handle_of(self, thing: Wire) -> str:
        return str(thing[self.ref])

    def path_of(self, handle: str) -> str:
        return f"{self.path}/{_id(handle)}"

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        if fields.get("status") == "error":
            fields["fault"] = f"{thing.get('error_status_code', '')} {thing.get('error_reason', '')}".strip()
        return fields

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        fields = {name: value for name, value in spec.items() if value not in (None, "", 0)}
        body = self.body_of(self.token.write(fields, token))
        answer = self.api.request("POST", self.path, body, of=token)
        return {**self.listed(body), "status": self.initial_status, **answer}

    def listed(self, body: Wire) -> Wire:
        """Return the fields that a list will show of an object created with this body."""
        return body

    def resolve(self, name: str) -> str | None:
        """Return the URL of the object with this name, id or URL; None if absent.

        Raises:
            Rejected: Several objects have the name.
        """
        if "/" not in name or "://" in name:
            try:
                return self.handle_of(self.get(name))
            except Missing:
                pass
        named = [thing for thing in self.list() if self.token.hide(thing).get("name") == name]
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
        fields = super().object_of(thing)
        payload = self.payload(fields["id"], (thing.get("content_types") or {}).get("default"))
        return fields if payload is None else {**fields, "payload": payload}

    def payload(self, handle: str, content_type: str | None) -> str | None:
        """Return the payload of a secret, as base64 if it is binary; None if it is empty or unreadable."""
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
    initial_status = "PENDING"

    def __init__(self, cloud: Any) -> None:
        super().__init__(cloud)
        self._parts: LRUCache[str, Mapping[str, str]] = LRUCache(PAYLOADS_MAX)

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        meta = {name: value for name, value in spec.items() if name != "type"}
        return {"type": spec.get("type"), "meta": meta}

    def list(self, **filters: Any) -> Any:
        return (_flat(order) for order in super().list(**filters))

    def get(self, handle: str) -> Wire:
        return _flat(super().get(handle))

    def listed(self, body: Wire) -> Wire:
        return _flat(body)

    def object_of(self, thing: Wire) -> Wire:
        return {**super().object_of(thing), **self._made_by(thing.get("container_ref"))}

    def delete(self, handle: str) -> Wire | None:
        """Delete an order and its results, except results that are in use elsewhere."""
        # The results first: while the order exists, a worker that takes over after a crash can still find them.
        order = self.get(handle)
        container = self._container(order.get("container_ref"))
        if not container.get("consumers"):
            secrets = {str(entry["secret_ref"]) for entry in container.get("secret_refs") or ()}
            secrets |= {str(order["secret_ref"])} if order.get("secret_ref") else set()
            for ref in sorted(secrets - self._used_outside(order.get("container_ref"))):
                self._delete_made(f"/secrets/{_id(ref)}", handle)
            if container:
                self._delete_made(f"/containers/{_id(order['container_ref'])}", handle)
        return super().delete(handle)

    def _container(self, ref: str | None) -> Wire:
        """Return the container filled by an order; {} if absent."""
        try:
            return self.api.get(f"/containers/{_id(ref)}") if ref else {}
        except Missing:
            return {}

    def _used_outside(self, own: str | None) -> set[str]:
        """Return the secrets in other containers of the project."""
        containers = self.cloud.collections["secret_container"].list()
        others = (container for container in containers if container["container_ref"] != own)
        return {secret["secret_ref"] for container in others for secret in container.get("secret_refs") or ()}

    def _delete_made(self, path: str, handle: str) -> None:
        """Delete a secret or a container created by an order, unless services are registered as its consumers."""
        try:
            if not self.api.request("GET", path, microversion=CONSUMERS).get("consumers"):
                self.api.request("DELETE", path, of=handle)
        except Missing:
            return

    def _made_by(self, container: str | None) -> Mapping[str, str]:
        """Return name -> key or certificate, from the container filled by an order."""
        if not container:
            return {}
        if container not in self._parts:
            secrets = self.cloud.collections["secret"]
            assert isinstance(secrets, Secrets)
            try:
                filled = self.api.get(f"/containers/{_id(container)}")
                parts = {entry["name"]: entry["secret_ref"] for entry in filled.get("secret_refs") or ()}
                read = {name: secrets.payload(ref, BINARY) for name, ref in parts.items()}
            except HomeostatError:
                return {}
            payloads = {name: value for name, value in read.items() if value is not None}
            if len(payloads) < len(read):
                return payloads
            self._parts[container] = payloads
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
        refs = {entry["name"]: entry["secret_ref"] for entry in thing.get("secret_refs") or ()}
        return {"consumers": [], **super().object_of(thing), "secret_refs": refs}


def _id(handle: str) -> str:
    return handle.rstrip("/").rpartition("/")[2]


def _flat(order: Wire) -> Wire:
    """Return an order with the fields of its `meta` at the top level."""
    return {**(order.get("meta") or {}), **{name: value for name, value in order.items() if name != "meta"}}


COLLECTIONS: tuple[type[Collection], ...] = (Secrets, Orders, Containers)
