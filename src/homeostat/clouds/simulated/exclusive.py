"""Exclusive use of simulated objects: a second user is refused, as by real services."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from homeostat.clouds.simulated.objects import FIELDS, Fields, on_network
from homeostat.model.errors import HomeostatError, Terminal, Transient

Key = tuple[str, str]


class Exclusive:
    """The exclusively used objects of a project."""

    def __init__(self, things: Mapping[Key, Any], names: Mapping[Key, str], exists: Callable[[Key], bool]) -> None:
        """Take the state of the cloud.

        Args:
            things: All objects of the project.
            names: Handles of networks and ports by their names.
            exists: Whether an object exists.
        """
        self._things = things
        self._names = names
        self._exists = exists

    def on_networks(self, server: Fields) -> list[Fields]:
        """Return the entries of a server's networks, completed from their ports and networks."""
        entries = []
        for entry in server.get("networks") or ():
            port = self._named("port", entry.get("port"))
            network = (port or {}).get("network_id") or entry.get("network")
            entries.append(on_network(entry, port, self._named("network", network)))
        return entries

    def change(self, kind: str, properties: Fields, wanted: Fields) -> HomeostatError | None:
        """Change an object; return the reason for an incomplete change. A server gets only interfaces that are free."""
        handle, before = str(properties["id"]), properties.get("networks")
        refused = self.refusal(kind, wanted, handle)
        if kind != "server":
            properties.update({} if refused is not None else wanted)
            return refused
        properties.update(wanted)
        if properties.get("networks") != before:
            entries = properties.get("networks") or ()
            free = [entry for entry in entries if not any(self._interfaces([entry], handle))]
            properties["networks"] = free or [{"allocate_network": "none"}]
            placed = {**properties, "networks": self.on_networks(properties)}
            fields = FIELDS["server"](placed, int(handle.rpartition("-")[2]))
            properties |= {name: fields[name] for name in ("address", "addresses", "ports")}
        return refused

    def _named(self, kind: str, name: Any) -> Fields | None:
        """Return the properties of a network or port by its id or name; None if absent."""
        thing = self._things.get((kind, str(name))) or self._things.get((kind, self._names.get((kind, str(name)), "")))
        return thing.properties if thing is not None else None

    def refusal(self, kind: str, spec: Fields, handle: str = "") -> HomeostatError | None:
        """Return the reason to refuse an object, if its resources are in use by another object; None if they are free.

        Args:
            spec: The desired object.
            handle: Handle of the object; "" for a new one.
        """
        if kind == "server":
            return next(self._interfaces(spec.get("networks") or (), handle), None) or self._volumes(spec, handle)
        if kind == "port":
            network = spec.get("network_id") or spec.get("network")
            fixed_ips = spec.get("fixed_ips") or ()
            refusals = (self._address(network, fixed.get("ip_address"), handle) for fixed in fixed_ips)
            return next((refused for refused in refusals if refused is not None), None)
        if kind == "volume_attachment":
            return self._volume(spec.get("volume_id"), handle)
        if kind == "router_interface" and self._has("router_interface", "subnet_id", spec.get("subnet_id"), handle):
            return Terminal(f"the address of the gateway of subnet {spec['subnet_id']} is already allocated")
        return self._floating(spec, handle) if kind == "floating_ip" else None

    def _others(self, kind: str, handle: str) -> Iterator[tuple[str, Fields]]:
        for key, thing in list(self._things.items()):
            if key[0] == kind and key[1] != handle and self._exists(key):
                yield key[1], thing.properties

    def _has(self, kind: str, field: str, value: Any, handle: str) -> bool:
        return bool(value) and any(other.get(field) == value for _, other in self._others(kind, handle))

    def _id(self, kind: str, name: Any) -> Any:
        properties = self._named(kind, name)
        return properties["id"] if properties is not None else name

    def _interfaces(self, entries: Sequence[Fields], handle: str) -> Iterator[HomeostatError]:
        for entry in entries:
            port = entry.get("port")
            if port and any(self._id("port", port) in held for held in self._ports(handle)):
                yield Transient(f"Port {port} is still in use.")
            elif not port and entry.get("fixed_ip"):
                refused = self._address(entry.get("network"), entry["fixed_ip"], handle)
                if refused is not None:
                    yield refused

    def _ports(self, handle: str) -> Iterator[list[Any]]:
        """Yield the ports of each other server."""
        for _, server in self._others("server", handle):
            entries = server.get("networks") or ()
            yield [self._id("port", entry["port"]) for entry in entries if entry.get("port")]

    def _address(self, network: Any, address: Any, handle: str) -> HomeostatError | None:
        network = self._id("network", network)
        if not address or not network:
            return None
        places = [
            (port.get("network_id"), fixed.get("ip_address"))
            for _, port in self._others("port", handle)
            for fixed in port.get("fixed_ips") or ()
        ]
        places += [
            (entry.get("network"), entry.get("fixed_ip"))
            for _, server in self._others("server", handle)
            for entry in server.get("networks") or ()
            if not entry.get("port")
        ]
        places += [place for _, server in self._others("server", handle) for place in _given(server)]
        if any(used == address and self._id("network", of) == network for of, used in places):
            return Terminal(f"Fixed IP address {address} is already in use")
        return None

    def _volumes(self, spec: Fields, handle: str) -> HomeostatError | None:
        for device in spec.get("block_device_mapping") or ():
            refused = self._volume(device.get("volume_id"), handle)
            if refused is not None:
                return refused
        return None

    def _volume(self, volume: Any, handle: str) -> HomeostatError | None:
        booted = (
            device.get("volume_id") == volume
            for _, server in self._others("server", handle)
            for device in server.get("block_device_mapping") or ()
        )
        if volume and (any(booted) or self._has("volume_attachment", "volume_id", volume, handle)):
            return Transient(f"Invalid volume: volume {volume} is in use")
        return None

    def _floating(self, spec: Fields, handle: str) -> HomeostatError | None:
        if self._has("floating_ip", "floating_ip_address", spec.get("floating_ip_address"), handle):
            return Terminal(f"IP address {spec['floating_ip_address']} already allocated")
        if self._has("floating_ip", "port_id", spec.get("port_id"), handle):
            return Transient(f"port {spec['port_id']} has a floating IP")
        return None


def _given(server: Fields) -> Iterator[tuple[Any, Any]]:
    """Yield network and address of the ports created for a server; named ports are listed as ports."""
    entries = [entry for entry in server.get("networks") or () if not entry.get("port")]
    for name in {entry.get("network_name") or entry.get("network") for entry in entries}:
        for address in (server.get("addresses") or {}).get(str(name)) or ():
            yield name, address["addr"]
