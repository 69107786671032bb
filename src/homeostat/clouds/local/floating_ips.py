"""Floating addresses: a process forwards from the floating address to its port's fixed address."""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.clouds.local import forwarder_files, networks, processes
from homeostat.clouds.local.addresses import choose, reached_as
from homeostat.clouds.local.family import Facts, Family, Refers
from homeostat.clouds.local.tree import ThingRecord
from homeostat.clouds.local.tree_snapshot import TreeSnapshot
from homeostat.clouds.port import Change, Operation
from homeostat.model.errors import Terminal

OF_SERVER = Refers(("server",), "server", "server_id")


class FloatingIps(Family):
    kind = "floating_ip"
    refers = (
        Refers(("floating_network", "floating_network_id"), "network", "floating_network_id"),
        Refers(("port_id",), "port", "port_id"),
        OF_SERVER,
    )
    used_by = (("floating_ip_association", "floatingip_id"),)

    def references(self, look: TreeSnapshot, spec: Mapping[str, Any]) -> Facts:
        facts = _with_port(look, super().references(look, spec))
        return {**facts, "floating_network_id": facts["floating_network_id"] or networks.external(look).id}

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        facts = super().admit(look, id, spec)
        _refuse_without_target(look, facts, spec)
        named = spec.get("floating_subnet") or spec.get("subnet_id")
        if named:
            subnets = [look.resolve("subnet", named)]
        else:
            subnets = look.referring("subnet", "network_id", facts["floating_network_id"])
        if not subnets:
            raise Terminal(f"network {spec.get('floating_network')} has no subnet to take a floating address from")
        wanted = {**subnets[0].spec, **subnets[0].facts}
        address = choose(wanted, networks.taken(look), spec.get("floating_ip_address"))
        fixed = [{"subnet_id": subnets[0].id, "ip_address": address}]
        return {**facts, "fixed_ips": fixed, "subnet_ids": [subnets[0].id], "floating_ip_address": address}

    def amend(self, look: TreeSnapshot, record: ThingRecord, spec: Mapping[str, Any], changed: frozenset[str]) -> Facts:
        facts = super().amend(look, record, spec, changed)
        _refuse_without_target(look, facts, spec)
        return facts

    def settle(self, look: TreeSnapshot, record: ThingRecord) -> None:
        directory = self.tree.directory("floating_ip", record.id)
        port, fixed = _associated(look, record)
        if fixed and _is_up(look, port):
            mirror = {"from": record.facts["floating_ip_address"], "to": fixed}
            forwarder_files.ensure(directory, {"listeners": [], "pools": {}, "mirror": mirror})
        elif processes.life(directory):
            processes.end([directory])

    def perform(self, look: TreeSnapshot, record: ThingRecord, operation: Operation) -> None:
        if operation.verb != "start":
            super().perform(look, record, operation)
        self.settle(look, record)

    def dismantle(self, look: TreeSnapshot, record: ThingRecord) -> None:
        processes.end([self.tree.directory("floating_ip", record.id)])

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        port, fixed = _associated(look, record)
        alive = processes.life(self.tree.directory("floating_ip", record.id))
        status = ("active" if alive else "stopped") if fixed and _is_up(look, port) else "down"
        fields = {name: value for name, value in super().show(look, record).items() if name != "fixed_ips"}
        associated = {"port_id": port, "fixed_ip_address": fixed, "router_id": None}
        fault = "its process ended" if status == "stopped" else None
        return {**fields, **associated, "status": status, "fault": fault, "pid": alive.pid if alive else None}


def _associated(look: TreeSnapshot, record: ThingRecord) -> tuple[str | None, str | None]:
    """Return the port and the fixed address of a floating IP: from its own spec, or from an association."""
    for holder in [record, *look.referring("floating_ip_association", "floatingip_id", record.id)]:
        fixed = _target(look, holder.facts["port_id"], holder.spec.get("fixed_ip_address"))
        if fixed:
            return holder.facts["port_id"], fixed
    return None, None


def _is_up(look: TreeSnapshot, port_id: str | None) -> bool:
    """Return whether a port is administratively up; otherwise it gets no traffic."""
    port = look.get("port", port_id) if port_id else None
    return port is not None and port.spec.get("admin_state_up") is not False


def _target(look: TreeSnapshot, port_id: str | None, wanted: str | None) -> str | None:
    """Return the wanted address of a port, or its first; None if the port lacks it."""
    port = look.get("port", port_id) if port_id else None
    for fixed in port.facts["fixed_ips"] if port else ():
        subnet = look.get("subnet", fixed["subnet_id"])
        if not wanted or (subnet and reached_as(subnet.facts, wanted) == fixed["ip_address"]):
            return str(fixed["ip_address"])
    return None


def _id_of(look: TreeSnapshot, id_or_address: Any) -> Any:
    """Return the id of the floating IP with this address, or else the given value."""
    addresses = ((id, record.facts["floating_ip_address"]) for id, record in look.all("floating_ip").items())
    having = (id for id, address in addresses if address == id_or_address)
    return next(having, id_or_address)


def _with_port(look: TreeSnapshot, facts: Facts) -> Facts:
    """Add the first port with an address of the server, if a server is named instead of a port.

    Raises:
        Terminal: The server has no address.
    """
    server = look.get("server", facts["server_id"]) if facts["server_id"] else None
    if server is None or facts["port_id"]:
        return facts
    port_id = next((id for id in server.facts["ports"] if _target(look, id, None)), None)
    if port_id is None:
        raise Terminal(f"server {server.id} has no address that a floating one could lead to")
    return {**facts, "port_id": port_id}


def _refuse_without_target(look: TreeSnapshot, facts: Facts, spec: Mapping[str, Any]) -> None:
    wanted = spec.get("fixed_ip_address")
    if facts["port_id"] and not _target(look, facts["port_id"], wanted):
        raise Terminal(f"port {facts['port_id']} has no address {wanted or 'at all'}")


class FloatingIpAssociations(Family):
    kind = "floating_ip_association"
    refers = (
        Refers(("floatingip_id",), "floating_ip", "floatingip_id", required=True),
        Refers(("port_id",), "port", "port_id"),
        OF_SERVER,
    )

    def references(self, look: TreeSnapshot, spec: Mapping[str, Any]) -> Facts:
        named = {**spec, "floatingip_id": _id_of(look, spec.get("floatingip_id"))}
        facts = _with_port(look, super().references(look, named))
        if not facts["port_id"]:
            raise Terminal("A floating_ip_association needs a port or a server: set 'port_id' or 'server'")
        _refuse_without_target(look, facts, spec)
        return facts

    def change(self, look: TreeSnapshot, change: Change) -> ThingRecord | None:
        before = look.get(self.kind, change.handle)
        after = super().change(look, change)
        # The floating IP that the association left must stop forwarding; `finish` handles the new one later.
        if before is not None:
            self.finish(look, [before])
        return after

    def finish(self, look: TreeSnapshot, records: Sequence[ThingRecord]) -> None:
        floating = FloatingIps(self.tree)
        for id in {record.facts["floatingip_id"]: None for record in records}:
            address = look.get("floating_ip", id)
            if address is not None:
                floating.settle(look, address)

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        return {**super().show(look, record), "status": "active"}
