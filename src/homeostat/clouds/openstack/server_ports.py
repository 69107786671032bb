"""Ports of servers: created by Nova, or by this service for entries of `networks` that Nova does not support.

Nova creates the port of an entry with a network, and perhaps an address. For an entry with a subnet, port properties or
a floating IP, this service creates the port before the server, with the same name as Heat.

Nova does not delete such a port with its server, so the port must be found again in every case:

* From its creation on, the port carries the token of the server's creation alone in its description. If the server is
  refused, the port is deleted at once. If that fails, or this process dies, `find` deletes the port: nothing was
  created that counts as an attempt. If a server has used the port, `find` returns a broken server for the token, whose
  deletion deletes the port.
* The port is tagged with the server's id before the engine knows this id. A deletion may have only the tag to go by,
  since Nova forgets the token with the server. If the server is deleted outside, `observe` returns a broken server for
  a port with its tag, which is then replaced: the port may hold the address that the replacement needs.
* When a server is adopted, its ports of other services get the tag. An adopted server has no token; ports created for
  it later carry its id instead.
* Neutron refuses to delete a port as long as its server exists. So the deletion of a server with such ports answers
  that it has to be repeated, until the server is gone and the ports are deleted.

A port that lacks its tag, since it was attached later and the request failed, is tagged when its server is seen with
new addresses.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Any

from cachetools import LRUCache

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import CloudOfCollections
from homeostat.clouds.openstack.recent_ids import RecentIds
from homeostat.clouds.openstack.service import Service, Wire
from homeostat.clouds.openstack.tokens import InDescription
from homeostat.model.errors import HomeostatError, Rejected, Terminal, Transient, Uncertain
from homeostat.resources.comparison import equal

LOG = logging.getLogger(__name__)
TOKEN = InDescription()
TAG = "homeostat-server-"
PER_QUERY = 60
"""Values in one query, to limit the length of the URL: with tags, the longest values, 3.5 kB. Proxies accept 8 kB."""
KNOWN_MAX = 20_000
"""Servers whose ports one process remembers."""
OWN = ("subnet", "port_extra_properties", "floating_ip")
"""Fields of an entry that Nova does not support."""
DETACH_S = 1.0
"""Seconds between looks at a port that is being detached."""
AGAIN_S = 30.0
"""Seconds until a request that Nova has accepted is repeated: Nova answers before it starts, and may fail silently."""
WITHOUT_PORTS = ("BUILD", "ERROR", "DELETED", None)
"""Statuses in which a server may have no ports."""
COMPUTE = "compute:"
"""Prefix of the device_owner of ports that Nova has bound."""
SERVICE_FIELDS = ("value_specs", "qos_policy", "no_fixed_ips")


class ServerPorts:
    """The ports of a project's servers."""

    def __init__(self, cloud: CloudOfCollections, id_of: Callable[[str, Any], Any]) -> None:
        """Take the cloud, and a function that returns the id of an object by kind and name."""
        self._cloud = cloud
        self._id_of = id_of
        self._known: LRUCache[str, dict[str, Wire]] = LRUCache(KNOWN_MAX)
        self._detached = RecentIds(KNOWN_MAX, AGAIN_S)
        self._lock = threading.Lock()

    @property
    def api(self) -> Service:
        """Networking."""
        return self._cloud.service("network")

    # -- before the server -------------------------------------------------------------------------------------------

    def for_creation(self, token: str, spec: Mapping[str, Any]) -> Any:
        """Return the networks of a new server as Nova takes them; create the ports that Nova cannot."""
        entries = spec.get("networks") or [{"allocate_network": "auto"}]
        word = entries[0].get("allocate_network")
        if word:
            return word
        networks = []
        for number, entry in enumerate(entries):
            port = self._port_of(token, spec, number)
            tag = {"tag": entry["tag"]} if entry.get("tag") else {}
            place = {"uuid": self._id_of("network", entry.get("network"))} if port is None else {"port": port}
            address = {"fixed_ip": entry["fixed_ip"]} if port is None and entry.get("fixed_ip") else {}
            networks.append({**place, **address, **tag})
        return networks

    def _port_of(self, token: str, spec: Mapping[str, Any], number: int, handle: str = "") -> str | None:
        """Return the id of an entry's port; None if Nova is to create it."""
        entry = spec["networks"][number]
        port = self._id_of("port", entry["port"]) if entry.get("port") else None
        if port is None and is_own(entry):
            port = str(self._make(token, spec, number)["id"])
            if handle:
                self._mark(port, handle)
        if entry.get("floating_ip"):
            self._lead(entry, port, token)
        return port

    def _make(self, token: str, spec: Mapping[str, Any], number: int) -> Wire:
        entry = spec["networks"][number]
        subnet = self._id_of("subnet", entry.get("subnet"))
        network = self._id_of("network", entry.get("network"))
        if not network:
            network = self.api.get(f"/subnets/{subnet}")["subnet"]["network_id"]
        fixed = {"subnet_id": subnet, "ip_address": entry.get("fixed_ip")}
        groups = [self._id_of("security_group", name) for name in spec.get("security_groups") or ()]
        body: Wire = {"name": f"{spec.get('name')}-port-{number}", "network_id": network}
        body |= {"fixed_ips": [{name: value for name, value in fixed.items() if value}]} if any(fixed.values()) else {}
        body |= {"security_groups": groups} if groups else {}
        body = TOKEN.write({**body, **self._extra(entry)}, token)
        port: Wire = self.api.request("POST", "/ports", {"port": body}, of=token)["port"]
        return port

    def _extra(self, entry: Mapping[str, Any]) -> Wire:
        """Return the fields of the port that an entry specifies."""
        extra = entry.get("port_extra_properties") or {}
        fields = {name: value for name, value in extra.items() if name not in SERVICE_FIELDS and value is not None}
        fields |= {"fixed_ips": []} if extra.get("no_fixed_ips") else {}
        fields |= {"qos_policy_id": self._id_of("qos_policy", extra["qos_policy"])} if extra.get("qos_policy") else {}
        return {**fields, **(extra.get("value_specs") or {})}

    def _lead(self, entry: Mapping[str, Any], port: str | None, of: str) -> None:
        """Associate the floating IP of an entry with a port."""
        floating = self._id_of("floating_ip", entry["floating_ip"])
        self.api.request("PUT", f"/floatingips/{floating}", {"floatingip": {"port_id": port}}, of=of)

    # -- while the server exists -------------------------------------------------------------------------------------

    def mark(self, ports: Iterable[Wire], handle: str) -> None:
        """Tag the ports of a server with its id.

        Raises:
            Transient: A port may have no tag yet.
        """
        for port in ports:
            if TAG + handle in port.get("tags", ()):
                continue
            try:
                with contextlib.suppress(Missing):
                    self._tag(port["id"], handle)
            except (Terminal, Rejected) as error:
                LOG.warning("port %s of server %s has no tag: %s", port["id"], handle, error)
            except HomeostatError as error:
                raise Transient(f"port {port['id']} of server {handle} has no tag yet: {error}") from error

    def take_over(self, handle: str, ports: Collection[str]) -> None:
        """Tag the given ports of a server, so that they are deleted with it."""
        for port in self._list("device_id", [handle]):
            if port["id"] in ports and TAG + handle not in port["tags"]:
                self._tag(port["id"], handle)

    def _tag(self, port: str, handle: str) -> None:
        self.api.request("PUT", f"/ports/{port}/tags/{TAG}{handle}", of=handle)

    def _mark(self, port: str, handle: str) -> None:
        try:
            self._tag(port, handle)
        except HomeostatError as error:
            LOG.warning("port %s of server %s has no tag yet: %s", port, handle, error)

    def shown_on(self, things: Sequence[Wire], token_of: Callable[[Wire], str]) -> list[Wire]:
        """Add the ports of servers as `_ports`: MAC address -> port.

        Neutron is asked only about servers whose addresses differ from the last known ports, or which are new. Servers
        with unknown ports get no `_ports`.

        Raises:
            Transient: A server has addresses, and Neutron does not answer whose they are.
        """
        tokens = {str(thing["id"]): token_of(thing) for thing in things}
        with self._lock:
            known = {handle: self._known[handle] for handle in tokens if handle in self._known}
        changed = [thing for thing in things if _shows_others(thing, known.get(str(thing["id"])))]
        seen: dict[str, dict[str, Wire]] = {str(thing["id"]): {} for thing in changed}
        try:
            listed = [*self._list("device_id", seen)]
        except Transient:
            # Servers without addresses may be shown without ports; else a missing address would look like drift.
            if any(map(_macs, changed)):
                raise
            listed, seen = [], {}
        for port in listed:
            handle = port["device_id"]
            fields = {name: port[name] for name in ("id", "name", "network_id")}
            seen[handle][port["mac_address"]] = {**fields, "has_address": bool(port["fixed_ips"])}
            token = TOKEN.read(port)
            if token and token == tokens[handle] and TAG + handle not in port.get("tags", ()):
                self._mark(port["id"], handle)
        with self._lock:
            self._known.update(seen)
        ports = {**known, **seen}
        return [
            {**thing, "_ports": ports[str(thing["id"])]} if str(thing["id"]) in ports else thing for thing in things
        ]

    def leading_to(self, ports: Iterable[str]) -> list[Wire]:
        """Return the floating IPs of these ports."""
        portions = _portions(sorted(ports))
        return [floating for ids in portions for floating in self.api.list("/floatingips", "floatingips", port_id=ids)]

    # -- without the server ------------------------------------------------------------------------------------------

    def of_tokens(self, tokens: Iterable[str]) -> dict[str, list[Wire]]:
        """Return token -> the ports created for the server with this token."""
        ports: dict[str, list[Wire]] = {}
        texts = [str(TOKEN.write({}, token)[TOKEN.field]) for token in tokens]
        for port in self._list("description", texts):
            ports.setdefault(TOKEN.read(port), []).append(port)
        return ports

    def of(self, handle: str, token: str) -> list[Wire]:
        """Return the ports created for a server; for an adopted server, `token` is its id."""
        ports = self.of_tokens([token]).get(token, [])
        if token == handle:
            known = {port["id"] for port in ports}
            ports = ports + [port for port in self.tagged([handle]).get(handle, ()) if port["id"] not in known]
        return ports

    def tagged(self, handles: Iterable[str]) -> dict[str, list[Wire]]:
        """Return handle -> the ports with the tag of this server."""
        ports: dict[str, list[Wire]] = {}
        names = [TAG + handle for handle in sorted(handles)]
        for portion in _portions(names):
            for port in self.api.list("/ports", "ports", **{"tags-any": ",".join(portion)}):
                handle = next(tag for tag in port["tags"] if tag in portion).removeprefix(TAG)
                ports.setdefault(handle, []).append(port)
        return ports

    def release(self, ports: Iterable[Wire], of: str) -> None:
        """Delete ports of a server that is gone or that they were detached from.

        Raises:
            Transient: A port may remain.
        """
        for port in ports:
            with contextlib.suppress(Missing):
                self._delete(f"/ports/{port['id']}", of)

    def _delete(self, path: str, of: str) -> None:
        try:
            self.api.request("DELETE", path, of=of)
        except Transient:
            # Neutron refuses to delete a port bound by Nova (rule:delete_port), and Nova may never unbind the port of a
            # server that was deleted during its creation: unbind the port here.
            if not self.api.get(path)["port"]["device_owner"].startswith(COMPUTE):
                raise
            self.api.request("PUT", path, {"port": {"device_id": "", "device_owner": ""}}, of=of)
            self.api.request("DELETE", path, of=of)

    def give_up(self, token: str, error: HomeostatError) -> None:
        """Delete the ports of a server that was not created because of `error`.

        Raises:
            Uncertain: Ports may remain.
        """
        try:
            self.release(self.of_tokens([token]).get(token, ()), token)
        except HomeostatError as other:
            raise Uncertain(f"{error}; and ports made for it may remain: {other}") from error

    def _list(self, field: str, values: Iterable[str]) -> Iterable[Wire]:
        for portion in _portions(list(values)):
            yield from self.api.list("/ports", "ports", **{field: portion})

    # -- changes -----------------------------------------------------------------------------------------------------

    def plug(self, compute: Service, handle: str, token: str, spec: Mapping[str, Any]) -> None:
        """Attach and detach interfaces until they match the networks of the specification; matching ports stay.

        Raises:
            Transient: The update has to be repeated, to delete a port that is being detached.
        """
        present = list(self._list("device_id", [handle]))
        own_ports = self.of(handle, token)
        own_ids, idle = {port["id"] for port in own_ports}, [port for port in own_ports if not port["device_id"]]
        path = f"/servers/{handle}/os-interface"
        with self._lock:
            self._known.pop(handle, None)
        entries: Sequence[Mapping[str, Any]] = spec.get("networks") or [{"allocate_network": "auto"}]
        word = entries[0].get("allocate_network")
        if word == "auto":
            if not present:
                compute.request("POST", path, {"interfaceAttachment": {}}, of=handle)
            return
        entries = () if word == "none" else entries
        kept = self._kept(entries, [*present, *idle], own_ids)
        kept_ids = {port["id"] for port in kept.values()}
        leaving = [port for port in present if port["id"] not in kept_ids]
        self._detach(compute, path, {port["id"] for port in leaving}, handle)
        self.release([port for port in idle if port["id"] not in kept_ids], handle)
        for number, entry in enumerate(entries):
            if number in kept:
                self._adjust(entry, kept[number], handle)
            if number not in kept or kept[number] in idle:
                own = kept[number]["id"] if number in kept else self._port_of(token, spec, number, handle)
                self._attach(compute, path, entry, own, handle)
        # A port can be deleted only after Nova has detached it, which takes a while: the next attempt releases it.
        if any(port["id"] in own_ids for port in leaving):
            raise Transient(f"server {handle}: an interface is being detached", DETACH_S)

    def _detach(self, compute: Service, path: str, ports: Set[str], handle: str) -> None:
        """Detach ports, except those whose detachment is already running."""
        paths = {f"{path}/{port}" for port in ports}
        for port_path in sorted(paths - self._detached.recent(paths)):
            with contextlib.suppress(Missing):
                compute.request("DELETE", port_path, of=handle)
            self._detached.note([port_path])

    def _attach(self, compute: Service, path: str, entry: Mapping[str, Any], port: str | None, handle: str) -> None:
        place = {"port_id": port} if port else {"net_id": self._id_of("network", entry["network"])}
        address = {"fixed_ips": [{"ip_address": entry["fixed_ip"]}]} if not port and entry.get("fixed_ip") else {}
        tag = {"tag": entry["tag"]} if entry.get("tag") else {}
        if port:
            self._detached.forget([f"{path}/{port}"])
        compute.request("POST", path, {"interfaceAttachment": {**place, **address, **tag}}, of=handle)

    def _kept(self, entries: Sequence[Mapping[str, Any]], ports: Sequence[Wire], own: Set[str]) -> dict[int, Wire]:
        """Return number of an entry -> the port that it keeps; the most specific entries choose first."""
        free, kept = list(ports), dict[int, Wire]()
        exact = ("port", "fixed_ip", "subnet")
        for number in sorted(range(len(entries)), key=lambda at: [not entries[at].get(name) for name in exact]):
            fitting = [port for port in free if self._fits(entries[number], port, own)]
            if fitting:
                kept[number] = fitting[0]
                free.remove(fitting[0])
        return kept

    def _fits(self, entry: Mapping[str, Any], port: Wire, own: Set[str]) -> bool:
        if entry.get("port"):
            return bool(self._id_of("port", entry["port"]) == port["id"])
        # Nova's ports have no name: a port with a name was specified as `port` of an entry.
        if port["id"] not in own and (port["name"] or entry.get("port_extra_properties")):
            return False
        places = port["fixed_ips"]
        network, subnet = self._id_of("network", entry.get("network")), self._id_of("subnet", entry.get("subnet"))
        return (
            (not network or network == port["network_id"])
            and (not subnet or any(place["subnet_id"] == subnet for place in places))
            and (not entry.get("fixed_ip") or any(place["ip_address"] == entry["fixed_ip"] for place in places))
        )

    def _adjust(self, entry: Mapping[str, Any], port: Wire, handle: str) -> None:
        """Update the properties and the floating IP of a kept port."""
        wanted = self._extra(entry) if entry.get("port_extra_properties") else {}
        changed = {name: value for name, value in wanted.items() if not equal(value, port.get(name))}
        if changed:
            self.api.request("PUT", f"/ports/{port['id']}", {"port": changed}, of=handle)
        if entry.get("floating_ip"):
            self._lead(entry, port["id"], handle)


def was_used(port: Wire) -> bool:
    """Return whether a server uses or used a port that was created for it."""
    return bool(port["device_id"]) or any(tag.startswith(TAG) for tag in port.get("tags", ()))


def is_own(entry: Mapping[str, Any]) -> bool:
    """Return whether this service makes the port of an entry."""
    return not entry.get("port") and any(entry.get(name) for name in OWN)


def _macs(server: Wire) -> set[str]:
    return {
        address["OS-EXT-IPS-MAC:mac_addr"]
        for group in (server.get("addresses") or {}).values()
        for address in group
        if "OS-EXT-IPS-MAC:mac_addr" in address
    }


def _shows_others(server: Wire, known: Mapping[str, Wire] | None) -> bool:
    """Return whether a server shows addresses other than its last known ports."""
    if known is None:
        return bool(_macs(server)) or server.get("status") not in WITHOUT_PORTS
    return _macs(server) != {mac for mac, port in known.items() if port["has_address"]}


def _portions(values: Sequence[str]) -> list[Sequence[str]]:
    return [values[start : start + PER_QUERY] for start in range(0, len(values), PER_QUERY)]
