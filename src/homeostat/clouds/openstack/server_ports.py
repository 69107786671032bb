"""Ports of servers: those that Nova makes, and those that this service makes for an entry that Nova cannot make.

Nova makes the port for an entry of `networks` with a network, and perhaps an address. For one with a subnet, properties
of the port or a floating IP, this service makes the port before the server, with the name that it has in Heat.

Nova does not delete such a port with its server, so it has to be found again in every case:

* It carries the token of the server's creation, alone in its description, from the first moment on. If the creation of
  the server is refused, it is deleted at once. If that fails, or this process dies, `find` deletes it: nothing was made
  that counts as an attempt. If a server has used it, `find` shows it under the token, as a broken server whose deletion
  deletes the port.
* The port has a tag with the id of the server before the service knows that id: a deletion may find it by this alone,
  since Nova forgets the token with the server. If the server is deleted outside, a look at its id shows a port with
  that tag as a broken server, which is deleted and made anew: the port may hold the address that is wanted again.
* The ports that another service has made for a server get that tag when the server is adopted. Such a server has no
  token; ports made for it later carry its id instead.
* A port cannot be deleted as long as its server is there. So the deletion of a server that has such ports is answered
  with the request to repeat it, until the server is gone and the ports are deleted.

A port that lacks its tag, since it was attached later and the request failed, gets it when its server is seen with new
addresses.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Any

from cachetools import LRUCache

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import CloudOfCollections
from homeostat.clouds.openstack.lately import RecentIds
from homeostat.clouds.openstack.service import Service, Wire
from homeostat.clouds.openstack.tokens import InDescription
from homeostat.model.errors import HomeostatError, Rejected, Terminal, Transient, Uncertain
from homeostat.resources.comparison import equal

LOG = logging.getLogger(__name__)
TOKEN = InDescription()
TAG = "homeostat-server-"
PER_QUERY = 60
"""Values in one query: its address must not become too long. With the longest, tags, it has 3.5 kB; proxies take 8."""
KNOWN_MAX = 20_000
"""Servers whose ports one process remembers."""
OWN = ("subnet", "port_extra_properties", "floating_ip")
"""Fields of an entry that Nova does not know."""
DETACH_S = 1.0
"""Seconds until a port that is being detached is looked at again."""
AGAIN_S = 30.0
"""Seconds until what Nova has accepted is requested again: it answers before it begins, and may fail silently."""
WITHOUT_PORTS = ("BUILD", "ERROR", "DELETED", None)
"""Statuses in which a server may have no ports yet, or none any more."""
COMPUTE = "compute:"
"""How the device_owner of a port begins that Nova has bound."""
SERVICE_FIELDS = ("value_specs", "qos_policy", "no_fixed_ips")


class ServerPorts:
    """The ports of a project's servers."""

    def __init__(self, cloud: CloudOfCollections, id_of: Callable[[str, Any], Any]) -> None:
        """Take the cloud, and a function that returns the id of a thing of a kind that is named."""
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
        """Return the networks of a new server as Nova takes them; make the ports that it cannot make."""
        entries = spec.get("networks") or [{"allocate_network": "auto"}]
        word = entries[0].get("allocate_network")
        if word:
            return word
        found = []
        for number, entry in enumerate(entries):
            port = self._port_of(token, spec, number)
            tag = {"tag": entry["tag"]} if entry.get("tag") else {}
            place = {"uuid": self._id_of("network", entry.get("network"))} if port is None else {"port": port}
            address = {"fixed_ip": entry["fixed_ip"]} if port is None and entry.get("fixed_ip") else {}
            found.append({**place, **address, **tag})
        return found

    def _port_of(self, token: str, spec: Mapping[str, Any], number: int, handle: str = "") -> str | None:
        """Return the id of the port of an entry; None if Nova shall make it."""
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
        groups = [self._id_of("security_group", each) for each in spec.get("security_groups") or ()]
        body: Wire = {"name": f"{spec.get('name')}-port-{number}", "network_id": network}
        body |= {"fixed_ips": [{name: value for name, value in fixed.items() if value}]} if any(fixed.values()) else {}
        body |= {"security_groups": groups} if groups else {}
        body = TOKEN.write({**body, **self._extra(entry)}, token)
        made: Wire = self.api.request("POST", "/ports", {"port": body}, of=token)["port"]
        return made

    def _extra(self, entry: Mapping[str, Any]) -> Wire:
        """Return the fields of the port that an entry gives."""
        extra = entry.get("port_extra_properties") or {}
        found = {name: value for name, value in extra.items() if name not in SERVICE_FIELDS and value is not None}
        found |= {"fixed_ips": []} if extra.get("no_fixed_ips") else {}
        found |= {"qos_policy_id": self._id_of("qos_policy", extra["qos_policy"])} if extra.get("qos_policy") else {}
        return {**found, **(extra.get("value_specs") or {})}

    def _lead(self, entry: Mapping[str, Any], port: str | None, of: str) -> None:
        """Have a floating IP lead to a port."""
        floating = self._id_of("floating_ip", entry["floating_ip"])
        self.api.request("PUT", f"/floatingips/{floating}", {"floatingip": {"port_id": port}}, of=of)

    # -- beside the server -------------------------------------------------------------------------------------------

    def mark(self, ports: Iterable[Wire], handle: str) -> None:
        """Tag the ports made for a server with its id.

        Raises:
            Transient: One of them may have no tag yet.
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
        """Tag those of these ports that a server has: they go with it from now on."""
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
        """Return servers with their ports as `_ports`: MAC address -> port.

        They are asked for where a server shows others than before, or none at first. One whose ports are not known has
        no `_ports`.

        Raises:
            Transient: A server has addresses, and Networking does not say whose they are.
        """
        tokens = {str(each["id"]): token_of(each) for each in things}
        with self._lock:
            known = {handle: self._known[handle] for handle in tokens if handle in self._known}
        others = [each for each in things if _shows_others(each, known.get(str(each["id"])))]
        found: dict[str, dict[str, Wire]] = {str(each["id"]): {} for each in others}
        try:
            listed = [*self._list("device_id", found)]
        except Transient:
            if any(map(_macs, others)):
                raise
            listed, found = [], {}
        for port in listed:
            handle = port["device_id"]
            shown = {name: port[name] for name in ("id", "name", "network_id")}
            found[handle][port["mac_address"]] = {**shown, "has_address": bool(port["fixed_ips"])}
            token = TOKEN.read(port)
            if token and token == tokens[handle] and TAG + handle not in port.get("tags", ()):
                self._mark(port["id"], handle)
        with self._lock:
            self._known.update(found)
        ports = {**known, **found}
        return [{**each, "_ports": ports[str(each["id"])]} if str(each["id"]) in ports else each for each in things]

    def leading_to(self, ports: Iterable[str]) -> list[Wire]:
        """Return the floating IPs that lead to these ports."""
        portions = _portions(sorted(ports))
        return [each for some in portions for each in self.api.list("/floatingips", "floatingips", port_id=some)]

    # -- after the server --------------------------------------------------------------------------------------------

    def of_tokens(self, tokens: Iterable[str]) -> dict[str, list[Wire]]:
        """Return token -> the ports made for the server with that token."""
        found: dict[str, list[Wire]] = {}
        texts = [str(TOKEN.write({}, token)[TOKEN.field]) for token in tokens]
        for port in self._list("description", texts):
            found.setdefault(TOKEN.read(port), []).append(port)
        return found

    def of(self, handle: str, token: str) -> list[Wire]:
        """Return the ports made for a server; its id takes the place of the token of one that was adopted."""
        found = self.of_tokens([token]).get(token, [])
        if token == handle:
            known = {each["id"] for each in found}
            found = found + [each for each in self.tagged([handle]).get(handle, ()) if each["id"] not in known]
        return found

    def tagged(self, handles: Iterable[str]) -> dict[str, list[Wire]]:
        """Return handle -> the ports that have the tag of that server."""
        found: dict[str, list[Wire]] = {}
        names = [TAG + handle for handle in sorted(handles)]
        for some in _portions(names):
            for port in self.api.list("/ports", "ports", **{"tags-any": ",".join(some)}):
                handle = next(tag for tag in port["tags"] if tag in some).removeprefix(TAG)
                found.setdefault(handle, []).append(port)
        return found

    def release(self, ports: Iterable[Wire], of: str) -> None:
        """Delete ports, of a server that is gone or has been detached from them.

        Raises:
            Transient: One of them may remain.
        """
        for port in ports:
            with contextlib.suppress(Missing):
                self._delete(f"/ports/{port['id']}", of)

    def _delete(self, path: str, of: str) -> None:
        try:
            self.api.request("DELETE", path, of=of)
        except Transient:
            # Neutron keeps a port that Nova has bound; and Nova may never let go of one whose server went while it was
            # being built.
            if not self.api.get(path)["port"]["device_owner"].startswith(COMPUTE):
                raise
            self.api.request("PUT", path, {"port": {"device_id": "", "device_owner": ""}}, of=of)
            self.api.request("DELETE", path, of=of)

    def give_up(self, token: str, error: HomeostatError) -> None:
        """Delete the ports of a server that was not made, because of an error.

        Raises:
            Uncertain: Some may remain.
        """
        try:
            self.release(self.of_tokens([token]).get(token, ()), token)
        except HomeostatError as other:
            raise Uncertain(f"{error}; and ports made for it may remain: {other}") from error

    def _list(self, field: str, values: Iterable[str]) -> Iterable[Wire]:
        for some in _portions(list(values)):
            yield from self.api.list("/ports", "ports", **{field: some})

    # -- changes -----------------------------------------------------------------------------------------------------

    def plug(self, compute: Service, handle: str, token: str, spec: Mapping[str, Any]) -> None:
        """Attach and detach interfaces of a server until they are those of its networks; what fits stays.

        Raises:
            Transient: It has to be done again, to delete a port that is being detached.
        """
        there = list(self._list("device_id", [handle]))
        own_ports = self.of(handle, token)
        ours, idle = {each["id"] for each in own_ports}, [each for each in own_ports if not each["device_id"]]
        path = f"/servers/{handle}/os-interface"
        with self._lock:
            self._known.pop(handle, None)
        entries: Sequence[Mapping[str, Any]] = spec.get("networks") or [{"allocate_network": "auto"}]
        word = entries[0].get("allocate_network")
        if word == "auto":
            if not there:
                compute.request("POST", path, {"interfaceAttachment": {}}, of=handle)
            return
        entries = () if word == "none" else entries
        kept = self._kept(entries, [*there, *idle], ours)
        keeps = {each["id"] for each in kept.values()}
        leaving = [port for port in there if port["id"] not in keeps]
        self._detach(compute, path, {each["id"] for each in leaving}, handle)
        self.release([port for port in idle if port["id"] not in keeps], handle)
        for number, entry in enumerate(entries):
            if number in kept:
                self._adjust(entry, kept[number], handle)
            if number not in kept or kept[number] in idle:
                own = kept[number]["id"] if number in kept else self._port_of(token, spec, number, handle)
                self._attach(compute, path, entry, own, handle)
        # Only once it is detached it can be deleted.
        if any(port["id"] in ours for port in leaving):
            raise Transient(f"server {handle}: an interface is being detached", DETACH_S)

    def _detach(self, compute: Service, path: str, ports: Set[str], handle: str) -> None:
        """Detach ports, but for those whose detachment has begun."""
        paths = {f"{path}/{port}" for port in ports}
        for each in sorted(paths - self._detached.among(paths)):
            with contextlib.suppress(Missing):
                compute.request("DELETE", each, of=handle)
            self._detached.note([each])

    def _attach(self, compute: Service, path: str, entry: Mapping[str, Any], port: str | None, handle: str) -> None:
        place = {"port_id": port} if port else {"net_id": self._id_of("network", entry["network"])}
        address = {"fixed_ips": [{"ip_address": entry["fixed_ip"]}]} if not port and entry.get("fixed_ip") else {}
        tag = {"tag": entry["tag"]} if entry.get("tag") else {}
        if port:
            self._detached.forget([f"{path}/{port}"])
        compute.request("POST", path, {"interfaceAttachment": {**place, **address, **tag}}, of=handle)

    def _kept(self, entries: Sequence[Mapping[str, Any]], there: Sequence[Wire], ours: Set[str]) -> dict[int, Wire]:
        """Return number of an entry -> the port that it keeps; the most exact entries choose first."""
        free, kept = list(there), dict[int, Wire]()
        exact = ("port", "fixed_ip", "subnet")
        for number in sorted(range(len(entries)), key=lambda at: [not entries[at].get(name) for name in exact]):
            fitting = [port for port in free if self._fits(entries[number], port, ours)]
            if fitting:
                kept[number] = fitting[0]
                free.remove(fitting[0])
        return kept

    def _fits(self, entry: Mapping[str, Any], port: Wire, ours: Set[str]) -> bool:
        if entry.get("port"):
            return bool(self._id_of("port", entry["port"]) == port["id"])
        # A port with another name was not made by Nova, but named by an entry.
        if port["id"] not in ours and (port["name"] or entry.get("port_extra_properties")):
            return False
        places = port["fixed_ips"]
        network, subnet = self._id_of("network", entry.get("network")), self._id_of("subnet", entry.get("subnet"))
        return (
            (not network or network == port["network_id"])
            and (not subnet or any(each["subnet_id"] == subnet for each in places))
            and (not entry.get("fixed_ip") or any(each["ip_address"] == entry["fixed_ip"] for each in places))
        )

    def _adjust(self, entry: Mapping[str, Any], port: Wire, handle: str) -> None:
        """Change what differs of a port that is kept."""
        wanted = self._extra(entry) if entry.get("port_extra_properties") else {}
        changed = {name: value for name, value in wanted.items() if not equal(value, port.get(name))}
        if changed:
            self.api.request("PUT", f"/ports/{port['id']}", {"port": changed}, of=handle)
        if entry.get("floating_ip"):
            self._lead(entry, port["id"], handle)


def was_used(port: Wire) -> bool:
    """Return whether a server has or had a port made for it."""
    return bool(port["device_id"]) or any(each.startswith(TAG) for each in port.get("tags", ()))


def is_own(entry: Mapping[str, Any]) -> bool:
    """Return whether this service makes the port of an entry."""
    return not entry.get("port") and any(entry.get(name) for name in OWN)


def _macs(server: Wire) -> set[str]:
    return {
        each["OS-EXT-IPS-MAC:mac_addr"]
        for group in (server.get("addresses") or {}).values()
        for each in group
        if "OS-EXT-IPS-MAC:mac_addr" in each
    }


def _shows_others(server: Wire, known: Mapping[str, Wire] | None) -> bool:
    """Return whether a server shows other addresses than those of its ports as they were known."""
    if known is None:
        return bool(_macs(server)) or server.get("status") not in WITHOUT_PORTS
    return _macs(server) != {mac for mac, port in known.items() if port["has_address"]}


def _portions(values: Sequence[str]) -> list[Sequence[str]]:
    return [values[start : start + PER_QUERY] for start in range(0, len(values), PER_QUERY)]
