"""Attachments of volumes to servers: made by Compute, with progress read from Block Storage."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import FEW, Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import Joined
from homeostat.model.errors import Transient

UNDER_WAY: Mapping[str, str] = {"available": "detaching", "in-use": "attaching"}
"""Status of a volume that does not list an attachment of Compute -> status of the attachment."""
BEGINNING = ("reserved", "attaching")
"""Status, in Block Storage, of an attachment in creation."""


class VolumeAttachments(Collection):
    """Attachments with handles `server/volume`; a volume is attached to a server at most once.

    An existing attachment of this pair is therefore ours. The device tag could hold a token, but not every hypervisor
    supports tags, some refuse to detach a tagged volume, and tags are shown only server by server. To change an
    attachment it is detached, and made again from the newest specification.
    """

    kind = "volume_attachment"
    service = "compute"
    path, key, keys = "/servers", "volumeAttachment", "volumeAttachments"
    token = Joined()
    renamed = {"instance_uuid": "serverId", "volume_id": "volumeId", "mountpoint": "device"}

    def path_of(self, handle: str) -> str:
        server, _, volume = handle.partition("/")
        return f"/servers/{quote(server, safe='')}/os-volume_attachments/{quote(volume, safe='')}"

    def handle_of(self, thing: Wire) -> str:
        return f"{thing['serverId']}/{thing['volumeId']}"

    # -- looking -----------------------------------------------------------------------------------------------------

    def get(self, handle: str) -> Wire:
        found = self.observe([handle]).get(handle)
        if found is None:
            raise Missing(f"there is no volume attachment {handle}")
        return found

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return attachments as the volumes list them; those in creation from Block Storage, the rest from Compute.

        A few attachments in creation are requested one by one, more are looked up in the list.
        """
        volumes = self.cloud.collections["volume"].observe(sorted({each.rpartition("/")[2] for each in handles}))
        found: dict[str, Wire] = {}
        left = []
        for handle in handles:
            server, _, id = handle.rpartition("/")
            thing = self._listed(server, volumes[id]) if id in volumes else None
            if thing is not None:
                found[handle] = thing
            elif id in volumes and server:
                left.append(handle)
        found |= self._beginning(left) if len(left) > FEW else {}
        asked = [handle for handle in left if handle not in found]

        def ask(handle: str) -> Wire | None:
            return self._asked(handle, volumes[handle.rpartition("/")[2]])

        answers = zip(asked, self.cloud.side_by_side(ask, asked) if asked else (), strict=True)
        return found | {handle: thing for handle, thing in answers if thing is not None}

    def _beginning(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return those that begin, as Block Storage lists the attachments of all volumes."""
        wanted, found = set(handles), dict[str, Wire]()
        for each in self.cloud.service("block-storage").list("/attachments", "attachments"):
            handle = f"{each.get('instance')}/{each['volume_id']}"
            if handle in wanted and each["status"] in BEGINNING:
                found[handle] = {"serverId": each["instance"], "volumeId": each["volume_id"], "status": "attaching"}
        return found

    def _listed(self, server: str, volume: Wire) -> Wire | None:
        """Return the attachment of a volume to a server, if the volume lists it. Heat knew the volume alone."""
        one = next((each for each in volume["attachments"] if each["server_id"] == server or not server), None)
        if one is None:
            return None
        status = "detaching" if volume["status"] == "detaching" else "attached"
        return {"serverId": one["server_id"], "volumeId": volume["id"], "device": one["device"], "status": status}

    def _asked(self, handle: str, volume: Wire) -> Wire | None:
        """Return what Compute says about an attachment; None if there is none."""
        try:
            found = self._thing(self.api.get(self.path_of(handle)))
        except Missing:
            return None
        return {**found, "status": UNDER_WAY.get(volume["status"], volume["status"])}

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        ids = self._ids(spec)
        body = {"volumeId": ids["volumeId"], **({"device": spec["mountpoint"]} if spec.get("mountpoint") else {})}
        path = f"/servers/{quote(ids['serverId'], safe='')}/os-volume_attachments"
        self.cloud.server_changes.announce(ids["serverId"])
        try:
            made = self.api.request("POST", path, self._wrapped(body), of=token)
        except Transient:
            before = self.observe([self.handle_of(ids)]).get(self.handle_of(ids))
            if before is None or before["status"] == "detaching":
                raise
            return before
        return {**ids, **self._thing(made), "status": "attaching"}

    def _ids(self, spec: Mapping[str, Any]) -> Wire:
        return {
            "serverId": self.reference("server", spec["instance_uuid"]),
            "volumeId": self.reference("volume", spec["volume_id"]),
        }

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        thing = self.get(handle)
        moved = any(thing[name] != value for name, value in self._ids(spec).items())
        renamed = "mountpoint" in changed and spec.get("mountpoint") not in (None, thing.get("device"))
        if not moved and not renamed:
            return thing
        if thing["status"] != "detaching":
            self.delete(self.handle_of(thing))
        raise Transient(f"volume {thing['volumeId']} is being detached from server {thing['serverId']} first")

    def delete(self, handle: str) -> Wire | None:
        server, _, volume = handle.partition("/")
        self.cloud.server_changes.announce(server)
        try:
            self.api.request("DELETE", self.path_of(handle), of=handle)
        except Transient:
            thing = self.get(handle)
            if thing["status"] != "detaching":
                raise
            return {**thing, "status": "deleting"}
        return {"serverId": server, "volumeId": volume, "status": "deleting"}
