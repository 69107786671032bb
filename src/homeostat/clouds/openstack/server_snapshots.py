"""Snapshots of servers: images that Nova makes of their disks."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import KEY
from homeostat.model.errors import Terminal

Things = list[Wire]
MARK = {"homeostat_kind": "server_snapshot"}
"""Property of images that are such snapshots."""


class InProperty:
    """The token is a property of the image."""

    words = f"the property `{KEY}`"
    field = ""

    def write(self, body: Wire, token: str) -> Wire:
        return {**body, KEY: token}

    def read(self, thing: Wire) -> str:
        return str(thing.get(KEY) or "")

    def hide(self, thing: Wire) -> Wire:
        return thing

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        return [{KEY: tokens[0]} if len(tokens) == 1 else {}]


class ServerSnapshots(Collection):
    """Images created by the operation `snapshot` of servers."""

    kind: ClassVar[str] = "server_snapshot"
    service = "image"
    path, keys = "/images", "images"
    token = InProperty()
    statuses: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("queued", "saving", "uploading", "importing"), "creating"),
        **dict.fromkeys(("active", "deactivated"), "available"),
        **dict.fromkeys(("killed", "deleted", "pending_delete"), "error"),
    }

    def list(self, **filters: Any) -> Iterator[Wire]:
        return super().list(**MARK, **filters)

    @staticmethod
    def properties_of(token: str) -> Mapping[str, str]:
        """Return the properties of a new snapshot's image."""
        return {**MARK, KEY: token}

    def of_servers(self, handles: set[str]) -> dict[str, Things]:
        """Return handle of a server -> its snapshots, as the port shows them."""
        snapshots: dict[str, Things] = {}
        for thing in self.list():
            if thing.get("instance_uuid") in handles:
                snapshots.setdefault(thing["instance_uuid"], []).append(self.object_of(thing))
        return snapshots

    def object_of(self, thing: Wire) -> Wire:
        word = str(thing["status"])
        fields = {"id": thing["id"], "token": self.token.read(thing), "name": thing.get("name")}
        return {**fields, "status": self.statuses.get(word, "error"), "created_at": thing.get("created_at")}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        raise Terminal("a server_snapshot is made by the operation `snapshot` of a server")

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        raise Terminal("a server_snapshot does not change")

    def delete(self, handle: str) -> Wire | None:
        # The image of a server that boots from a volume is the only reference to its volume snapshots: delete these
        # first.
        devices = json.loads(self.get(handle).get("block_device_mapping") or "[]")
        for snapshot in filter(None, (device.get("snapshot_id") for device in devices)):
            with contextlib.suppress(Missing):
                self.cloud.service("block-storage").request("DELETE", f"/snapshots/{snapshot}", of=handle)
        return super().delete(handle)
