"""Networking: floating IPs, their associations with ports, and port forwardings."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.network import Aspect, NetworkCollection
from homeostat.clouds.openstack.routers import external
from homeostat.clouds.openstack.server_addresses import servers_led_to
from homeostat.clouds.openstack.service import Wire
from homeostat.model.errors import Terminal

TARGET = ("server", "port_id", "fixed_ip_address")
"""Fields that together specify the target of a floating IP."""


def target(collection: NetworkCollection, spec: Mapping[str, Any]) -> Wire:
    """Return port and address of the target, which is a port or a server's first port.

    Raises:
        Terminal: The server has no port with an IPv4 address.
    """
    port = collection.reference("port", spec.get("port_id"))
    if spec.get("server") and not port:
        server = collection.reference("server", spec["server"])
        ports = sorted(collection.api.list("/ports", "ports", device_id=server), key=lambda port: port["id"])
        with_ipv4 = (port for port in ports if any("." in fixed["ip_address"] for fixed in port["fixed_ips"]))
        port = next((port["id"] for port in with_ipv4), None)
        if port is None:
            raise Terminal(f"server {server} has no address that a floating one could lead to")
    fixed = {"fixed_ip_address": spec["fixed_ip_address"]} if spec.get("fixed_ip_address") and port else {}
    return {"port_id": port or None, **fixed}


def announce(collection: NetworkCollection, before: Wire, port: str | None) -> None:
    """Announce the servers whose addresses are about to change.

    Args:
        collection: Floating IPs, or their associations.
        before: The floating IP; {} for a new one.
        port: The new port; None for none.

    Raises:
        Transient: The announcement cannot be stored.
    """
    held: Wire = {}
    if port:
        with contextlib.suppress(Missing):
            held = collection.api.get(f"/ports/{port}")["port"]
    collection.cloud.server_changes.announce_addresses(servers_led_to([before, {"port_details": held}]))


class FloatingIps(NetworkCollection):
    kind = "floating_ip"
    path, key, keys = "/floatingips", "floatingip", "floatingips"
    names = "floating_ip_address"
    cleared = {"tags": (), "dns_name": "", "dns_domain": "", **dict.fromkeys(TARGET)}

    def object_of(self, thing: Wire) -> Wire:
        """Return the fields of the kind; a cloud without DNS for its networking shows no names, even if specified."""
        fields = super().object_of(thing)
        return {**fields, **{name: fields.get(name) or None for name in ("dns_name", "dns_domain")}}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of({name: value for name, value in spec.items() if name not in TARGET})
        return {**body, **target(self, spec)} if any(name in spec for name in TARGET) else body

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        """Create a floating IP, by default on the external network."""
        network = spec.get("floating_network_id") or external(self)
        leads = {name: value for name, value in target(self, spec).items() if value}
        announce(self, {}, leads.get("port_id"))
        return super().create(token, {**spec, **leads, "floating_network_id": network})

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        if not any(name in changed for name in TARGET):
            return super().update(handle, spec, changed)
        leads = target(self, spec)
        announce(self, self.get(handle), leads["port_id"])
        # Target fields only change together: an address without its port would be ambiguous.
        return super().update(handle, {**spec, **leads}, [*{*changed, *TARGET}])

    def delete(self, handle: str) -> Wire | None:
        announce(self, self.get(handle), None)
        return super().delete(handle)


class FloatingIpAssociations(Aspect):
    """Associations as separate objects; the handle is `<floating IP>:<port>`."""

    kind = "floating_ip_association"
    path, key, keys = "/floatingips", "floatingip", "floatingips"

    def view(self, of: Wire, rest: str) -> Wire | None:
        """Return the association; if the floating IP now has another port, the association differs but exists."""
        if not of["port_id"]:
            return None
        fields = {name: of.get(name) for name in ("port_id", "fixed_ip_address", "floating_ip_address", "router_id")}
        return {**fields, "floatingip_id": of["id"], "status": of["status"]}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        floating = self.reference("floating_ip", spec.get("floatingip_id"))
        leads = target(self, spec)
        if not leads["port_id"]:
            raise Terminal("an association needs a port or a server: set port_id or server")
        announce(self, self._thing(self.api.get(self.path_of(floating))), leads["port_id"])
        of = self._put(floating, leads, token)
        return {**(self.view(of, "") or {}), "id": f"{floating}:{leads['port_id']}"}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Change the port or the floating IP of an association, which changes its handle."""
        self.get(handle)
        before, _, _ = handle.partition(":")
        if self.reference("floating_ip", spec.get("floatingip_id")) != before:
            try:
                self.delete(handle)
            except Missing:
                pass
        return self.create(handle, spec)

    def delete(self, handle: str) -> Wire | None:
        floating, _, port = handle.partition(":")
        before = self._thing(self.api.get(self.path_of(floating)))
        if not before["port_id"]:
            raise Missing(f"floating IP {floating} leads nowhere")
        if before["port_id"] != port and port:
            raise Missing(f"floating IP {floating} leads elsewhere")
        announce(self, before, None)
        self._put(floating, {"port_id": None}, handle)
        return None

    def _put(self, floating: str, leads: Wire, of: str) -> Wire:
        return self._thing(self.api.request("PUT", self.path_of(floating), {"floatingip": leads}, of=of))


class PortForwards(NetworkCollection):
    """Port forwardings of floating IPs; the handle is `<floating IP>:<id>`."""

    kind = "floating_ip_port_forward"
    extension = "floating-ip-port-forwarding"
    path, key, keys = "/floatingips", "port_forwarding", "port_forwardings"
    further_looks = "one for each floating IP with port forwardings"
    cleared = {}
    separate = ()

    def path_of(self, handle: str) -> str:
        floating, _, id = handle.partition(":")
        return f"{self.path}/{floating}/port_forwardings/{id}".rstrip("/")

    def get(self, handle: str) -> Wire:
        return {**super().get(handle), "floatingip_id": handle.partition(":")[0]}

    def handle_of(self, thing: Wire) -> str:
        return f"{thing['floatingip_id']}:{thing['id']}"

    def list(self, **filters: Any) -> Iterator[Wire]:
        for floating in self.api.list(self.path, "floatingips", **filters):
            if floating.get("port_forwardings"):
                for forwarding in self.api.list(self.path_of(floating["id"]), self.keys):
                    yield {**forwarding, "floatingip_id": floating["id"]}

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        return super().candidates({handle.partition(":")[0] for handle in handles})

    def resolve(self, name: str) -> str | None:
        return name

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        return {name: value for name, value in super().body_of(spec).items() if name != "floatingip_id"}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        floating = self.reference("floating_ip", spec.get("floatingip_id"))
        body = {self.key: self.token.write(self.body_of(spec), token)}
        forwarding = self._thing(self.api.request("POST", self.path_of(floating), body, of=token))
        return {**forwarding, "floatingip_id": floating}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        return {**super().update(handle, spec, changed), "floatingip_id": handle.partition(":")[0]}
