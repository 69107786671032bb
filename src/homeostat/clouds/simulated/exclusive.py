"""What one simulated thing at a time can hold: it is refused to a second one, as real services do."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from homeostat.clouds.simulated.objects import FIELDS, Fields, on_network
from homeostat.model.errors import HomeostatError, Terminal, Transient

Key = tuple[str, str]


class Exclusive:
    """What the things of one project hold."""

    def __init__(self, things: Mapping[Key, Any], names: Mapping[Key, str], exists: Callable[[Key], bool]) -> None:
        """Take what there is.

        Args:
            things: All things of the project.
            names: Handles of networks and ports by their names.
            exists: Whether a thing is there.
        """
        self._things = things
        self._names = names
        self._exists = exists

    def on_networks(self, server: Fields) -> list[Fields]:
        """Return the entries of a server's networks with what is known of their ports and networks."""
        found = []
        for each in server.get("networks") or ():
            port = self._named("port", each.get("port"))
            network = (port or {}).get("network_id") or each.get("network")
            found.append(on_network(each, port, self._named("network", network)))
        return found

    def change(self, kind: str, properties: Fields, wanted: Fields) -> HomeostatError | None:
        """Change a thing; return why it is not as wanted then. A server gets those interfaces that no other one has."""
        handle, before = str(properties["id"]), properties.get("networks")
        refused = self.refusal(kind, wanted, handle)
        if kind != "server":
            properties.update({} if refused is not None else wanted)
            return refused
        properties.update(wanted)
        if properties.get("networks") != before:
            free = [each for each in properties.get("networks") or () if not any(self._interfaces([each], handle))]
            properties["networks"] = free or [{"allocate_network": "none"}]
            placed = {**properties, "networks": self.on_networks(properties)}
            fields = FIELDS["server"](placed, int(handle.rpartition("-")[2]))
            properties |= {name: fields[name] for name in ("address", "addresses", "ports")}
        return refused

    def _named(self, kind: str, name: Any) -> Fields | None:
        """Return the properties of a network or port by its id or its name; None where it is not there."""
        thing = self._things.get((kind, str(name))) or self._things.get((kind, self._names.get((kind, str(name)), "")))
        return thing.properties if thing is not None else None

    def refusal(self, kind: str, spec: Fields, handle: str = "") -> HomeostatError | None:
        """Return why a thing cannot be as it is wanted, since another one holds what it needs; None where it can.

        Args:
            kind: Its kind.
            spec: What is wanted.
            handle: Its handle; "" for one that is to be made.
        """
        if kind == "server":
            return next(self._interfaces(spec.get("networks") or (), handle), None) or self._volumes(spec, handle)
        if kind == "port":
            network = spec.get("network_id") or spec.get("network")
            found = (self._address(network, each.get("ip_address"), handle) for each in spec.get("fixed_ips") or ())
            return next((each for each in found if each is not None), None)
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
        return bool(value) and any(each.get(field) == value for _, each in self._others(kind, handle))

    def _id(self, kind: str, name: Any) -> Any:
        found = self._named(kind, name)
        return found["id"] if found is not None else name

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
            yield [self._id("port", each["port"]) for each in server.get("networks") or () if each.get("port")]

    def _address(self, network: Any, address: Any, handle: str) -> HomeostatError | None:
        network = self._id("network", network)
        if not address or not network:
            return None
        places = [
            (port.get("network_id"), each.get("ip_address"))
            for _, port in self._others("port", handle)
            for each in port.get("fixed_ips") or ()
        ]
        places += [
            (each.get("network"), each.get("fixed_ip"))
            for _, server in self._others("server", handle)
            for each in server.get("networks") or ()
            if not each.get("port")
        ]
        places += [place for _, server in self._others("server", handle) for place in _given(server)]
        if any(each == address and self._id("network", of) == network for of, each in places):
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
    """Yield network and address of the ports that a server has by itself; those of named ports are theirs."""
    entries = [each for each in server.get("networks") or () if not each.get("port")]
    for name in {each.get("network_name") or each.get("network") for each in entries}:
        for each in (server.get("addresses") or {}).get(str(name)) or ():
            yield name, each["addr"]
