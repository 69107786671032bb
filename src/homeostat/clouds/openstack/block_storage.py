"""Block storage: volumes and their snapshots.

A snapshot of a stack, or of a volume with deletion policy Snapshot, has to outlive the volume. But Block Storage
deletes no volume with snapshots, and not every cloud has its backup service, which only a failed backup would show. So:

* A snapshot is a snapshot of Block Storage: created at once, and the volume can be reverted to its newest snapshot in
  place.
* Before a volume is deleted, each of its snapshots becomes a separate volume, a *copy*, which carries the token and the
  id of the snapshot; then the snapshot is deleted, and last the volume. Until then the deletion waits. Lookups of the
  snapshot by its id or token then return the copy.
* Snapshots of other clients are left alone: the deletion waits, and its error names them.
* `backup_id` may be the id of a snapshot, of a copied snapshot, or of a backup of Block Storage.

The price: a copy counts as a volume in the quota, and a volume can be reverted only to its newest snapshot, and only
while its size is unchanged.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import KEY, InMetadata
from homeostat.model.errors import Terminal, Transient

COPY_TOKEN = "homeostat_snapshot_token"
COPY_OF = "homeostat_snapshot"
"""Metadata entries of a copy: the token and the id of the snapshot."""
READ_ONLY = "readonly"
OF_THE_SERVICE = (KEY, READ_ONLY, "attached_mode", COPY_TOKEN, COPY_OF)
"""Metadata entries of a volume that its user did not set."""


class BlockStorageCollection(Collection):
    """A collection of Block Storage."""

    service = "block-storage"
    detail = "/detail"
    token = InMetadata()

    def delete(self, handle: str) -> Wire | None:
        super().delete(handle)
        return {"id": handle, "status": "deleting"}

    def fault_of(self, thing: Wire) -> str:
        """Return Block Storage's message to the user about the failure of an object; "" if there is none."""
        messages = self.api.get("/messages", resource_uuid=thing["id"]).get("messages") or ()
        newest: Wire = max(messages, key=lambda message: str(message.get("created_at")), default={})
        return str(newest.get("user_message") or "")

    def with_fault(self, thing: Wire) -> Wire:
        """Add the reason of its failure to a failed object."""
        if not str(thing.get("status")).startswith("error"):
            return thing
        fault = self.fault_of(thing)
        return {**thing, "fault": fault} if fault else thing


class Volumes(BlockStorageCollection):
    kind = "volume"
    path, key, keys = "/volumes", "volume", "volumes"
    statuses = {"reverting": "restoring-backup"}

    # -- looking -----------------------------------------------------------------------------------------------------

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        """Add the snapshots of volumes: a single list has all snapshots of the project."""
        if all(thing["status"] == "creating" for thing in things.values()):
            return things
        few = {"volume_id": next(iter(things.values()))["id"]} if len(things) == 1 else {}
        snapshots: dict[str, list[Wire]] = {}
        for snapshot in self.snapshots.of_volumes(**few):
            snapshots.setdefault(snapshot["volume_id"], []).append(self.snapshots.object_of(snapshot))
        volumes = {}
        for name, thing in things.items():
            kept = snapshots.get(thing["id"])
            volumes[name] = self.with_fault({**thing, "snapshots": kept} if kept else thing)
        return volumes

    @property
    def snapshots(self) -> "VolumeSnapshots":
        snapshots = self.cloud.collections[VolumeSnapshots.kind]
        assert isinstance(snapshots, VolumeSnapshots)
        return snapshots

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        entries = thing.get("metadata") or {}
        fields["metadata"] = {name: value for name, value in entries.items() if name not in OF_THE_SERVICE}
        return {
            **fields,
            "read_only": _is_true(entries.get(READ_ONLY)),
            "bootable": _is_true(thing.get("bootable")),
            "image": (thing.get("volume_image_metadata") or {}).get("image_id"),
        }

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        wanted = {name: value for name, value in spec.items() if name not in ("read_only", "scheduler_hints")}
        body: Wire = {self.key: self.token.write(self.body_of(wanted), token)}
        if spec.get("scheduler_hints"):
            body["OS-SCH-HNT:scheduler_hints"] = spec["scheduler_hints"]
        # A creation cannot set `read_only`: the new volume differs from its specification, and an update follows.
        return self._thing(self.api.request("POST", self.path, body, of=token))

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = {name: value for name, value in spec.items() if name not in ("image", "backup_id")}
        if spec.get("backup_id"):
            # A backup takes precedence over any other source of data.
            body = {name: value for name, value in body.items() if name not in ("snapshot_id", "source_volid")}
            return _with_texts({**body, **self.snapshots.source(str(spec["backup_id"]), "backup_id")})
        if body.get("snapshot_id"):
            snapshot = self.snapshots.resolve(str(body["snapshot_id"])) or body["snapshot_id"]
            del body["snapshot_id"]
            body |= self.snapshots.source(str(snapshot))
        if spec.get("source_volid"):
            body["source_volid"] = self.reference("volume", spec["source_volid"])
        if spec.get("image"):
            body["imageRef"] = self.reference("image", spec["image"])
        return _with_texts(body)

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Request the differing fields, one after the other; a request refused during another change is retried."""
        thing = self.get(handle)
        texts = {name: spec.get(name) for name in ("name", "description") if name in changed}
        if any(thing.get(name) != value for name, value in texts.items()):
            self.api.request("PUT", self.path_of(handle), self._wrapped(texts), of=handle)
        if "metadata" in changed:
            self._set_metadata(thing, spec.get("metadata") or {})
        if "read_only" in changed and bool(spec.get("read_only")) != self.object_of(thing)["read_only"]:
            self._act(handle, "os-update_readonly_flag", {"readonly": bool(spec.get("read_only"))})
        if "size" in changed and spec.get("size"):
            self._grow(thing, int(spec["size"]))
        wanted = spec.get("volume_type")
        if "volume_type" in changed and wanted and wanted not in (thing["volume_type"], thing.get("volume_type_id")):
            self._act(handle, "os-retype", {"new_type": wanted, "migration_policy": "on-demand"})
        if "backup_id" in changed and spec.get("backup_id"):
            self._restore(handle, str(spec["backup_id"]))
        return self.get(handle)

    def _act(self, handle: str, verb: str, arguments: Wire) -> None:
        self.api.request("POST", f"{self.path_of(handle)}/action", {verb: arguments}, of=handle)

    def _set_metadata(self, thing: Wire, metadata: Mapping[str, Any]) -> None:
        wanted = _texts(metadata)
        entries = thing.get("metadata") or {}
        if wanted == {name: value for name, value in entries.items() if name not in OF_THE_SERVICE}:
            return
        kept = {name: entries[name] for name in (KEY,) if name in entries}
        body = {"metadata": {**wanted, **kept}}
        self.api.request("PUT", f"{self.path_of(thing['id'])}/metadata", body, of=thing["id"])

    def _grow(self, thing: Wire, size: int) -> None:
        if size < thing["size"]:
            raise Terminal(f"volume {thing['id']} cannot shrink from {thing['size']} GiB to {size} GiB")
        if size > thing["size"]:
            self._act(thing["id"], "os-extend", {"new_size": size})

    def _restore(self, handle: str, backup: str) -> None:
        source = self.snapshots.source(backup, "backup_id")
        if "snapshot_id" in source:
            self._act(handle, "revert", source)
        elif "backup_id" in source:
            body = {"restore": {"volume_id": handle}}
            self.api.request("POST", f"/backups/{backup}/restore", body, of=handle)
        else:
            copy = source["source_volid"]
            raise Terminal(f"volume {handle} cannot take over the data of volume {copy} in place: make a new one of it")

    def delete(self, handle: str) -> Wire | None:
        try:
            return super().delete(handle)
        except Transient:
            # One answer (400) for several reasons: the volume is being deleted, is busy, or has snapshots.
            thing = self.get(handle)
            if thing["status"] == "deleting":
                return {"id": handle, "status": "deleting"}
            if thing["status"] == "available" or thing["status"].startswith("error"):
                self.snapshots.outlive(thing)
            raise

    def operations(self) -> Mapping[str, Callable[[str, Mapping[str, Any]], None]]:
        return {"snapshot": self._snapshot}

    def _snapshot(self, handle: str, arguments: Mapping[str, Any]) -> None:
        token = str(arguments["token"])
        snapshots = self.snapshots.of_volumes(volume_id=handle)
        if not any(self.snapshots.token.read(snapshot) == token for snapshot in snapshots):
            self.snapshots.take(handle, token, str(arguments.get("name") or ""))


class VolumeSnapshots(BlockStorageCollection):
    """Snapshots of volumes, and copies that outlive their volumes."""

    kind = "volume_snapshot"
    path, key, keys = "/snapshots", "snapshot", "snapshots"

    def of_volumes(self, **filters: Any) -> Iterator[Wire]:
        """Yield the snapshots with a token."""
        return (snapshot for snapshot in self.list(**filters) if self.token.read(snapshot))

    def _copies(self) -> Mapping[str, Wire]:
        """Return id of a snapshot -> its copy."""
        volumes = self.cloud.collections["volume"].list()
        return {copy["metadata"][COPY_OF]: copy for copy in volumes if COPY_OF in (copy.get("metadata") or {})}

    def get(self, handle: str) -> Wire:
        try:
            return super().get(handle)
        except Missing:
            copy = self._copies().get(handle)
            if copy is None:
                raise
            return copy

    def find(self, tokens: Sequence[str]) -> dict[str, Wire]:
        snapshots = super().find(tokens)
        left = set(tokens) - snapshots.keys()
        copies = {copy["metadata"][COPY_TOKEN]: copy for copy in (self._copies().values() if left else ())}
        return snapshots | {token: copy for token, copy in copies.items() if token in left}

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        return {name: self.with_fault(thing) for name, thing in things.items()}

    def handle_of(self, thing: Wire) -> str:
        return str((thing.get("metadata") or {}).get(COPY_OF) or thing["id"])

    def object_of(self, thing: Wire) -> Wire:
        entries = thing.get("metadata") or {}
        own = {"token": entries.get(KEY) or entries.get(COPY_TOKEN) or "", "status": thing["status"].lower()}
        also = {name: thing[name] for name in ("name", "fault", "created_at", "size", "volume_id") if thing.get(name)}
        copied = {"copy": thing["id"]} if COPY_OF in entries else {}
        return {"id": self.handle_of(thing), "name": "", **also, **own, **copied}

    def source(self, id: str, other: str = "snapshot_id") -> dict[str, str]:
        """Return the field of a volume's creation for the data of a snapshot.

        Args:
            id: Id of a snapshot, or of another object.
            other: The field for another object.
        """
        try:
            snapshot = self.get(id)
        except Missing:
            return {other: id}
        return {"source_volid": snapshot["id"]} if self._is_copy(snapshot) else {"snapshot_id": id}

    @staticmethod
    def _is_copy(thing: Wire) -> bool:
        return COPY_OF in (thing.get("metadata") or {})

    def take(self, volume: str, token: str, name: str) -> None:
        """Start a snapshot of a volume, even of an attached volume."""
        body = {"volume_id": volume, "name": name, "force": True}
        self.api.request("POST", self.path, self._wrapped(self.token.write(body, token)), of=volume)

    def delete(self, handle: str) -> Wire | None:
        thing = self.get(handle)
        if thing["status"] == "deleting":
            return {"id": handle, "status": "deleting"}
        if self._is_copy(thing):
            self.cloud.collections["volume"].delete(thing["id"])
            return {"id": handle, "status": "deleting"}
        return super().delete(handle)

    def outlive(self, volume: Wire) -> None:
        """Take the next step of turning the snapshots of a volume into copies, so that the volume can be deleted.

        Raises:
            Transient: The volume still has snapshots.
        """
        copies, waiting, foreign = self._copies(), [], []
        for snapshot in list(self.list(volume_id=volume["id"])):
            if not self.token.read(snapshot):
                foreign.append(snapshot["id"])
                continue
            self._outlive(snapshot, copies.get(snapshot["id"]))
            waiting.append(snapshot["id"])
        if foreign:
            raise Transient(f"volume {volume['id']} has snapshots that were made outside: {', '.join(foreign)}")
        if waiting:
            raise Transient(f"the snapshots of volume {volume['id']} become volumes first: {', '.join(waiting)}")

    def _outlive(self, snapshot: Wire, copy: Wire | None) -> None:
        if snapshot["status"] == "deleting":
            return
        if snapshot["status"] == "error" or (copy is not None and copy["status"] in ("available", "in-use")):
            super().delete(snapshot["id"])
        elif copy is not None and copy["status"].startswith("error"):
            self.cloud.collections["volume"].delete(copy["id"])
        elif copy is None and snapshot["status"] == "available":
            body = {
                "snapshot_id": snapshot["id"],
                "name": snapshot.get("name") or "",
                "description": f"Snapshot {snapshot['id']} of volume {snapshot['volume_id']}, which was deleted.",
                "metadata": {COPY_OF: snapshot["id"], COPY_TOKEN: self.token.read(snapshot)},
            }
            self.api.request("POST", "/volumes", {"volume": body}, of=snapshot["volume_id"])


class VolumeBackups(BlockStorageCollection):
    """Backups of volumes, which templates only refer to."""

    kind = "volume_backup"
    path, key, keys = "/backups", "backup", "backups"


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _texts(entries: Mapping[str, Any]) -> dict[str, str]:
    return {name: value if isinstance(value, str) else str(value) for name, value in entries.items()}


def _with_texts(body: Wire) -> Wire:
    return {**body, "metadata": _texts(body["metadata"])} if body.get("metadata") else body
