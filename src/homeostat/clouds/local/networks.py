"""Networks, subnets, ports, routers, security groups: records, with reachable loopback addresses."""

import hashlib
import ipaddress
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from homeostat.clouds.local.addresses import choose, default_pools, loopback_block, parse_network, reached_as
from homeostat.clouds.local.family import Facts, Family, Refers, identity
from homeostat.clouds.local.tree import BUILT_IN as BUILT_IN_TOKEN
from homeostat.clouds.local.tree import ThingRecord, Tree
from homeostat.clouds.local.tree_snapshot import TreeSnapshot
from homeostat.clouds.port import Creation
from homeostat.model.errors import Terminal, Transient

BUILT_IN = (("private", "172.31.0.0/20"), ("public", "172.24.4.0/22"))
"""Networks that always exist, with one subnet each; servers without networks are on the first."""

OF_NETWORK = Refers(("network", "network_id"), "network", "network_id", required=True)


class Networks(Family):
    kind = "network"
    used_by = (
        ("port", "network_id"),
        ("floating_ip", "floating_network_id"),
        ("router", "gateway_network_id"),
        ("router_gateway", "network_id"),
    )

    def users(self, look: TreeSnapshot, record: ThingRecord) -> Iterable[ThingRecord]:
        yield from super().users(look, record)
        for subnet in look.referring("subnet", "network_id", record.id):
            yield from look.referring("router_interface", "subnet_id", subnet.id)

    def dismantle(self, look: TreeSnapshot, record: ThingRecord) -> None:
        """Remove its subnets, too."""
        for subnet in look.referring("subnet", "network_id", record.id):
            look.drop(subnet)

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        subnets = [subnet.id for subnet in look.referring("subnet", "network_id", record.id)]
        fields = {"admin_state_up": True, "shared": False, "mtu": 65536, **super().show(look, record)}
        return {**fields, "subnets": subnets, "status": "active"}

    def provide(self) -> None:
        """Create missing built-in networks."""
        subnets = Subnets(self.tree)
        with self.tree.lock():
            look = TreeSnapshot(self.tree)
            for name, cidr in BUILT_IN:
                spec = {"name": name, "router:external": name == "public", "shared": True}
                network = self.begin(look, Creation(f"{BUILT_IN_TOKEN}{name}", spec))
                inside = {"name": f"{name}-subnet", "network": network.id, "cidr": cidr}
                subnets.begin(look, Creation(f"{BUILT_IN_TOKEN}{name}", inside))


class Subnets(Family):
    kind = "subnet"
    refers = (OF_NETWORK,)
    used_by = (("port", "subnet_ids"), ("floating_ip", "subnet_ids"), ("router_interface", "subnet_id"))

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        facts = super().admit(look, id, spec)
        records = look.everything("subnet").values()
        taken = [ipaddress.IPv4Network(record.facts["loopback_cidr"]) for record in records]
        requested = spec.get("cidr")
        sized = parse_network(requested or f"0.0.0.0/{spec.get('prefixlen') or 24}")
        block = loopback_block(sized, taken, str(self.tree.root))
        cidr = parse_network(requested) if requested else block
        first = str(cidr[1]) if cidr.num_addresses > 2 else None
        facts.update(
            cidr=requested or str(cidr),
            loopback_cidr=str(block),
            ip_version=cidr.version,
            gateway_ip=(spec["gateway_ip"] or None) if "gateway_ip" in spec else first,
        )
        return facts

    def amend(self, look: TreeSnapshot, record: ThingRecord, spec: Mapping[str, Any], changed: frozenset[str]) -> Facts:
        facts = super().amend(look, record, spec, changed)
        if "cidr" in changed and spec.get("cidr") != record.spec.get("cidr"):
            raise Terminal(f"subnet {record.id}: the cidr cannot change, make a new subnet")
        if "gateway_ip" in changed:
            facts["gateway_ip"] = spec.get("gateway_ip") or None
        return facts

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        fields = {"enable_dhcp": True, "dns_nameservers": [], "host_routes": [], **super().show(look, record)}
        return {**fields, "allocation_pools": record.spec.get("allocation_pools") or default_pools(record.facts)}


class Ports(Family):
    kind = "port"
    refers = (replace(OF_NETWORK, required=False),)
    used_by = (
        ("floating_ip", "port_id"),
        ("floating_ip_association", "port_id"),
        ("router_interface", "port_id"),
    )

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        facts = self._on_network(look, super().admit(look, id, spec), spec)
        digest = hashlib.sha256(id.encode()).hexdigest()
        mac = ":".join(["fa", "16", "3e", digest[:2], digest[2:4], digest[4:6]])
        return {
            **facts,
            **_addressed(look, facts["network_id"], spec),
            "security_group_ids": groups(look, spec),
            "mac_address": spec.get("mac_address") or mac,
            "device_id": spec.get("device_id") or "",
            "device_owner": spec.get("device_owner") or "",
        }

    def amend(self, look: TreeSnapshot, record: ThingRecord, spec: Mapping[str, Any], changed: frozenset[str]) -> Facts:
        facts = self._on_network(look, super().amend(look, record, spec, changed), spec)
        facts["security_group_ids"] = groups(look, spec)
        if "fixed_ips" in changed:
            facts.update(_addressed(look, facts["network_id"], spec, old=record))
        if not facts.get("used_by"):
            facts.update({name: spec[name] or "" for name in ("device_id", "device_owner") if name in spec})
        return facts

    def _on_network(self, look: TreeSnapshot, facts: Facts, spec: Mapping[str, Any]) -> Facts:
        """Add the network of the first subnet if no network is named.

        Raises:
            Terminal: Neither a network nor a subnet is named.
        """
        if facts["network_id"]:
            return facts
        for entry in spec.get("fixed_ips") or ():
            subnet = entry.get("subnet") or entry.get("subnet_id")
            if subnet:
                return {**facts, "network_id": look.resolve("subnet", subnet).facts["network_id"]}
        raise Terminal("A port needs a network: set 'network', or a subnet in 'fixed_ips'")

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        status = "active" if record.facts.get("device_id") else "down"
        return {"admin_state_up": True, "security_groups": [], **super().show(look, record), "status": status}

    def users(self, look: TreeSnapshot, record: ThingRecord) -> list[ThingRecord]:
        user = record.facts.get("used_by")
        holder = look.get(user[0], user[1]) if user else None
        return [*super().users(look, record), *([holder] if holder else [])]


def _addressed(look: TreeSnapshot, network_id: str, spec: Mapping[str, Any], old: ThingRecord | None = None) -> Facts:
    """Return the addresses of a port: one per entry of `fixed_ips`, or an address in the first subnet of its network.

    `old` is the previous state of the port, whose addresses stay available to it.
    """
    subnets = look.referring("subnet", "network_id", network_id)
    wanted = spec.get("fixed_ips")
    if wanted is None:
        wanted = [{}] if subnets else []
    busy = taken(look) - (addresses_of(old) if old else set())
    fixed = []
    for entry in wanted:
        subnet = _subnet_for(look, subnets, entry)
        address = _chosen(look, subnet, busy, entry.get("ip_address"))
        busy.add(address)
        fixed.append({"subnet_id": subnet.id, "ip_address": address})
    return {"fixed_ips": fixed, "subnet_ids": [entry["subnet_id"] for entry in fixed]}


def _chosen(look: TreeSnapshot, subnet: ThingRecord, busy: set[str], wanted: str | None) -> str:
    """Return an address that is not in `busy`.

    If none is free, ports created for servers that no longer exist are removed.
    """
    facts = {**subnet.spec, **subnet.facts}
    try:
        return choose(facts, busy, wanted)
    except Transient:
        for port in [port for port in look.all("port").values() if look.outlived(port)]:
            look.drop(port)
            busy -= addresses_of(port)
        return choose(facts, busy, wanted)


def _subnet_for(look: TreeSnapshot, subnets: list[ThingRecord], entry: Mapping[str, Any]) -> ThingRecord:
    named = entry.get("subnet") or entry.get("subnet_id")
    if named:
        return look.resolve("subnet", named)
    wanted = entry.get("ip_address")
    for subnet in subnets:
        if not wanted or reached_as(subnet.facts, wanted):
            return subnet
    known = ", ".join(subnet.facts["cidr"] for subnet in subnets)
    raise Terminal(
        f"No subnet of the port's network has the address {wanted or 'wanted'}; its subnets: {known or 'none'}"
    )


def taken(look: TreeSnapshot) -> set[str]:
    """Return all addresses in use in this cloud, by all projects."""
    holders = [*look.everything("port").values(), *look.everything("floating_ip").values()]
    return {address for holder in holders for address in addresses_of(holder)}


def addresses_of(record: ThingRecord) -> set[str]:
    return {fixed["ip_address"] for fixed in record.facts.get("fixed_ips", ())}


def groups(look: TreeSnapshot, spec: Mapping[str, Any]) -> list[str]:
    """Return the ids of the security groups named in `spec`, except `default`, which every project has anyway."""
    named = [name for name in spec.get("security_groups") or () if name != "default"]
    return [look.resolve("security_group", name).id for name in named]


def provide_port(look: TreeSnapshot, tree: Tree, token: str, spec: Mapping[str, Any], user: ThingRecord) -> ThingRecord:
    """Return the port created for `user` (a server or load balancer) with this token; `release_ports` removes it."""
    ports = Ports(tree)
    port = look.get("port", identity("port", token))
    if port is None:
        facts = ports.admit(look, identity("port", token), spec)
        port = ThingRecord("port", identity("port", token), token, dict(spec), facts, time.time())
    return occupy(look, port, user, own=True)


def occupy(look: TreeSnapshot, port: ThingRecord, user: ThingRecord, *, own: bool = False) -> ThingRecord:
    """Record the user of a port; `own` means that the port was created for this user.

    Raises:
        Transient: Another existing object uses the port.
    """
    holder = port.facts.get("used_by")
    if holder and holder != [user.kind, user.id] and look.get(*holder) is not None:
        raise Transient(f"port {port.id} is in use by {holder[0]} {holder[1]}")
    owner = "compute:local" if user.kind == "server" else user.kind
    used = {"used_by": [user.kind, user.id], "own": own, "device_id": user.id, "device_owner": owner}
    occupied = replace(port, facts={**port.facts, **used})
    look.store(occupied)
    return occupied


def address_of(look: TreeSnapshot, server_id: str, subnet_id: str | None = None) -> str | None:
    """Return the first address of a server, on the given subnet if any; None if absent."""
    server = look.get("server", server_id)
    ports = [look.get("port", id) for id in server.facts["ports"]] if server else []
    fixed_ips = [fixed for port in ports if port for fixed in port.facts["fixed_ips"]]
    return next((fixed["ip_address"] for fixed in fixed_ips if subnet_id in (None, fixed["subnet_id"])), None)


def release_ports(
    look: TreeSnapshot, user: ThingRecord, keep: tuple[str, ...] = (), *, named_alone: bool = False
) -> None:
    """Free the ports of `user` that are not in `keep`; ports created for the user are removed.

    Args:
        keep: Ids of the ports to keep.
        named_alone: Keep the ports created for the user, too.
    """
    for port in look.referring("port", "device_id", user.id):
        if port.id in keep or port.facts.get("used_by") != [user.kind, user.id]:
            continue
        if port.facts.get("own"):
            if not named_alone:
                look.drop(port)
        else:
            freed = {name: port.spec.get(name) or "" for name in ("device_id", "device_owner")}
            look.store(replace(port, facts={**port.facts, **freed, "used_by": None}))


class Routers(Family):
    kind = "router"
    used_by = (("router_interface", "router_id"), ("router_gateway", "router_id"))

    def admit(self, look: TreeSnapshot, id: str, spec: Mapping[str, Any]) -> Facts:
        gateway = spec.get("external_gateway_info") or {}
        network = gateway.get("network") or gateway.get("network_id")
        return {"gateway_network_id": look.resolve("network", network).id if network else None}

    def amend(self, look: TreeSnapshot, record: ThingRecord, spec: Mapping[str, Any], changed: frozenset[str]) -> Facts:
        return {**record.facts, **self.admit(look, record.id, spec)}

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        fields = {"admin_state_up": True, "external_gateway_info": None, **super().show(look, record)}
        return {**fields, "status": "active"}


class RouterInterfaces(Family):
    kind = "router_interface"
    refers = (
        Refers(("router", "router_id"), "router", "router_id", required=True),
        Refers(("subnet", "subnet_id"), "subnet", "subnet_id"),
        Refers(("port", "port_id"), "port", "port_id"),
    )

    def references(self, look: TreeSnapshot, spec: Mapping[str, Any]) -> Facts:
        facts = super().references(look, spec)
        if not facts["subnet_id"] and not facts["port_id"]:
            raise Terminal("A router_interface needs a subnet or a port: set 'subnet' or 'port'")
        return facts


class RouterGateways(Family):
    kind = "router_gateway"
    refers = (
        Refers(("router", "router_id"), "router", "router_id", required=True),
        Refers(("network", "network_id"), "network", "network_id"),
    )

    def references(self, look: TreeSnapshot, spec: Mapping[str, Any]) -> Facts:
        facts = super().references(look, spec)
        return {**facts, "network_id": facts["network_id"] or external(look).id}


def external(look: TreeSnapshot) -> ThingRecord:
    """Return the default external network, which is the oldest one.

    Raises:
        Terminal: There is no external network.
    """
    networks = [network for network in look.all("network").values() if network.spec.get("router:external")]
    if not networks:
        raise Terminal("There is no external network: name one, or make one with router:external")
    return networks[0]


class SecurityGroups(Family):
    kind = "security_group"
    used_by = (("port", "security_group_ids"), ("server", "security_group_ids"))

    def dismantle(self, look: TreeSnapshot, record: ThingRecord) -> None:
        """Remove separate rules of the group, too."""
        for rule in look.referring("security_group_rule", "security_group_id", record.id):
            look.drop(rule)

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        return {"description": "", "rules": [], "stateful": True, **super().show(look, record)}


class SecurityGroupRules(Family):
    kind = "security_group_rule"
    refers = (
        Refers(("security_group_id",), "security_group", "security_group_id", required=True),
        Refers(("remote_group_id",), "security_group", "remote_group_id"),
    )
