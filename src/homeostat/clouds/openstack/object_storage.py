"""Object storage: containers of objects."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from cachetools import LRUCache

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import FEW, Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InMetadata
from homeostat.model.errors import Terminal, Transient

META = "X-Container-Meta-"
TOKEN = "x-container-meta-homeostat-token"
PURGE = "x-container-meta-homeostat-purge"
OWN = frozenset({TOKEN, PURGE})
SHOWN = ("x-container-", "x-storage-policy", "x-timestamp", "x-versions-location", "x-history-location")
"""Prefixes of headers about a container; further headers are about the answer."""
PURGED_AT_ONCE = 1000
PURGES_MAX = 10
"""Maximum number of pages of objects that a single deletion request removes."""
KNOWN_MAX = 10_000


class Containers(Collection):
    """The containers of an account. Their id is their name.

    The account's list lacks metadata, so the headers of a container are read when its entry in the list has changed.
    """

    kind = "container"
    service = "object-store"
    path = ""
    further_looks = "one for each that has changed"
    token = InMetadata("metadata of the container")

    def __init__(self, cloud: Any) -> None:
        super().__init__(cloud)
        self._names: LRUCache[str, str] = LRUCache(KNOWN_MAX)
        self._seen: LRUCache[str, tuple[Any, Wire]] = LRUCache(KNOWN_MAX)

    def handle_of(self, thing: Wire) -> str:
        return str(thing["name"])

    def path_of(self, handle: str) -> str:
        return f"/{quote(handle, safe='')}"

    def list(self, **filters: Any) -> Iterator[Wire]:
        return self._pages("", **filters)

    def _pages(self, path: str, **filters: Any) -> Iterator[Wire]:
        marker = ""
        while page := self.api.get(path, format="json", marker=marker, **filters).get("") or []:
            yield from page
            marker = page[-1].get("name") or page[-1].get("subdir")

    def get(self, handle: str) -> Wire:
        answer = self.api.answer("HEAD", self.path_of(handle))
        headers = {name.lower(): _text(value) for name, value in answer.headers.items()}
        return {"name": handle, "headers": {name: headers[name] for name in headers if name.startswith(SHOWN)}}

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return name -> container, for the existing ones."""
        wanted = set(handles)
        if len(wanted) <= FEW:
            return self._read(wanted)
        listed = {entry["name"]: entry for entry in self.list() if entry.get("name") in wanted}
        seen = {name: self._seen.get(name, (None, {})) for name in listed}
        known = {name: thing for name, (entry, thing) in seen.items() if entry == listed[name]}
        looked = self._read(wanted - known.keys())
        for name, thing in looked.items():
            if name in listed:
                self._seen[name] = (listed[name], thing)
        return known | looked

    def find(self, tokens: Sequence[str]) -> dict[str, Wire]:
        wanted = set(tokens)
        made_here = {self._names[token] for token in wanted if token in self._names}
        containers = self._carrying(wanted, made_here)
        if wanted <= self._names.keys() | containers.keys():
            return containers
        return containers | self._carrying(wanted, {str(entry["name"]) for entry in self.list()} - made_here)

    def _carrying(self, tokens: set[str], names: set[str]) -> dict[str, Wire]:
        looks = self._read(names).values() if names else ()
        return {thing["headers"].get(TOKEN): thing for thing in looks if thing["headers"].get(TOKEN) in tokens}

    def resolve(self, name: str) -> str | None:
        try:
            return self.handle_of(self.get(name))
        except Missing:
            return None

    def object_of(self, thing: Wire) -> Wire:
        """Return a container with the fields of its kind."""
        headers = thing.get("headers") or {}
        endpoint = str(self.api.endpoint()).rstrip("/")
        return {
            "id": thing["name"],
            "name": thing["name"],
            "url": f"{endpoint}{self.path_of(thing['name'])}",
            "object_count": int(headers.get("x-container-object-count") or 0),
            "bytes_used": int(headers.get("x-container-bytes-used") or 0),
            "read_acl": headers.get("x-container-read"),
            "write_acl": headers.get("x-container-write"),
            "purge": headers.get(PURGE) == "true",
            "headers": {name: value for name, value in headers.items() if name not in OWN},
        }

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        name = str(spec["name"])
        self._names[token] = name
        # PUT on an existing container succeeds and changes its metadata: check for another owner first.
        container = self._read({name}).get(name)
        if container is not None and container["headers"].get(TOKEN) != token:
            raise Terminal(f"object-store: a container {name} exists already")
        self.api.answer("PUT", self.path_of(name), of=token, headers=_headers(spec, token))
        account = {f"X-Account-Meta-{key}": _sent(value) for key, value in (spec.get("account_metadata") or {}).items()}
        if account:
            self.api.answer("POST", "", of=token, headers=account)
        return self.get(name)

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        # No property of a container can change in place.
        return self.get(handle)

    def delete(self, handle: str) -> Wire | None:
        headers = self.get(handle)["headers"]
        try:
            self.api.answer("DELETE", self.path_of(handle), of=handle)
        except Terminal as error:
            if headers.get(PURGE) != "true":
                raise Terminal(
                    f"Deleting non-empty container ({handle}) when PurgeOnDelete is False is not supported"
                ) from error
            self._empty(handle)
            raise Transient(f"object-store: the objects of container {handle} are being deleted", 0.5) from error
        self._seen.pop(handle, None)
        return None

    def _empty(self, name: str) -> None:
        """Delete the objects of a container: all, or the maximum for one request."""
        for _ in range(PURGES_MAX):
            page = self.api.get(self.path_of(name), format="json", limit=PURGED_AT_ONCE).get("") or []
            paths = [f"{self.path_of(name)}/{quote(entry['name'], safe='')}" for entry in page]
            if not paths:
                return
            self._delete_objects(name, paths)

    def _delete_objects(self, name: str, paths: Sequence[str]) -> None:
        text = {"Content-Type": "text/plain", "Accept": "application/json"}
        body = "\n".join(paths).encode()
        query = {"bulk-delete": "true"}
        answer = self.api.request("POST", "", of=name, params=query, headers=text, data=body)
        if "Number Deleted" in answer:
            return
        # A store without bulk deletion treats the request as a plain POST to the account.
        for path in paths:
            try:
                self.api.answer("DELETE", path, of=name)
            except Missing:
                continue


def _headers(spec: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Return the headers that create a container with its specified properties."""
    metadata = {f"{META}{key}": _sent(value) for key, value in (spec.get("metadata") or {}).items()}
    lists = {"X-Container-Read": spec.get("read_acl"), "X-Container-Write": spec.get("write_acl")}
    access = {name: _sent(value) for name, value in lists.items() if value}
    return {**metadata, **access, TOKEN: token, PURGE: str(bool(spec.get("purge"))).lower()}


def _sent(value: Any) -> str:
    """Encode a text as a header's value: the store expects UTF-8, but HTTP libraries send Latin-1.

    Raises:
        Terminal: The text has more than one line.
    """
    text = str(value)
    if "\n" in text or "\r" in text:
        raise Terminal(f"object-store: metadata and access lists have one line: {text!r}")
    return text.encode().decode("latin-1")


def _text(value: str) -> str:
    """Decode a header's value, which the store keeps as UTF-8 and HTTP libraries return as Latin-1."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


COLLECTIONS: tuple[type[Collection], ...] = (Containers,)
