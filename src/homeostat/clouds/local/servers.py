"""Servers: detached processes of this machine, each with its own directory, addresses and console log.

    servers/<id>/  thing.json  user-data  metadata.json  console.log  alive  lock scripts/ files/ left (parts of
    multi-part user data: to run, to read, and not supported) root/ (working directory)  dev/ (links to volumes)

The fact `power` is the last requested state (running, paused, suspended, stopped); a guest lives while it holds its
lock on `alive`. A thread that starts or ends a guest holds the file `lock` of its directory; a thread that writes a
record holds the lock of the tree.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeostat.clouds.local import networks, processes
from homeostat.clouds.local.catalogue import Catalogue
from homeostat.clouds.local.family import Facts, Family, Item
from homeostat.clouds.local.files import remove_tree, write_whole
from homeostat.clouds.local.flavors import is_made, join_group
from homeostat.clouds.local.hypervisors import HOST, ONE_HOST
from homeostat.clouds.local.server_boot import environment, link, prepare_boot, prepare_disk, write_password
from homeostat.clouds.local.server_fencing import ServerFence
from homeostat.clouds.local.server_ports import entries_of, free_token, own_port, retained_ports
from homeostat.clouds.local.server_status import LIVE, STILL, reborn, refuse_if_locked, status_of
from homeostat.clouds.local.snapshots import Snapshots, complete_snapshot, snapshot_data
from homeostat.clouds.local.storage import DEVICES, attached_volumes, boot_devices, volume_data
from homeostat.clouds.local.tree import ThingRecord, Tree
from homeostat.clouds.local.tree_snapshot import TreeSnapshot
from homeostat.clouds.port import Answer, Change, Creation, Operation
from homeostat.kinds.compute import fences_of
from homeostat.model.errors import HomeostatError, Terminal, Transient

_CHUNK = 64
_GRACE_S = 2.0


class Servers(Family):
    kind = "server"

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self._catalogue = Catalogue(tree.root)
        self._verbs: Mapping[str, Callable[[ThingRecord, Mapping[str, Any]], None]] = {
            "start": self._start,
            "stop": self._stop,
            "reboot": self._reboot,
            "pause": self._pause,
            "unpause": self._unpause,
            "suspend": self._suspend,
            "resume": self._resume,
            "lock": self._lock,
            "unlock": self._unlock,
            "rebuild": self._rebuild,
            "restore": lambda record, arguments: None,
            "evacuate": self._evacuate,
            "rescue": self._rescue,
            "unrescue": self._unrescue,
            "change_password": self._change_password,
            "unfence": lambda record, arguments: self._fence.open(record.id, fences_of(arguments)),
            "adopt": lambda record, arguments: None,
        }
        self._fence = ServerFence(tree)
        self._snapshots = Snapshots(tree)

    # -- deciding ----------------------------------------------------------------------------------

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        built = {
            "power": "running",
            "begun_at": time.time(),
            "pid": None,
            "lives": 0,
            "wipe": False,
            "ports": [],
            "plugged": False,
        }
        return {**built, **self._checked(look, spec, frozenset(spec)), **join_group(look, spec)}

    def amend(self, look: TreeSnapshot, record: ThingRecord, spec: Mapping[str, Any], changed: frozenset[str]) -> Facts:
        refuse_if_locked(record, "updated")
        facts = {**record.facts, **self._checked(look, spec, changed)}
        if "networks" in changed:
            facts["plugged"] = False
        if changed & ({"image"} if spec.get("keeps_user_data") else {"image", "user_data"}):
            facts.update(reborn(wipe=True))
        return facts

    def _checked(self, look: TreeSnapshot, spec: Mapping[str, Any], changed: frozenset[str]) -> Facts:
        """Check the references of a spec, and return their facts.

        A key pair may be deleted after a server was created with it, so only a changed field is checked; likewise the
        image and the flavor.

        Raises:
            Terminal: `spec` names an object that does not exist.
        """
        for entity in ("image", "flavor"):
            name = str(spec.get(entity) or "")
            if entity in changed and name and not self._is_snapshot(entity, name) and not is_made(look, entity, name):
                self._catalogue.check(entity, name)
        if "key_name" in changed and spec.get("key_name"):
            look.resolve("keypair", spec["key_name"])
        mappings = [*(spec.get("block_device_mapping") or ()), *(spec.get("block_device_mapping_v2") or ())]
        volumes = [look.resolve("volume", entry["volume_id"]).id for entry in mappings if entry.get("volume_id")]
        if len(volumes) > len(DEVICES):
            raise Terminal(f"A server can have {len(DEVICES)} volumes from the start, not {len(volumes)}")
        return {"security_group_ids": networks.groups(look, spec), "volume_ids": volumes}

    def _is_snapshot(self, entity: str, id: str) -> bool:
        return entity == "image" and complete_snapshot(self.tree, id, "server") is not None

    # -- the port's verbs --------------------------------------------------------------------------

    def create(self, intents: Sequence[Creation]) -> list[Answer]:
        return self._in_chunks(intents, self._admit_all, self._finish_building)

    def update(self, changes: Sequence[Change]) -> list[Answer]:
        return self._in_chunks(changes, self._change_all, self._finish_building)

    def operate(self, operations: Sequence[Operation]) -> list[Answer]:
        return self._side_by_side(operations, self._carry_out)

    def delete(self, handles: Sequence[str]) -> list[Answer]:
        answers: list[Answer] = []
        for at in range(0, len(handles), _CHUNK):
            answers += self._delete_all(handles[at : at + _CHUNK])
        return answers

    def _in_chunks(
        self,
        items: Sequence[Item],
        decide: Callable[[Sequence[Item]], list[Answer]],
        act: Callable[[str], object],
    ) -> list[Answer]:
        """Decide for a chunk under the lock of the tree, then start its processes in parallel.

        In chunks, so that other threads get the lock of the tree in between.
        """
        answers: list[Answer] = []
        for at in range(0, len(items), _CHUNK):
            decided = decide(items[at : at + _CHUNK])
            answers += self._side_by_side(decided, lambda answer: self._follow(answer, act))
        return answers

    def _follow(self, answer: Answer, act: Callable[[str], object]) -> Answer:
        if isinstance(answer, HomeostatError) or not answer.present:
            return answer
        act(answer.handle)
        return self.observe([answer.handle])[0]

    def _side_by_side(self, items: Sequence[Item], act: Callable[[Item], Answer]) -> list[Answer]:
        def attempt(item: Item) -> Answer:
            try:
                return act(item)
            except HomeostatError as error:
                return error
            except OSError as error:
                return Transient(f"server: {error}")

        return [attempt(items[0])] if len(items) == 1 else list(self.tree.threads.servers.map(attempt, items))

    def _admit_all(self, intents: Sequence[Creation]) -> list[Answer]:
        with self.tree.lock():
            look = TreeSnapshot(self.tree)
            return self.act_on_each(look, intents, lambda intent: self._plugged(look, self.begin(look, intent)))

    def _change_all(self, changes: Sequence[Change]) -> list[Answer]:
        with self.tree.lock():
            look = TreeSnapshot(self.tree)
            return self.act_on_each(look, changes, lambda change: self._plugged(look, self.change(look, change)))

    # -- networks ----------------------------------------------------------------------------------

    def _plugged(self, look: TreeSnapshot, record: ThingRecord | None) -> ThingRecord | None:
        """Provide the ports of a server, and return its record; a new server with impossible ports is removed."""
        if record is None or record.facts["plugged"]:
            return record
        try:
            ports = [port.id for port in self._ports(look, record)]
        except HomeostatError:
            if not record.facts["lives"]:
                networks.release_ports(look, record)
                look.drop(record)
            raise
        networks.release_ports(look, record, keep=tuple(ports))
        plugged = replace(record, facts={**record.facts, "ports": ports, "plugged": True})
        look.store(plugged)
        return plugged

    def _ports(self, look: TreeSnapshot, record: ThingRecord) -> list[ThingRecord]:
        """Return a port for each entry of `networks`.

        An entry that means the same as before, perhaps in other words, keeps its port and its address.
        """
        entries = entries_of(record)
        named = tuple(look.resolve("port", entry["port"]).id for entry in entries if entry.get("port"))
        # Released first: two servers that exchange ports would wait for each other.
        networks.release_ports(look, record, keep=named, named_alone=True)
        wanted = [None if entry.get("port") else own_port(look, record, entry) for entry in entries]
        kept = retained_ports(look, record, wanted)
        ports = []
        for entry, spec, port in zip(entries, wanted, kept, strict=True):
            if spec is None:
                ports.append(networks.occupy(look, look.resolve("port", entry["port"]), record))
            elif port is not None:
                ports.append(networks.occupy(look, port, record, own=True))
            else:
                ports.append(networks.provide_port(look, self.tree, free_token(look, record, spec), spec, record))
        return ports

    # -- lives -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _held(self, id: str) -> Iterator[ThingRecord | None]:
        """Yield the record, or None if absent, under the exclusive lock for starting and ending the guest."""
        with contextlib.ExitStack() as stack:
            if self.tree.read("server", id) is None:
                yield None
                return
            with contextlib.suppress(FileNotFoundError):
                stack.enter_context(self.tree.lock(f"{self.tree.directory('server', id)}/lock"))
            yield self.tree.read("server", id)

    def _note(self, id: str, **facts: Any) -> ThingRecord:
        with self.tree.lock():
            record = self.tree.read("server", id)
            if record is None:
                raise Transient(f"server {id} went away meanwhile")
            noted = replace(record, facts={**record.facts, **facts})
            self.tree.write(noted)
            return noted

    def _finish_building(self, id: str) -> None:
        """Act on the decisions of `create` and `update`: write the metadata, and start the guest."""
        with self._held(id) as record:
            if record is None or record.facts.get("deleting"):
                return
            self._write_metadata(record)
            if record.facts["power"] == "running" and record.facts["pid"] is None:
                self._live(record)

    def _live(self, record: ThingRecord) -> None:
        """Start the guest, after ending all processes of an earlier life."""
        directory = self.tree.directory("server", record.id)
        if record.facts["lives"]:
            processes.end([directory])
        if not record.facts["plugged"]:
            with self.tree.lock():
                look = TreeSnapshot(self.tree)
                self._plugged(look, look.get("server", record.id))
        # Recorded before the launch: after a crash in between, the server counts as being built for a while, and the
        # next start ends whatever was launched.
        record = self._note(record.id, **reborn(), lives=record.facts["lives"] + 1)
        if record.facts["wipe"] and os.path.isdir(f"{directory}/root"):
            remove_tree(f"{directory}/root")
        self._prepare(record, directory)
        addresses = self._addresses(TreeSnapshot(self.tree), record)
        address = addresses[0][1]["addr"] if addresses else ""
        pid = processes.launch(directory, environment(record, directory, address, self.tree.private))
        self._note(record.id, pid=pid, wipe=False)

    def _prepare(self, record: ThingRecord, directory: str) -> None:
        image = str(record.spec.get("image") or "")
        saved = snapshot_data(self.tree, image) if self._is_snapshot("image", image) else ""
        prepare_disk(f"{directory}/root", saved)
        os.makedirs(f"{directory}/dev", exist_ok=True)
        link("../dev", f"{directory}/root/dev")
        for device, volume in boot_devices(record).items():
            link(volume_data(self.tree, volume), f"{directory}/dev/{device}")
        self._write_metadata(record)
        rescued = record.facts["power"] == "rescue"
        prepare_boot(directory, "" if rescued else str(record.spec.get("user_data") or ""))

    def _write_metadata(self, record: ThingRecord) -> None:
        directory = self.tree.directory("server", record.id)
        write_whole(f"{directory}/metadata.json", json.dumps(record.spec.get("metadata") or {}))

    # -- operations --------------------------------------------------------------------------------

    def _carry_out(self, operation: Operation) -> Answer:
        if operation.verb == "snapshot":
            return self._take_snapshot(operation)
        if operation.verb == "fence":
            return self._cut_off(operation)
        verb = self._verbs.get(operation.verb)
        if verb is None:
            known = ", ".join((*self._verbs, "fence", "snapshot"))
            raise Terminal(f"A server knows no operation {operation.verb!r}; it knows {known}")
        with self._held(operation.handle) as record:
            if record is not None and not record.facts.get("deleting"):
                verb(record, operation.arguments)
        return self.observe([operation.handle])[0]

    def _cut_off(self, operation: Operation) -> Answer:
        """Fence a server, even one that is locked or being deleted."""
        what = fences_of(operation.arguments)
        with self._held(operation.handle) as record:
            answer = self._fence.cut(record.id, what) if record is not None else {}
        seen = self.observe([operation.handle])[0]
        return replace(seen, properties={**seen.properties, **answer}) if seen.present else seen

    def _take_snapshot(self, operation: Operation) -> Answer:
        with self.tree.lock():
            record = self.tree.read("server", operation.handle)
            if record is not None and not record.facts.get("deleting"):
                self._snapshots.take(record, operation, lambda: self._held_still(record.id))
        return self.observe([operation.handle])[0]

    @contextlib.contextmanager
    def _held_still(self, id: str) -> Iterator[str]:
        """Yield the disk of a server while its guest is paused.

        A guest that a crash left paused continues at the next request for the snapshot, or when the server is unpaused.
        """
        directory = self.tree.directory("server", id)
        record = self.tree.read("server", id)
        running = record is not None and record.facts["power"] in LIVE and self._alive(record)
        if running:
            processes.pause(directory)
        try:
            yield f"{directory}/root"
        finally:
            if running:
                processes.resume(directory)

    def _start(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        if record.facts["power"] in STILL and self._alive(record):
            power = record.facts["power"]
            raise Terminal(f"server {record.id} is {power}: {STILL[power]} it")
        if self._alive(record) and not record.facts["wipe"]:
            return
        self._live(self._note(record.id, power="running"))

    def _stop(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        refuse_if_locked(record, "stopped")
        self._note(record.id, power="stopped")
        processes.end([self.tree.directory("server", record.id)], _GRACE_S)

    def _reboot(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        refuse_if_locked(record, "rebooted")
        hard = str(arguments.get("type") or "SOFT").upper() == "HARD"
        self._note(record.id, power="running", **reborn())
        processes.end([self.tree.directory("server", record.id)], 0.0 if hard else _GRACE_S)
        self._live(record)

    def _pause(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        refuse_if_locked(record, "paused")
        if not self._alive(record):
            raise Terminal(f"server {record.id} is not running, so it cannot be paused")
        processes.pause(self.tree.directory("server", record.id))
        self._note(record.id, power="paused")

    def _unpause(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        processes.resume(self.tree.directory("server", record.id))
        if record.facts["power"] == "paused":
            self._note(record.id, power="running")

    def _suspend(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        """Stop the processes (SIGSTOP) until they are resumed, with or without the service.

        A restart of the machine ends them.
        """
        # The record is written last: after an earlier crash, the operation has no answer, and is retried.
        refuse_if_locked(record, "suspended")
        if not self._alive(record):
            raise Terminal(f"server {record.id} is not running, so it cannot be suspended")
        processes.pause(self.tree.directory("server", record.id))
        self._note(record.id, power="suspended")

    def _resume(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        """Continue the processes; a server whose processes have ended is started again."""
        refuse_if_locked(record, "resumed")
        if not self._alive(record):
            self._live(self._note(record.id, power="running"))
            return
        processes.resume(self.tree.directory("server", record.id))
        if record.facts["power"] == "suspended":
            self._note(record.id, power="running")

    def _lock(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        self._note(record.id, locked=True)

    def _unlock(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        self._note(record.id, locked=False)

    def _evacuate(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        if arguments.get("from") in (None, HOST):
            raise ONE_HOST

    def _rescue(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        """Start the guest with its disk, but without its user data."""
        refuse_if_locked(record, "rescued")
        if record.facts["power"] == "rescue" and self._alive(record):
            return
        if arguments.get("admin_pass"):
            self._change_password(record, arguments)
        self._live(self._note(record.id, power="rescue", **reborn()))

    def _unrescue(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        refuse_if_locked(record, "unrescued")
        if record.facts["power"] == "rescue":
            self._live(self._note(record.id, power="running", **reborn()))

    def _change_password(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        refuse_if_locked(record, "given another password")
        write_password(self.tree.directory("server", record.id), str(arguments.get("admin_pass") or ""))

    def _rebuild(self, record: ThingRecord, arguments: Mapping[str, Any]) -> None:
        """Start with a new working directory; `arguments` may have a new image, user_data, name or metadata."""
        refuse_if_locked(record, "rebuilt")
        with self.tree.lock():
            look = TreeSnapshot(self.tree)
            current = look.get("server", record.id) or record
            changed = frozenset(arguments) - {"admin_pass"}
            spec = {**current.spec, **{name: arguments[name] for name in changed}}
            checked = self._checked(look, spec, changed)
            rebuilt = replace(
                current,
                spec=spec,
                facts={**current.facts, **checked, **reborn(wipe=True), "power": "running"},
            )
            look.store(rebuilt)
        if arguments.get("admin_pass"):
            self._change_password(record, arguments)
        self._live(rebuilt)

    def _alive(self, record: ThingRecord) -> bool:
        return processes.life(self.tree.directory("server", record.id)) is not None

    # -- deleting ----------------------------------------------------------------------------------

    def _delete_all(self, handles: Sequence[str]) -> list[Answer]:
        """Delete a chunk of servers, with a single scan of the processes."""
        # Locked in sorted order: concurrent callers cannot deadlock.
        with contextlib.ExitStack() as stack:
            held = {handle: stack.enter_context(self._held(handle)) for handle in sorted(set(handles))}
            going = [handle for handle, record in held.items() if record and not record.facts.get("locked")]
            # Recorded before the processes end: after a crash in between, the server shows as being deleted, and not
            # as stopped, which healing would answer with a start.
            for handle in going:
                self._note(handle, deleting=True)
            processes.end([self.tree.directory("server", handle) for handle in going])
            with self.tree.lock():
                look = TreeSnapshot(self.tree)
                return self.act_on_each(look, handles, lambda handle: self._delete(look, handle))

    def dismantle(self, look: TreeSnapshot, record: ThingRecord) -> None:
        refuse_if_locked(record, "deleted")
        networks.release_ports(look, record)
        for attachment in look.referring("volume_attachment", "server_id", record.id):
            look.drop(attachment)

    # -- showing -----------------------------------------------------------------------------------

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        directory = self.tree.directory("server", record.id)
        addresses = self._addresses(look, record)
        by_network: dict[str, list[dict[str, Any]]] = {}
        for network, entry in addresses:
            by_network.setdefault(network, []).append(entry)
        alive = processes.life(directory)
        status, fault = status_of(record, alive)
        return {
            "metadata": {},
            **record.spec,
            "id": record.id,
            "status": status,
            "fault": fault,
            "address": addresses[0][1]["addr"] if addresses else None,
            "addresses": by_network,
            "volumes": attached_volumes(look, record),
            "locked": bool(record.facts.get("locked")),
            "console_log": f"{directory}/console.log",
            "pid": alive.pid if alive else None,
            "host": HOST,
            **self._snapshots.of(look, record),
        }

    def _addresses(self, look: TreeSnapshot, record: ThingRecord) -> list[tuple[str, dict[str, Any]]]:
        """Return (network name, entry of `addresses`) for each address, in the order of the ports."""
        entries = []
        for id in record.facts["ports"]:
            port = look.get("port", id)
            network = look.get("network", port.facts["network_id"]) if port else None
            if port is None or network is None:
                continue
            for fixed in port.facts["fixed_ips"]:
                entry = {"addr": fixed["ip_address"], "version": 4, "port": port.id, "network": network.id}
                entries.append((network.spec.get("name") or network.id, {**entry, "mac": port.facts["mac_address"]}))
        return entries
