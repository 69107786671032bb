"""Fencing of servers: their processes end, their ports go down, their volumes are detached.

Only the state seen afterwards counts. While a process of a server lives, it serves the server's addresses and may have
files of its volumes open, so neither ports nor volumes count as cut off.
"""

import contextlib
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from homeostat.clouds.local import processes
from homeostat.clouds.local.family import Facts
from homeostat.clouds.local.floating_ips import FloatingIps
from homeostat.clouds.local.storage import VolumeAttachments, boot_devices
from homeostat.clouds.local.tree import ThingRecord, Tree
from homeostat.clouds.local.tree_snapshot import TreeSnapshot
from homeostat.model.errors import HomeostatError

LIVES = "processes of it live"


class ServerFence:
    """Cuts off servers of a tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def cut(self, id: str, what: Collection[str]) -> Facts:
        """Cut off a server, whose lock the caller holds; return `{fenced, not_fenced}` as seen afterwards."""
        acts = {"COMPUTE": self._end, "NETWORK": self._close, "STORAGE": self._detach}
        failed: dict[str, str] = {}
        for resource in what:
            try:
                acts[resource](id)
            except (HomeostatError, OSError) as error:
                failed[resource] = str(error)
        return self._seen(id, what, failed)

    def open(self, id: str, what: Collection[str]) -> None:
        """Bring up the ports that `cut` took down."""
        with self._tree.lock():
            look = TreeSnapshot(self._tree)
            for port in self._ports(look, id) if "NETWORK" in what else ():
                if port.facts.get("fenced"):
                    facts = {name: value for name, value in port.facts.items() if name != "fenced"}
                    look.store(replace(port, spec={**port.spec, "admin_state_up": True}, facts=facts))
            self._settle(look, id)

    # -- acts ----------------------------------------------------------------------------------------------------------

    def _end(self, id: str) -> None:
        self._note(id, power="stopped")
        processes.end([self._directory(id)])

    def _close(self, id: str) -> None:
        with self._tree.lock():
            look = TreeSnapshot(self._tree)
            for port in self._ports(look, id):
                if port.spec.get("admin_state_up") is not False:
                    spec, facts = {**port.spec, "admin_state_up": False}, {**port.facts, "fenced": True}
                    look.store(replace(port, spec=spec, facts=facts))
            self._settle(look, id)

    def _detach(self, id: str) -> None:
        with self._tree.lock():
            look = TreeSnapshot(self._tree)
            record = look.get("server", id)
            attachments = VolumeAttachments(self._tree)
            for attachment in look.referring("volume_attachment", "server_id", id):
                attachments.dismantle(look, attachment)
                look.drop(attachment)
            if record is not None and record.facts["volume_ids"]:
                for device in boot_devices(record):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(f"{self._directory(id)}/dev/{device}")
                look.store(replace(record, facts={**record.facts, "volume_ids": []}))

    # -- looks ---------------------------------------------------------------------------------------------------------

    def _seen(self, id: str, what: Collection[str], failed: Mapping[str, str]) -> Facts:
        look = TreeSnapshot(self._tree)
        directory = self._directory(id)
        lives = processes.life(directory) is not None or bool(processes.belonging([directory])[directory])
        why = {
            "COMPUTE": "",
            "NETWORK": self._open_ways(look, id),
            "STORAGE": self._volumes(look, id),
        }
        left = {resource: failed.get(resource) or (LIVES if lives else why[resource]) for resource in what}
        return {
            "fenced": [resource for resource in what if not left[resource]],
            "not_fenced": {resource: reason for resource, reason in left.items() if reason},
        }

    def _open_ways(self, look: TreeSnapshot, id: str) -> str:
        ports = self._ports(look, id)
        up = [port.id for port in ports if port.spec.get("admin_state_up") is not False]
        lead = [ip.id for ip in self._floating(look, id) if processes.life(self._tree.directory(ip.kind, ip.id))]
        return f"these are open: {', '.join([*up, *lead])}" if up or lead else ""

    def _volumes(self, look: TreeSnapshot, id: str) -> str:
        record = look.get("server", id)
        held = [*(record.facts["volume_ids"] if record else ())]
        held += [record.facts["volume_id"] for record in look.referring("volume_attachment", "server_id", id)]
        return f"these are attached: {', '.join(held)}" if held else ""

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _directory(self, id: str) -> str:
        return self._tree.directory("server", id)

    def _ports(self, look: TreeSnapshot, id: str) -> list[ThingRecord]:
        return look.referring("port", "device_id", id)

    def _floating(self, look: TreeSnapshot, id: str) -> list[ThingRecord]:
        """Return the floating IPs of a server's ports, directly or by an association."""
        addresses: dict[str, ThingRecord] = {}
        for port in self._ports(look, id):
            addresses |= {address.id: address for address in look.referring("floating_ip", "port_id", port.id)}
            for association in look.referring("floating_ip_association", "port_id", port.id):
                address = look.get("floating_ip", association.facts["floatingip_id"])
                addresses |= {address.id: address} if address else {}
        return [*addresses.values()]

    def _settle(self, look: TreeSnapshot, id: str) -> None:
        for address in self._floating(look, id):
            FloatingIps(self._tree).settle(look, address)

    def _note(self, id: str, **facts: Any) -> None:
        with self._tree.lock():
            record = self._tree.read("server", id)
            if record is not None:
                self._tree.write(replace(record, facts={**record.facts, **facts}))
