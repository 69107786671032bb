"""Load balancers, listeners, pools, members and health monitors: records, and a process per load balancer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from homeostat.clouds.local import forwarder_files, networks, processes
from homeostat.clouds.local.family import Facts, Family, Refers
from homeostat.clouds.local.tree import ThingRecord
from homeostat.clouds.local.tree_snapshot import TreeSnapshot
from homeostat.clouds.port import Creation, Operation
from homeostat.model.errors import HomeostatError, Terminal
from homeostat.model.plan import DELETE_WITH_PARTS

_FORWARDED = frozenset({"TCP", "HTTP", "HTTPS"})
_PARTS = ("pool_member", "health_monitor", "pool", "listener")
"""Kinds of parts, children before parents."""
OF_POOL = Refers(("pool",), "pool", "pool_id", required=True)


class _Balanced(Family):
    """Base of load balancers and their parts; each has the fact `loadbalancer_id`."""

    def finish(self, look: TreeSnapshot, records: Sequence[ThingRecord]) -> None:
        """Write the configuration of the batch's load balancers, and start processes that have died."""
        for id in {record.facts["loadbalancer_id"]: None for record in records}:
            balancer = look.get("load_balancer", id)
            if balancer is not None:
                forwarder_files.ensure(self.tree.directory("load_balancer", id), configuration(look, balancer))

    def reported(self, record: ThingRecord) -> dict[str, Any] | None:
        """Return the state reported by the process; None without a process."""
        directory = self.tree.directory("load_balancer", record.facts["loadbalancer_id"])
        return forwarder_files.state(directory) if processes.life(directory) else None


class LoadBalancers(_Balanced):
    kind = "load_balancer"
    refers = (
        Refers(("vip_subnet", "vip_subnet_id"), "subnet", "vip_subnet_id"),
        Refers(("vip_network",), "network", "vip_network_id"),
    )
    used_by = (("listener", "loadbalancer_id"), ("pool", "loadbalancer_id"))

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        return {**super().admit(look, id, spec), "loadbalancer_id": id, "vip_port_id": None}

    def begin(self, look: TreeSnapshot, intent: Creation) -> ThingRecord:
        record = super().begin(look, intent)
        # The record comes first, as the user of the port. Without an address it is useless, and removed again.
        if record.facts["vip_port_id"]:
            return record
        try:
            port = networks.provide_port(look, self.tree, f"vip {record.id}", _vip(look, record), record)
        except HomeostatError:
            look.drop(record)
            raise
        addresses = [fixed["ip_address"] for fixed in port.facts["fixed_ips"]]
        facts = {**record.facts, "vip_port_id": port.id, "vip_address": addresses[0]}
        reachable = replace(record, facts=facts)
        look.store(reachable)
        return reachable

    def perform(self, look: TreeSnapshot, record: ThingRecord, operation: Operation) -> None:
        if operation.verb == DELETE_WITH_PARTS:
            self._delete_with_parts(look, record, operation.arguments["parts"])
        elif operation.verb != "start":
            super().perform(look, record, operation)

    def _delete_with_parts(self, look: TreeSnapshot, record: ThingRecord, parts: Mapping[str, Sequence[str]]) -> None:
        """Delete a load balancer and its parts.

        Raises:
            Terminal: The load balancer has parts that are not listed.
        """
        existing_parts = [part for kind in _PARTS for part in look.referring(kind, "loadbalancer_id", record.id)]
        others = [f"{part.kind} {part.id}" for part in existing_parts if part.id not in parts.get(part.kind, ())]
        if others:
            raise Terminal(f"load balancer {record.id} has parts that may not be deleted: {', '.join(others[:5])}")
        # Parts first: after an interruption the load balancer still exists, and a retry finds the remaining parts.
        for part in existing_parts:
            look.drop(part)
        self.dismantle(look, record)
        look.drop(record)

    def dismantle(self, look: TreeSnapshot, record: ThingRecord) -> None:
        processes.end([self.tree.directory("load_balancer", record.id)])
        networks.release_ports(look, record)

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        pools = [{"id": pool.id} for pool in look.referring("pool", "loadbalancer_id", record.id)]
        alive = processes.life(self.tree.directory("load_balancer", record.id))
        condition = (
            {"status": "active", "fault": None} if alive else {"status": "stopped", "fault": "its process ended"}
        )
        fields = {"description": "", "admin_state_up": True, "provider": "local", **super().show(look, record)}
        return {**fields, **condition, "pools": pools, "pid": alive.pid if alive else None}


def _vip(look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
    """Return the spec of the port of a load balancer."""
    subnet = look.get("subnet", record.facts["vip_subnet_id"] or "")
    if subnet is None:
        network = look.resolve("network", record.facts.get("vip_network_id") or networks.BUILT_IN[0][0])
        subnet = _first_subnet(look, network)
    fixed = {"subnet": subnet.id, "ip_address": record.spec.get("vip_address")}
    return {"network": subnet.facts["network_id"], "fixed_ips": [fixed]}


def _first_subnet(look: TreeSnapshot, network: ThingRecord) -> ThingRecord:
    subnets = look.referring("subnet", "network_id", network.id)
    if not subnets:
        raise Terminal(f"network {network.id} has no subnet for the address of a load balancer")
    return subnets[0]


class Listeners(_Balanced):
    kind = "listener"
    refers = (
        Refers(("loadbalancer",), "load_balancer", "loadbalancer_id", required=True),
        Refers(("default_pool",), "pool", "default_pool_id"),
    )
    used_by = (("pool", "listener_id"),)

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        facts = super().admit(look, id, spec)
        _refuse_unforwarded(spec)
        siblings = look.referring("listener", "loadbalancer_id", facts["loadbalancer_id"])
        if any(sibling.spec["protocol_port"] == spec["protocol_port"] for sibling in siblings):
            raise Terminal(
                f"load balancer {spec['loadbalancer']} has a listener on port {spec['protocol_port']} already"
            )
        return facts

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        reported = self.reported(record)
        problem = (reported or {}).get("listeners", {}).get(record.id)
        balancer = look.get("load_balancer", record.facts["loadbalancer_id"])
        served = _served(record) and balancer is not None and _served(balancer)
        if reported is None or not served:
            condition = {"status": "active", "operating_status": "offline", "fault": None}
        elif problem is None:
            condition = {"status": "building", "operating_status": "offline", "fault": None}
        elif problem:
            condition = {"status": "error", "operating_status": "error", "fault": problem}
        else:
            condition = {"status": "active", "operating_status": "online", "fault": None}
        defaults = {"admin_state_up": True, "connection_limit": -1, "description": ""}
        balancers = [{"id": record.facts["loadbalancer_id"]}]
        return {**defaults, **super().show(look, record), **condition, "loadbalancers": balancers}


class Pools(_Balanced):
    kind = "pool"
    refers = (
        Refers(("loadbalancer",), "load_balancer", "loadbalancer_id"),
        Refers(("listener",), "listener", "listener_id"),
    )
    used_by = (("pool_member", "pool_id"), ("health_monitor", "pool_id"), ("listener", "default_pool_id"))

    def references(self, look: TreeSnapshot, spec: Mapping[str, Any]) -> Facts:
        _refuse_unforwarded(spec)
        facts = super().references(look, spec)
        if facts["listener_id"]:
            facts["loadbalancer_id"] = look.resolve("listener", facts["listener_id"]).facts["loadbalancer_id"]
        if not facts["loadbalancer_id"]:
            raise Terminal("A pool needs a listener or a load balancer: set 'listener' or 'loadbalancer'")
        return facts

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        members = [member.id for member in look.referring("pool_member", "pool_id", record.id)]
        monitors = [monitor.id for monitor in look.referring("health_monitor", "pool_id", record.id)]
        listeners = [*filter(None, [record.facts["listener_id"]])]
        listeners += [listener.id for listener in look.referring("listener", "default_pool_id", record.id)]
        return {
            "admin_state_up": True,
            "description": "",
            **super().show(look, record),
            "status": "active",
            "members": members,
            "healthmonitor_id": monitors[0] if monitors else None,
            "listeners": [{"id": id} for id in dict.fromkeys(listeners)],
        }


class _OfPool(_Balanced):
    refers: ClassVar[tuple[Refers, ...]] = (OF_POOL,)

    def references(self, look: TreeSnapshot, spec: Mapping[str, Any]) -> Facts:
        facts = super().references(look, spec)
        return {**facts, "loadbalancer_id": look.resolve("pool", facts["pool_id"]).facts["loadbalancer_id"]}


class PoolMembers(_OfPool):
    kind = "pool_member"
    refers = (OF_POOL, Refers(("server",), "server", "server_id"), Refers(("subnet",), "subnet", "subnet_id"))

    def references(self, look: TreeSnapshot, spec: Mapping[str, Any]) -> Facts:
        facts = super().references(look, spec)
        if facts["server_id"] is None:
            return facts
        address = networks.address_of(look, facts["server_id"], facts["subnet_id"])
        if address is None:
            where = f" on the subnet {facts['subnet_id']}" if facts["subnet_id"] else ""
            raise Terminal(f"server {facts['server_id']} has no address{where} that a pool could lead to")
        return {**facts, "address": address}

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        reported = self.reported(record)
        operating = "offline" if reported is None else reported.get("members", {}).get(record.id, "no_monitor")
        fields = {"weight": 1, "admin_state_up": True, **super().show(look, record)}
        return {**fields, "status": "active", "operating_status": operating}


class HealthMonitors(_OfPool):
    kind = "health_monitor"

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        facts = super().admit(look, id, spec)
        if look.referring("health_monitor", "pool_id", facts["pool_id"]):
            raise Terminal(f"pool {spec['pool']} has a health monitor already")
        return facts

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        fields = {"admin_state_up": True, **super().show(look, record)}
        return {**fields, "status": "active", "pools": [{"id": record.facts["pool_id"]}]}


def _refuse_unforwarded(spec: Mapping[str, Any]) -> None:
    if spec["protocol"] not in _FORWARDED:
        known = ", ".join(sorted(_FORWARDED))
        raise Terminal(f"protocol {spec['protocol']} is not available in the local cloud; choose one of {known}")


def _served(record: ThingRecord) -> bool:
    return record.spec.get("admin_state_up") is not False


def configuration(look: TreeSnapshot, balancer: ThingRecord) -> dict[str, Any]:
    """Return the configuration for the process of a load balancer, see `forwarder_files.py`."""
    listeners = look.referring("listener", "loadbalancer_id", balancer.id) if _served(balancer) else []
    pools = look.referring("pool", "loadbalancer_id", balancer.id)
    fronted = {pool.facts["listener_id"]: pool.id for pool in pools if pool.facts["listener_id"]}
    return {
        "listeners": [
            {
                "id": listener.id,
                "address": balancer.facts["vip_address"],
                "port": listener.spec["protocol_port"],
                "protocol": listener.spec["protocol"],
                "pool": listener.facts["default_pool_id"] or fronted.get(listener.id),
                "connection_limit": listener.spec.get("connection_limit", -1),
                "allowed_cidrs": listener.spec.get("allowed_cidrs") or [],
            }
            for listener in listeners
            if _served(listener)
        ],
        "pools": {pool.id: _pool(look, pool) for pool in pools if _served(pool)},
    }


def _pool(look: TreeSnapshot, pool: ThingRecord) -> dict[str, Any]:
    monitors = [monitor for monitor in look.referring("health_monitor", "pool_id", pool.id) if _served(monitor)]
    sticky = (pool.spec.get("session_persistence") or {}).get("type")
    served = [member for member in look.referring("pool_member", "pool_id", pool.id) if _served(member)]
    members = [{**member.spec, "address": member.facts.get("address") or member.spec["address"]} for member in served]
    return {
        # Bytes are forwarded unread, so there are no cookies: session persistence uses the client's address.
        "algorithm": "SOURCE_IP" if sticky else pool.spec.get("lb_algorithm") or "ROUND_ROBIN",
        "monitor": _monitor(monitors[0].spec) if monitors else None,
        "members": [
            {
                "id": record.id,
                "address": member["address"],
                "port": member["protocol_port"],
                "weight": member.get("weight", 1),
                "monitored": bool(monitors),
                "check_address": member.get("monitor_address") or member["address"],
                "check_port": member.get("monitor_port") or member["protocol_port"],
            }
            for record, member in zip(served, members, strict=True)
        ],
    }


def _monitor(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": spec["type"],
        "delay": spec["delay"],
        "timeout": spec["timeout"],
        "max_retries": spec["max_retries"],
        "http_method": spec.get("http_method") or "GET",
        "url_path": spec.get("url_path") or "/",
        "expected_codes": spec.get("expected_codes") or "200",
    }
