"""Networking: routers, their interfaces, gateways and routes."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import FEW
from homeostat.clouds.openstack.network import Aspect, NetworkCollection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import PREFIX, InTags
from homeostat.model.errors import HomeostatError, Terminal, Uncertain

INTERFACES = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)
"""Values of device_owner for ports that are interfaces of routers."""


class Routers(NetworkCollection):
    kind = "router"
    path, key, keys = "/routers", "router", "routers"
    cleared = {"tags": (), "l3_agent_ids": (), "external_gateway_info": {}}
    separate = ("tags", "l3_agent_ids")
    agents = ("l3_agent_ids", "l3-agents", "l3-routers", "router_id")

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        gateway = body.get("external_gateway_info")
        if gateway:
            gateway = {**gateway, "network_id": self.reference("network", gateway.get("network_id"))}
            fixed = [self.placed(entry) for entry in gateway.get("external_fixed_ips") or ()]
            body["external_gateway_info"] = {**gateway, "external_fixed_ips": fixed} if fixed else gateway
        return body


class RouterInterfaces(NetworkCollection):
    """Interfaces of routers.

    For a subnet, this service creates a port with the gateway's address, which carries the token; its id is the handle.
    A port of the user is attached to the router, with the token as a tag. Other services know interfaces by handles
    such as `<router>:subnet_id=<id>` and `<router>:port_id=<id>`.
    """

    kind = "router_interface"
    path, key, keys = "/ports", "port", "ports"
    separate = ()
    _tag = InTags()

    # -- looking -----------------------------------------------------------------------------------------------------

    def get(self, handle: str) -> Wire:
        router, end, id = _parsed(handle)
        if end == "subnet_id":
            port = self._on_subnet(router, id)
            if port is None:
                raise Missing(f"router {router} has no interface on subnet {id}")
            return {**port, "handle": handle}
        port = self._thing(self.api.get(self.path_of(id)))
        if not _is_shown(port, router):
            raise Missing(f"port {id} is not an interface of router {router}")
        return {**port, "handle": handle}

    def _on_subnet(self, router: str, subnet: str) -> Wire | None:
        ports = self.list(device_id=router, fixed_ips=f"subnet_id={subnet}")
        return next((port for port in ports if port["device_owner"] in INTERFACES), None)

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        parsed = {handle: _parsed(handle) for handle in handles}
        if len(parsed) <= FEW:
            return self._read(set(parsed))
        ports = {id for _, end, id in parsed.values() if end == "port_id"}
        routers = {router for router, end, _ in parsed.values() if end == "subnet_id"}
        by_id = {port["id"]: port for port in self.candidates(ports)} if ports else {}
        by_subnet = {
            (port["device_id"], fixed["subnet_id"]): port
            for port in (self.list(device_owner=list(INTERFACES)) if routers else ())
            for fixed in port["fixed_ips"]
        }
        interfaces = {}
        for handle, (router, end, id) in parsed.items():
            port = by_subnet.get((router, id)) if end == "subnet_id" else by_id.get(id)
            if port is not None and _is_shown(port, router):
                interfaces[handle] = {**port, "handle": handle}
        return interfaces | self._read(parsed.keys() - interfaces.keys())

    def find(self, tokens: Sequence[str]) -> dict[str, Wire]:
        wanted, interfaces = set(tokens), dict[str, Wire]()
        # The description of a port created here is the token alone, so the list can be filtered by it.
        for port in self.list(description=[self.token.write({}, token)["description"] for token in sorted(wanted)]):
            interfaces[self.token.read(port)] = port
        for query in self._tag.filters(sorted(wanted - interfaces.keys())):
            for port in self.list(**query):
                if port["device_owner"] in INTERFACES:
                    interfaces[self._tag.read(port)] = {**port, "handle": f"{port['device_id']}:port_id={port['id']}"}
        return {token: port for token, port in interfaces.items() if token in wanted}

    def handle_of(self, thing: Wire) -> str:
        return str(thing.get("handle") or thing["id"])

    def object_of(self, thing: Wire) -> Wire:
        _, end, id = _parsed(self.handle_of(thing))
        fields = {
            "id": self.handle_of(thing),
            "router_id": thing["device_id"],
            "port_id": thing["id"],
            "subnet_id": id if end == "subnet_id" else next((fixed["subnet_id"] for fixed in thing["fixed_ips"]), None),
            "fixed_ips": thing["fixed_ips"],
            "status": thing["status"].lower(),
        }
        if thing["device_id"]:
            return fields
        return {**fields, "status": "error", "fault": "its port was made, but has not joined the router"}

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        router = self.reference("router", spec.get("router_id"))
        if spec.get("port_id"):
            return self._with_port(token, router, self.reference("port", spec["port_id"]))
        if not spec.get("subnet_id"):
            raise Terminal("a router interface needs a subnet or a port: set subnet or port")
        subnet = self.cloud.collections["subnet"].get(self.reference("subnet", spec["subnet_id"]))
        if not subnet["gateway_ip"]:
            raise Terminal(f"subnet {subnet['id']} has no gateway, whose address a router would take: set gateway_ip")
        return self._with_own_port(token, router, subnet)

    def _with_port(self, token: str, router: str, port: str) -> Wire:
        """Attach a port of the user to the router."""
        with suppress(Terminal):
            # A user without the right to tag the port may still attach it.
            self.api.request("PUT", f"{self.path_of(port)}/tags/{PREFIX}{token}", of=token)
        handle = f"{router}:port_id={port}"
        try:
            self._join(token, router, port_id=port)
        except HomeostatError as error:
            if isinstance(error, Uncertain):
                raise
            try:
                return self.get(handle)
            except Missing:
                raise error from None
        return self.get(handle)

    def _with_own_port(self, token: str, router: str, subnet: Wire) -> Wire:
        """Create a port with the gateway's address, and attach it to the router."""
        fixed = {"subnet_id": subnet["id"], "ip_address": subnet["gateway_ip"]}
        # Without this owner, Neutron would add automatic addresses on the network's IPv6 subnets to the port.
        body = {"network_id": subnet["network_id"], "fixed_ips": [fixed], "device_owner": INTERFACES[0]}
        body["security_groups"] = []
        try:
            port = self._thing(self.api.request("POST", self.path, {"port": self.token.write(body, token)}, of=token))
        except HomeostatError as error:
            if isinstance(error, Uncertain):
                raise
            return self._in_place_of(error, token, router, subnet["id"])
        try:
            self._join(token, router, port_id=port["id"])
        except HomeostatError as error:
            if isinstance(error, Uncertain):
                raise
            try:
                self.api.request("DELETE", self.path_of(port["id"]), of=token)
            except HomeostatError:
                raise Uncertain(f"port {port['id']} was made, but has not joined the router: {error}") from error
            # A router may have only one port on all IPv6 subnets of a network: let Neutron extend the existing port.
            if isinstance(error, Terminal) and "both contain IPv6 subnets" in str(error):
                return self._by_subnet(token, router, subnet["id"])
            raise
        return self.get(port["id"])

    def _in_place_of(self, error: HomeostatError, token: str, router: str, subnet: str) -> Wire:
        """Return the interface if it exists, or let Neutron choose the address if policy forbids the choice."""
        port = self._on_subnet(router, subnet)
        if port is not None and not self.token.read(port):
            return {**port, "handle": f"{router}:subnet_id={subnet}"}
        if isinstance(error, Terminal) and "policy" in str(error):
            return self._by_subnet(token, router, subnet)
        raise error

    def _by_subnet(self, token: str, router: str, subnet: str) -> Wire:
        """Let Neutron choose the port and its address: all IPv6 subnets of a network share a port."""
        try:
            self._join(token, router, subnet_id=subnet)
        except Terminal:
            if self._on_subnet(router, subnet) is None:
                raise
        handle = f"{router}:subnet_id={subnet}"
        port = self.get(handle)
        # A port shared by several subnets belongs to several interfaces, so it carries no token.
        if len(port["fixed_ips"]) > 1 or port.get("description"):
            return port
        try:
            marked = self.api.request("PUT", self.path_of(port["id"]), {"port": self.token.write({}, token)}, of=token)
        except HomeostatError as error:
            raise Uncertain(f"router interface {handle} was made, but does not carry its token: {error}") from error
        return self._thing(marked)

    def _join(self, token: str, router: str, **what: str) -> None:
        self.api.request("PUT", f"/routers/{router}/add_router_interface", what, of=token)

    def delete(self, handle: str) -> Wire | None:
        """Delete an interface; Neutron deletes its port."""
        port = self.get(handle)
        if not port["device_id"]:
            # The creation was interrupted before the port joined the router.
            self.api.request("DELETE", self.path_of(port["id"]), of=handle)
            return None
        _, end, id = _parsed(handle)
        path = f"/routers/{port['device_id']}/remove_router_interface"
        self.api.request("PUT", path, {end: id}, of=handle)
        return None


def _parsed(handle: str) -> tuple[str, str, str]:
    """Return the router, the type of id (port_id or subnet_id), and the id.

    The handle of a port created here has no router: the router is then "".
    """
    router, _, rest = handle.partition(":")
    if not rest:
        return "", "port_id", handle
    end, _, id = rest.rpartition("=")
    # Handles of early versions were `<router>:<subnet>`.
    return router, end or "subnet_id", id


def _is_shown(port: Wire, router: str) -> bool:
    """Return whether a port is an interface of the router; our own ports (`router` is "") need not be attached."""
    if not router:
        return True
    return port["device_id"] == router and port["device_owner"] in INTERFACES


class RouterGateways(Aspect):
    """Gateways of routers; the handle is `<router>:<network>`."""

    kind = "router_gateway"
    path, key, keys = "/routers", "router", "routers"

    def view(self, of: Wire, rest: str) -> Wire | None:
        gateway = of.get("external_gateway_info") or {}
        if not gateway or rest not in ("", gateway["network_id"]):
            return None
        return {"router_id": of["id"], "network_id": gateway["network_id"], "status": of["status"]}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        router = self.reference("router", spec.get("router_id"))
        network = self.reference("network", spec.get("network_id")) or external(self)
        handle = f"{router}:{network}"
        try:
            return self.get(handle)
        except Missing:
            self._set(router, {"network_id": network}, token)
        return self.get(handle)

    def delete(self, handle: str) -> Wire | None:
        self._set(self.get(handle)["router_id"], {}, handle)
        return None

    def _set(self, router: str, gateway: Wire, of: str) -> None:
        self.api.request("PUT", self.path_of(router), {"router": {"external_gateway_info": gateway}}, of=of)


def external(collection: NetworkCollection) -> str:
    """Return the id of the external network: the default one, or the oldest.

    Raises:
        Terminal: The project may use none.
    """
    networks = list(collection.api.list("/networks", "networks", **{"router:external": True}))
    networks.sort(key=lambda network: (not network.get("is_default"), network.get("created_at") or ""))
    if not networks:
        raise Terminal("there is no external network that this project may use: name one")
    return str(networks[0]["id"])


class ExtraRouteSets(Aspect):
    """Routes of a router as separate objects; the handle `<router>:<destination>=<next hop>,…` lists the routes."""

    kind = "extra_route_set"
    extension = "extraroute-atomic"
    path, key, keys = "/routers", "router", "routers"

    def view(self, of: Wire, rest: str) -> Wire | None:
        own, present = _routes(rest), of.get("routes") or []
        if own and not any(route in present for route in own):
            return None
        return {"router_id": of["id"], "routes": present, "status": of["status"]}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        router = self.reference("router", spec.get("router_id"))
        return self._put(router, "add", spec.get("routes") or [], token)

    def _put(self, router: str, verb: str, routes: Sequence[Mapping[str, Any]], of: str) -> Wire:
        plain = [{"destination": str(route["destination"]), "nexthop": str(route["nexthop"])} for route in routes]
        path = f"{self.path_of(router)}/{verb}_extraroutes"
        thing = self._thing(self.api.request("PUT", path, {"router": {"routes": plain}}, of=of))
        own = ",".join(f"{route['destination']}={route['nexthop']}" for route in plain)
        return {**(self.view(thing, "") or {}), "id": f"{thing['id']}:{own}"}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Change the routes, which changes the handle."""
        self.get(handle)
        router, _, rest = handle.partition(":")
        wanted = spec.get("routes") or []
        surplus = [route for route in _routes(rest) if route not in [{**entry} for entry in wanted]]
        if surplus:
            self._put(router, "remove", surplus, handle)
        return self._put(router, "add", wanted, handle)

    def delete(self, handle: str) -> Wire | None:
        self.get(handle)
        router, _, rest = handle.partition(":")
        self._put(router, "remove", _routes(rest), handle)
        return None


def _routes(rest: str) -> list[Wire]:
    pairs = (route.partition("=") for route in rest.split(",") if route)
    return [{"destination": destination, "nexthop": nexthop} for destination, _, nexthop in pairs]
