"""Attachments of volumes to servers: created by Compute, with progress read from Block Storage."""

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
"""Statuses, in Block Storage, of an attachment in creation."""


class VolumeAttachments(Collection):
    """Attachments with handles `server/volume`; a volume is attached to a server at most once.

    An existing attachment of this pair is therefore ours. The device tag could hold a token, but not every hypervisor
    supports tags, some refuse to detach a tagged volume, and tags are shown only server by server. A changed attachment
    is detached, and created again from the newest specification.
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
        attachment = self.observe([handle]).get(handle)
        if attachment is None:
            raise Missing(f"there is no volume attachment {handle}")
        return attachment

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return attachments as their volumes list them; in creation from Block Storage, and else from Compute.

        A few attachments in creation are requested individually, more are looked up in the list.
        """
        volumes = self.cloud.collections["volume"].observe(sorted({handle.rpartition("/")[2] for handle in handles}))
        attachments: dict[str, Wire] = {}
        left = []
        for handle in handles:
            server, _, id = handle.rpartition("/")
            thing = self._listed(server, volumes[id]) if id in volumes else None
            if thing is not None:
                attachments[handle] = thing
            elif id in volumes and server:
                left.append(handle)
        attachments |= self._beginning(left) if len(left) > FEW else {}
        asked = [handle for handle in left if handle not in attachments]

        def ask(handle: str) -> Wire | None:
            return self._asked(handle, volumes[handle.rpartition("/")[2]])

        answers = zip(asked, self.cloud.side_by_side(ask, asked) if asked else (), strict=True)
        return attachments | {handle: thing for handle, thing in answers if thing is not None}

    def _beginning(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return the attachments in creation, as Block Storage lists the attachments of all volumes."""
        wanted, attachments = set(handles), dict[str, Wire]()
        for entry in self.cloud.service("block-storage").list("/attachments", "attachments"):
            handle = f"{entry.get('instance')}/{entry['volume_id']}"
            if handle in wanted and entry["status"] in BEGINNING:
                server, volume = entry["instance"], entry["volume_id"]
                attachments[handle] = {"serverId": server, "volumeId": volume, "status": "attaching"}
        return attachments

    def _listed(self, server: str, volume: Wire) -> Wire | None:
        """Return the attachment of a volume, as the volume lists it; handles taken over from Heat name no server."""
        entries = (entry for entry in volume["attachments"] if entry["server_id"] == server or not server)
        entry = next(entries, None)
        if entry is None:
            return None
        status = "detaching" if volume["status"] == "detaching" else "attached"
        return {"serverId": entry["server_id"], "volumeId": volume["id"], "device": entry["device"], "status": status}

    def _asked(self, handle: str, volume: Wire) -> Wire | None:
        """Return an attachment as Compute shows it; None if absent."""
        try:
            attachment = self._thing(self.api.get(self.path_of(handle)))
        except Missing:
            return None
        return {**attachment, "status": UNDER_WAY.get(volume["status"], volume["status"])}

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        ids = self._ids(spec)
        body = {"volumeId": ids["volumeId"], **({"device": spec["mountpoint"]} if spec.get("mountpoint") else {})}
        path = f"/servers/{quote(ids['serverId'], safe='')}/os-volume_attachments"
        self.cloud.server_changes.announce(ids["serverId"])
        try:
            answer = self.api.request("POST", path, self._wrapped(body), of=token)
        except Transient:
            # "Already attached" may be the effect of an earlier request whose answer was lost.
            before = self.observe([self.handle_of(ids)]).get(self.handle_of(ids))
            if before is None or before["status"] == "detaching":
                raise
            return before
        return {**ids, **self._thing(answer), "status": "attaching"}

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
        # The update is repeated until the old attachment is gone, and then becomes a creation.
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
