"""Networking: floating IPs, their associations with ports, and the forwarding of single port numbers."""

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
"""Fields that say together where a floating IP leads to."""


def target(collection: NetworkCollection, spec: Mapping[str, Any]) -> Wire:
    """Return port and address that a specification names, by a port or by a server with its first port.

    Raises:
        Terminal: The server has no port with an IPv4 address.
    """
    port = collection.named("port", spec.get("port_id"))
    if spec.get("server") and not port:
        server = collection.named("server", spec["server"])
        there = sorted(collection.api.list("/ports", "ports", device_id=server), key=lambda each: each["id"])
        port = next((each["id"] for each in there if any("." in one["ip_address"] for one in each["fixed_ips"])), None)
        if port is None:
            raise Terminal(f"server {server} has no address that a floating one could lead to")
    fixed = {"fixed_ip_address": spec["fixed_ip_address"]} if spec.get("fixed_ip_address") and port else {}
    return {"port_id": port or None, **fixed}


def announce(collection: NetworkCollection, before: Wire, port: str | None) -> None:
    """Announce the servers that are about to have other addresses.

    Args:
        collection: Floating IPs, or their associations.
        before: The floating IP; empty where it is yet to be made.
        port: The port that it shall lead to; None for none.

    Raises:
        Transient: They cannot be announced now.
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
    references = {"floating_network_id": "network", "subnet_id": "subnet"}
    cleared = {"tags": (), "dns_name": "", "dns_domain": "", **dict.fromkeys(TARGET)}

    def object_of(self, thing: Wire) -> Wire:
        """Return it; a cloud without DNS behind its networking shows no names, whatever was given."""
        found = super().object_of(thing)
        return {**found, **{name: found.get(name) or None for name in ("dns_name", "dns_domain")}}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of({name: value for name, value in spec.items() if name not in TARGET})
        return {**body, **target(self, spec)} if any(name in spec for name in TARGET) else body

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        """Make a floating IP; without a network it lies on the external one."""
        network = spec.get("floating_network_id") or external(self)
        leads = {name: value for name, value in target(self, spec).items() if value}
        announce(self, {}, leads.get("port_id"))
        return super().create(token, {**spec, **leads, "floating_network_id": network})

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        if not any(name in changed for name in TARGET):
            return super().update(handle, spec, changed)
        leads = target(self, spec)
        announce(self, self.get(handle), leads["port_id"])
        # An address alone would not say whose it is.
        return super().update(handle, {**spec, **leads}, [*{*changed, *TARGET}])

    def delete(self, handle: str) -> Wire | None:
        announce(self, self.get(handle), None)
        return super().delete(handle)


class FloatingIpAssociations(Aspect):
    """What floating IPs lead to, apart from them; the handle is `<floating IP>:<port>`."""

    kind = "floating_ip_association"
    path, key, keys = "/floatingips", "floatingip", "floatingips"

    def view(self, of: Wire, rest: str) -> Wire | None:
        """Return the association: also where the floating IP leads to another port now, which is a difference."""
        if not of["port_id"]:
            return None
        shown = {name: of.get(name) for name in ("port_id", "fixed_ip_address", "floating_ip_address", "router_id")}
        return {**shown, "floatingip_id": of["id"], "status": of["status"]}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        floating = self.named("floating_ip", spec.get("floatingip_id"))
        leads = target(self, spec)
        if not leads["port_id"]:
            raise Terminal("an association needs a port or a server: set port_id or server")
        announce(self, self._thing(self.api.get(self.path_of(floating))), leads["port_id"])
        of = self._put(floating, leads, token)
        return {**(self.view(of, "") or {}), "id": f"{floating}:{leads['port_id']}"}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Lead elsewhere, or another floating IP to there; the handle changes with them."""
        self.get(handle)
        before, _, _ = handle.partition(":")
        if self.named("floating_ip", spec.get("floatingip_id")) != before:
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
    further_looks = "one for each floating IP that has some"
    references = {"internal_port_id": "port"}
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
                for each in self.api.list(self.path_of(floating["id"]), self.keys):
                    yield {**each, "floatingip_id": floating["id"]}

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        return super().candidates({each.partition(":")[0] for each in handles})

    def resolve(self, name: str) -> str | None:
        return name

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        return {name: value for name, value in super().body_of(spec).items() if name != "floatingip_id"}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        floating = self.named("floating_ip", spec.get("floatingip_id"))
        body = {self.key: self.token.write(self.body_of(spec), token)}
        made = self._thing(self.api.request("POST", self.path_of(floating), body, of=token))
        return {**made, "floatingip_id": floating}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        return {**super().update(handle, spec, changed), "floatingip_id": handle.partition(":")[0]}
