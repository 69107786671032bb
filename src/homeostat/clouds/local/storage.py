"""Volumes are directories; an attachment is a link in the server's `dev/`. Key pairs are records."""

import base64
import contextlib
import hashlib
import os
import shutil
import string
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeostat.clouds.local.family import Facts, Family, Refers, identity
from homeostat.clouds.local.snapshots import Snapshots, complete_snapshot, snapshot_data
from homeostat.clouds.local.tree import ThingRecord, Tree
from homeostat.clouds.local.tree_snapshot import TreeSnapshot
from homeostat.clouds.port import Answer, Change, Creation, Operation
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation


class Volumes(Family):
    """Volumes; their data are plain directories, so the size is recorded but not enforced."""

    kind = "volume"
    refers = (Refers(("source_volid",), "volume", "source_volume_id"),)
    used_by = (("volume_attachment", "volume_id"), ("server", "volume_ids"))

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self._snapshots = Snapshots(tree)

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        facts = super().admit(look, id, spec)
        source = self._snapshot_of(spec) or look.get("volume", facts["source_volume_id"] or "")
        size = spec.get("size") or (source.facts["size"] if source else None)
        if not size:
            raise Terminal("A volume needs a size in GiB: set 'size', or 'source_volid' to copy another volume")
        if source and size < source.facts["size"]:
            raise Terminal(f"size {size} is less than the {source.facts['size']} of the {source.kind} {source.id}")
        made_at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        return {**facts, "size": size, "created_at": made_at, "bootable": bool(spec.get("image"))}

    def _snapshot_of(self, spec: Mapping[str, Any]) -> ThingRecord | None:
        """Return the snapshot with the volume's initial data; None if the volume has no such source.

        Raises:
            Terminal: The snapshot does not exist or is not complete.
        """
        id = spec.get("backup_id") or spec.get("snapshot_id")
        snapshot = complete_snapshot(self.tree, str(id), "volume") if id else None
        if id and snapshot is None:
            raise Terminal(f"There is no complete snapshot {id!r} of a volume in this cloud")
        return snapshot

    def amend(self, look: TreeSnapshot, record: ThingRecord, spec: Mapping[str, Any], changed: frozenset[str]) -> Facts:
        size = spec.get("size") or record.facts["size"]
        if size < record.facts["size"]:
            raise Terminal(f"volume {record.id} cannot shrink from {record.facts['size']} GiB to {size} GiB")
        facts = {**super().amend(look, record, spec, changed), "size": size}
        if "backup_id" in changed and spec.get("backup_id"):
            self._snapshot_of(spec)
            facts["restoring"] = True
        return facts

    def settle(self, look: TreeSnapshot, record: ThingRecord) -> None:
        """Provide the data of the volume: once, and again for a restore from a backup.

        A process with an open file of the old data keeps this file.
        """
        data = volume_data(self.tree, record.id)
        restoring = record.facts.get("restoring")
        if os.path.isdir(data) and not restoring:
            return
        partial, old = f"{data}.new", f"{data}.old"
        shutil.rmtree(partial, ignore_errors=True)
        source = self._source_of(record)
        if source:
            shutil.copytree(source, partial, symlinks=True)
        else:
            os.makedirs(partial)
        # The copy is complete before it replaces the old data. After a crash anywhere here, the data are missing or the
        # record still says `restoring`, so the next call starts over.
        if os.path.isdir(data):
            shutil.rmtree(old, ignore_errors=True)
            os.rename(data, old)
        os.rename(partial, data)
        shutil.rmtree(old, ignore_errors=True)
        if restoring:
            facts = {name: fact for name, fact in record.facts.items() if name != "restoring"}
            look.store(replace(record, facts=facts))

    def _source_of(self, record: ThingRecord) -> str:
        """Return the directory with the volume's initial data; "" for none."""
        snapshot = record.spec.get("backup_id") or record.spec.get("snapshot_id")
        if snapshot:
            return snapshot_data(self.tree, str(snapshot))
        volume = record.facts.get("source_volume_id")
        return volume_data(self.tree, volume) if volume else ""

    def perform(self, look: TreeSnapshot, record: ThingRecord, operation: Operation) -> None:
        if operation.verb != "snapshot":
            super().perform(look, record, operation)
        self._snapshots.take(record, operation, lambda: contextlib.nullcontext(volume_data(self.tree, record.id)))

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        attachments = [
            {
                "id": attachment.id,
                "attachment_id": attachment.id,
                "server_id": attachment.facts["server_id"],
                "device": attachment.facts["mountpoint"],
            }
            for attachment in look.referring("volume_attachment", "volume_id", record.id)
        ]
        booted = [{"server_id": server.id} for server in look.referring("server", "volume_ids", record.id)]
        fields = {"metadata": {}, "volume_type": "local", **super().show(look, record)}
        used = [*attachments, *booted]
        fields |= self._snapshots.of(look, record)
        return {**fields, "attachments": used, "status": "in-use" if used else "available"}


def volume_data(tree: Tree, id: str) -> str:
    return f"{tree.directory('volume', id)}/data"


DEVICES = tuple(f"vd{letter}" for letter in string.ascii_lowercase)
"""Names of a server's devices, in the order of assignment."""


def boot_devices(server: ThingRecord) -> Mapping[str, str]:
    """Return the devices that a server has from the start: name -> id of its volume."""
    return dict(zip(DEVICES, server.facts["volume_ids"], strict=False))


def attached_volumes(look: TreeSnapshot, server: ThingRecord) -> list[dict[str, Any]]:
    """Return the volumes of a server, from the start or attached later: [{id, delete_on_termination}]."""
    attached = [record.facts["volume_id"] for record in look.referring("volume_attachment", "server_id", server.id)]
    return [{"id": id, "delete_on_termination": False} for id in (*server.facts["volume_ids"], *attached)]


class VolumeAttachments(Family):
    kind = "volume_attachment"
    refers = (
        Refers(("instance_uuid",), "server", "server_id", required=True),
        Refers(("volume_id",), "volume", "volume_id", required=True),
    )

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        return self._placed(look, id, self.references(look, spec), spec.get("mountpoint"))

    def amend(self, look: TreeSnapshot, record: ThingRecord, spec: Mapping[str, Any], changed: frozenset[str]) -> Facts:
        facts = self.references(look, spec)
        requested = spec.get("mountpoint")
        if not requested and facts["server_id"] == record.facts["server_id"]:
            requested = record.facts["mountpoint"]
        return self._placed(look, record.id, facts, requested)

    def change(self, look: TreeSnapshot, change: Change) -> ThingRecord | None:
        before = look.get("volume_attachment", change.handle)
        after = super().change(look, change)
        # The link at the old place is removed here; `settle` creates the new one next.
        if before is not None:
            self.dismantle(look, before)
        return after

    def _placed(self, look: TreeSnapshot, id: str, facts: Facts, mountpoint: str | None) -> Facts:
        volume = look.resolve("volume", facts["volume_id"])
        attachments = look.referring("volume_attachment", "volume_id", volume.id)
        others = [attachment for attachment in attachments if attachment.id != id]
        if others and not volume.spec.get("multiattach"):
            raise Transient(f"volume {volume.id} is in use by server {others[0].facts['server_id']}")
        siblings = look.referring("volume_attachment", "server_id", facts["server_id"])
        used = {os.path.basename(sibling.facts["mountpoint"]) for sibling in siblings if sibling.id != id}
        used |= boot_devices(look.resolve("server", facts["server_id"])).keys()
        name = os.path.basename(mountpoint or "") or next((name for name in DEVICES[1:] if name not in used), "")
        if name in used:
            raise Transient(f"mountpoint {mountpoint} of server {facts['server_id']} is in use")
        if name in ("", ".", ".."):
            raise Terminal(f"server {facts['server_id']} has no such mountpoint free: name one, e.g. /dev/vdx")
        return {**facts, "mountpoint": mountpoint or f"/dev/{name}"}

    def settle(self, look: TreeSnapshot, record: ThingRecord) -> None:
        link = self._link(record)
        os.makedirs(os.path.dirname(link), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(link)
        os.symlink(volume_data(self.tree, record.facts["volume_id"]), link)

    def dismantle(self, look: TreeSnapshot, record: ThingRecord) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._link(record))

    def _link(self, record: ThingRecord) -> str:
        name = os.path.basename(record.facts["mountpoint"])
        return f"{self.tree.directory('server', record.facts['server_id'])}/dev/{name}"

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        return {
            **super().show(look, record),
            "instance_uuid": record.facts["server_id"],
            "status": "attached",
        }


class Keypairs(Family):
    """Key pairs; their handle is their name, so names are unique in a project."""

    kind = "keypair"

    def identity(self, intent: Creation) -> str:
        return self._id_of(_name_of(intent))

    def _id_of(self, name: str) -> str:
        return identity(self.kind, f"{self.tree.project or ''}/{name}")

    def known_as(self, look: TreeSnapshot, handle: str) -> ThingRecord | None:
        named = (record for record in look.all(self.kind).values() if record.spec.get("name") == handle)
        return look.get(self.kind, self._id_of(handle)) or next(named, None)

    def handle(self, record: ThingRecord) -> str:
        return str(record.spec["name"])

    def carrying(self, look: TreeSnapshot, token: str) -> ThingRecord | None:
        return next((record for record in look.all("keypair").values() if record.token == token), None)

    def create(self, intents: Sequence[Creation]) -> list[Answer]:
        """Create key pairs; a private key generated here is only in this answer, and not stored."""
        private: dict[str, str] = {}

        def make(intent: Creation) -> ThingRecord:
            if not intent.spec.get("public_key") and self.carrying(look, intent.token) is None:
                name = _name_of(intent)
                public, private[name] = generated_pair(name)
                intent = Creation(intent.token, {**intent.spec, "public_key": public})
            return self.begin(look, intent)

        with self.tree.lock():
            look = TreeSnapshot(self.tree)
            answers = self.act_on_each(look, intents, make)
        return [_revealed(answer, private) for answer in answers]

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        if self.known_as(look, spec["name"]) is not None:
            raise Terminal(f"Key pair {spec['name']!r} already exists: choose another name or delete it first")
        return {"fingerprint": fingerprint(spec["public_key"]), "type": spec.get("type") or "ssh"}


def _name_of(intent: Creation) -> str:
    name = intent.spec.get("name")
    if not name:
        raise Terminal("A keypair needs a name")
    return str(name)


def _revealed(answer: Answer, private: Mapping[str, str]) -> Answer:
    if not isinstance(answer, Observation) or answer.handle not in private:
        return answer
    return replace(answer, properties={**answer.properties, "private_key": private[answer.handle]})


def fingerprint(public_key: str) -> str:
    try:
        blob = base64.b64decode(public_key.split()[1], validate=True)
    except (IndexError, ValueError) as error:
        raise Terminal("public_key is not an OpenSSH key; expected e.g. 'ssh-ed25519 AAAA… comment'") from error
    digest = hashlib.md5(blob, usedforsecurity=False).hexdigest()
    return ":".join(digest[at : at + 2] for at in range(0, 32, 2))


def generated_pair(name: str) -> tuple[str, str]:
    """Generate a public and a private key.

    Raises:
        Terminal: The machine has no ssh-keygen.
        Transient: ssh-keygen failed.
    """
    program = shutil.which("ssh-keygen")
    if program is None:
        raise Terminal("Keys cannot be generated here: give a public_key, or install ssh-keygen (openssh-client)")
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/key"
        command = [program, "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Transient(f"ssh-keygen failed: {done.stderr.strip()}")
        with open(path, encoding="utf-8") as private, open(f"{path}.pub", encoding="utf-8") as public:
            return public.read().strip(), private.read()
