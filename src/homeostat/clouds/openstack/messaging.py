"""Messages: queues and their subscriptions.

Messaging limits its lists to 20 entries, and answers for a missing queue as for an empty one: only the list shows
whether a queue exists.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any
from urllib.parse import quote

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InMetadata
from homeostat.model.errors import Terminal
from homeostat.resources.kind_fields import fields_of

LIMIT = 20
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
PATCH = {"Content-Type": "application/openstack-messaging-v2.0-json-patch"}


class Queues(Collection):
    """Queues, whose name is their id. Any message creates its queue, without metadata: such a queue is taken over."""

    kind = "queue"
    service = "message"
    path, keys = "/queues", "queues"
    token = InMetadata()

    def list(self, **filters: Any) -> Iterator[Wire]:
        return self.api.list(self.path, self.keys, detailed="true", limit=LIMIT)

    def get(self, handle: str) -> Wire:
        metadata = self.api.get(self.path_of(handle))
        thing = {"name": handle, "metadata": metadata, "href": f"/v2{self.path_of(handle)}"}
        if self.token.read(thing):
            return thing
        queue = next((thing for thing in self.list() if thing["name"] == handle), None)
        if queue is None:
            raise Missing(f"there is no queue {handle}")
        return queue

    def handle_of(self, thing: Wire) -> str:
        return str(thing["name"])

    def resolve(self, name: str) -> str | None:
        """Return the handle of a queue; invalid names are not looked up, since the service refuses them."""
        return super().resolve(name) if NAME.fullmatch(name) else None

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        name = str(spec["name"])
        body = self.token.write({"metadata": spec.get("metadata")}, token)
        self.api.request("PUT", self.path_of(name), body["metadata"], of=token)
        queue = self.get(name)
        # PUT leaves an existing queue as it is, even one created by a message.
        if not _own(queue):
            self._change(queue, body["metadata"], token)
            queue = self.get(name)
        if self.token.read(queue) != token:
            raise Terminal(f"a queue with the name {name} already exists")
        return queue

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        thing = self.get(handle)
        if "metadata" in changed:
            token = self.token.read(thing)
            wanted = {"metadata": spec.get("metadata") or {}}
            metadata = (self.token.write(wanted, token) if token else wanted)["metadata"]
            self._change(thing, metadata, handle, reset=_reserved(thing) - metadata.keys())
        return self.get(handle)

    def _change(self, thing: Wire, metadata: Mapping[str, Any], of: str, reset: AbstractSet[str] = frozenset()) -> None:
        """Replace the metadata of a queue; entries named by `reset` return to their defaults."""
        before = _own(thing)
        changes: list[Wire] = [
            {"op": "add", "path": f"/metadata/{name}", "value": value}
            for name, value in metadata.items()
            if before.get(name) != value
        ]
        changes += [
            {"op": "remove", "path": f"/metadata/{name}"}
            for name in sorted({*(before.keys() - metadata.keys()), *reset})
        ]
        if changes:
            self.api.request("PATCH", self.path_of(thing["name"]), changes, of=of, headers=PATCH)

    def delete(self, handle: str) -> None:
        self.get(handle)
        super().delete(handle)

    def operations(self) -> Mapping[str, Callable[[str, Mapping[str, Any]], None]]:
        return {"post": self._post}

    def _post(self, handle: str, arguments: Mapping[str, Any]) -> None:
        if not arguments.get("make"):
            self.get(handle)  # the service would create a missing queue
        body = {"messages": list(arguments.get("messages") or ())}
        self.api.request("POST", f"{self.path_of(handle)}/messages", body, of=handle)


def _own(thing: Wire) -> Wire:
    """Return the metadata of a queue without the service's own entries."""
    return {name: value for name, value in (thing.get("metadata") or {}).items() if not name.startswith("_")}


def _reserved(thing: Wire) -> set[str]:
    """Return the names of the service's own entries with a value."""
    return {name for name, value in (thing.get("metadata") or {}).items() if name.startswith("_") and value is not None}


class Subscriptions(Collection):
    """Subscriptions, known as `queue/id`. A queue has at most one subscription per subscriber."""

    kind = "subscription"
    service = "message"
    path, keys = "/queues", "subscriptions"
    further_looks = "one for each queue with subscriptions, instead of the list"
    token = InMetadata("options")

    def list(self, **filters: Any) -> Iterator[Wire]:
        for queue in self.cloud.collections["queue"].list():
            yield from self._of(queue["name"])

    def _of(self, queue: str) -> Iterator[Wire]:
        return self.api.list(f"{self.path}/{quote(queue, safe='')}/subscriptions", self.keys, limit=LIMIT)

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        for queue in sorted({handle.rpartition("/")[0] for handle in handles} - {""}):
            yield from self._of(queue)

    def handle_of(self, thing: Wire) -> str:
        return f"{thing['source']}/{thing['id']}"

    def path_of(self, handle: str) -> str:
        queue, _, id = handle.rpartition("/")
        return f"{self.path}/{quote(queue, safe='')}/subscriptions/{quote(id, safe='')}"

    def get(self, handle: str) -> Wire:
        if not handle.rpartition("/")[0]:
            raise Missing(f"there is no subscription {handle}: they are known as queue/id")
        return super().get(handle)

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        queue = str(spec["queue_name"])
        body = self.token.write({name: value for name, value in spec.items() if name != "queue_name"}, token)
        answer = self.api.request("POST", f"{self.path}/{quote(queue, safe='')}/subscriptions", body, of=token)
        subscription = self.get(f"{queue}/{answer['subscription_id']}")
        if self.token.read(subscription) != token:
            raise Terminal(f"the queue {queue} already has a subscription of {spec['subscriber']}")
        return subscription

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        thing = self.get(handle)
        known = [name for name in changed if name in fields_of(self.kind).mutable]
        part: Wire = {name: spec.get(name) or ({} if name == "options" else None) for name in known}
        if not part:
            return thing
        if "options" in part:
            token = self.token.read(thing)
            part = self.token.write(part, token) if token else part
        self.api.request("PATCH", self.path_of(handle), part, of=handle)
        return self.get(handle)

    def delete(self, handle: str) -> None:
        self.get(handle)
        super().delete(handle)

    def object_of(self, thing: Wire) -> Wire:
        return {**super().object_of(thing), "queue_name": thing["source"]}


COLLECTIONS: tuple[type[Collection], ...] = (Queues, Subscriptions)
