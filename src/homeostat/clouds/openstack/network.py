"""Networking: networks, subnets and ports."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InText

IDS_MAX = 40
"""Ids in one query: its address must not become too long."""


class NetworkCollection(Collection):
    """A collection of the networking service.

    Its things carry the token at the end of their description, the only field for texts that can be given at creation.
    """

    service = "network"
    token = InText("description")

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        if len(handles) > IDS_MAX:
            return self.list()
        return self.list(id=sorted(handles))

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        tags = spec.get("tags")
        made = super().create(token, {name: value for name, value in spec.items() if name != "tags"})
        return self._tagged(self.handle_of(made), made, tags) if tags else made

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        found = super().update(handle, spec, [each for each in changed if each != "tags"])
        return self._tagged(handle, found, spec.get("tags") or ()) if "tags" in changed else found

    def _tagged(self, handle: str, thing: Wire, tags: Sequence[str]) -> Wire:
        """Set the tags, which only a request of their own can do."""
        found = self.api.request("PUT", f"{self.path_of(handle)}/tags", {"tags": sorted(tags)}, of=handle)
        return {**thing, **found}


class Networks(NetworkCollection):
    kind = "network"
    path, key, keys = "/networks", "network", "networks"


class Subnets(NetworkCollection):
    kind = "subnet"
    path, key, keys = "/subnets", "subnet", "subnets"

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        for name, kind in (("network_id", "network"),):
            if name in body:
                body[name] = self.cloud.collections[kind].id_of(body[name])
        return body


class Ports(NetworkCollection):
    kind = "port"
    path, key, keys = "/ports", "port", "ports"

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        if "network_id" in body:
            body["network_id"] = self.cloud.collections["network"].id_of(body["network_id"])
        return body
