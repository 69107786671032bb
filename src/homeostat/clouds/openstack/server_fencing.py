"""Fencing of servers: resources are cut off step by step, and only the state seen afterwards counts.

COMPUTE is cut off when Nova, or Ironic for a machine, shows the power off, or when the host was declared down. A host
is declared down here only if Nova does not hear of it; otherwise only the server is stopped. A machine of Ironic runs
independently of its nova-compute, so only its power state counts.

A server whose host is reported down is not cut off while the report is doubtful, see `model.hosts`, or while no other
host could take a replacement.

Ports taken down get a tag, so that `unfence` brings up only these.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import CloudOfCollections
from homeostat.clouds.openstack.hypervisors import host_of
from homeostat.clouds.openstack.server_hosts import HOST
from homeostat.clouds.openstack.server_room import ServerRoom
from homeostat.clouds.openstack.service import Wire
from homeostat.model import hosts
from homeostat.model.errors import HomeostatError, Transient

TAG = "homeostat-fenced"
"""Tag of a port that fencing has taken down."""
HYPERVISOR = "OS-EXT-SRV-ATTR:hypervisor_hostname"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Name of the hypervisor of an Ironic machine: the id of its node."""
POWER, TASK = "OS-EXT-STS:power_state", "OS-EXT-STS:task_state"
SHUT_DOWN = 4
"""Nova's power state of a guest that is off."""
OFF = frozenset({"SHUTOFF", "SOFT_DELETED", "SHELVED_OFFLOADED", "ERROR"})
"""Statuses in which this power state counts: in any other status the server may be starting."""
POWER_OFF = "power off"
NOT_DOWN = "its host is not called down now"
NO_ROOM = (
    "no other host could take another one in its place; released by one that is up and enabled and has room for it"
)


class ServerFence:
    """Cuts off servers of a project."""

    def __init__(self, cloud: CloudOfCollections, look: Callable[[str], Wire], act: Callable[[str, str], str]) -> None:
        """Take the cloud, and functions that read a server from Nova and request an action."""
        self._cloud = cloud
        self._look = look
        self._act = act
        self._room = ServerRoom(cloud)

    def cut(self, handle: str, what: Collection[str], *, host_down: bool = False) -> Wire:
        """Cut off a server; return `{_fenced, _not_fenced, _declared_down}`, as seen afterwards.

        Args:
            what: Resources to cut off, such as COMPUTE.
            host_down: Cut off only if the host is down.

        Raises:
            Missing: The server does not exist.
        """
        withheld = self._withheld(self._look(handle), host_down=host_down)
        if withheld:
            return {"_fenced": [], "_not_fenced": dict.fromkeys(what, withheld)}
        declared: list[str] = []
        acts: dict[str, Callable[[str], str]] = {
            "COMPUTE": partial(self._power_off, declared),
            "NETWORK": self._take_down,
            "STORAGE": self._detach,
        }
        left = {resource: self._left(acts[resource], handle) for resource in what}
        return {
            "_fenced": [resource for resource in what if not left[resource]],
            "_not_fenced": {resource: why for resource, why in left.items() if why},
            "_declared_down": "".join(declared),
        }

    def open(self, handle: str, what: Collection[str]) -> None:
        """Bring up the ports that `cut` took down."""
        for port in self._ports(handle) if "NETWORK" in what else ():
            if TAG in port.get("tags", ()):
                self._set(port, up=True, of=handle)
                self._cloud.service("network").request("DELETE", f"/ports/{port['id']}/tags/{TAG}", of=handle)

    def _left(self, cut: Callable[[str], str], handle: str) -> str:
        """Cut off a resource; return the reason if it is not cut off yet, or ""."""
        try:
            return cut(handle)
        except Missing:
            return "it went away meanwhile"
        except HomeostatError as error:
            return str(error)

    # -- the host ------------------------------------------------------------------------------------------------------

    def _withheld(self, thing: Wire, *, host_down: bool) -> str:
        """Return the reason to cut off nothing of a server yet; "" if there is none."""
        services = [] if is_machine(thing) or _is_off(thing) else self._services(thing)
        host = next((host for host in map(host_of, services) if host.name == thing.get(HOST)), None)
        if host is None or host.is_heard_of:
            return NOT_DOWN if host_down else ""
        others = [other.name for other in hosts.others_that_take(host, list(map(host_of, services)))]
        try:
            full = not others or self._room.is_full(thing, others)
        except HomeostatError as error:
            return f"it is not known whether another host has room for another one: {error}"
        doubted = hosts.doubt(host, list(map(host_of, services)))
        return doubted or (NO_ROOM if full else "")

    def _services(self, thing: Wire) -> list[Wire]:
        """Return the services of all compute hosts; none if the server's host or the services cannot be seen."""
        compute = self._cloud.service("compute")
        try:
            services = compute.list("/os-services", "services", binary="nova-compute", limit=None)
            return list(services) if thing.get(HOST) else []
        except Transient:
            return []

    # -- COMPUTE -------------------------------------------------------------------------------------------------------

    def _power_off(self, declared: list[str], handle: str) -> str:
        """Power a server off, or declare its host down and add it to `declared`; return why it is not off, or ""."""
        thing = self._look(handle)
        if is_machine(thing):
            return self._power_off_machine(handle)
        if _is_off(thing):
            return ""
        service = self._service(thing)
        if service is not None and service["state"] == "down":
            # Withheld again: all hosts may have gone silent since the first look, as in a pause of the control plane.
            left = self._withheld(thing, host_down=True) or self._declare_down(thing, service)
            declared += [] if left else [str(service["host"])]
            return left
        if thing.get(TASK) is None:
            self._act(handle, "os-stop")
        return "" if _is_off(self._look(handle)) else "it is being stopped"

    def _service(self, thing: Wire) -> Wire | None:
        """Return the service of a server's host; None if it cannot be seen."""
        return next((service for service in self._services(thing) if service["host"] == thing.get(HOST)), None)

    def _declare_down(self, thing: Wire, service: Wire) -> str:
        if not service.get("forced_down"):
            path = f"/os-services/{quote(str(service['id']), safe='')}"
            self._cloud.service("compute").request("PUT", path, {"forced_down": True})
        seen = self._service(thing)
        if seen is not None and seen.get("forced_down") and seen["state"] == "down":
            return ""
        return f"its host {service['host']} is not seen to be declared down yet"

    def _power_off_machine(self, handle: str) -> str:
        ironic = self._cloud.service("baremetal")

        def nodes() -> list[Wire]:
            return list(ironic.list("/nodes/detail", "nodes", instance_uuid=handle))

        machines = nodes()
        if machines and any(map(_is_on, machines)):
            for node in machines:
                if _is_on(node) and node.get("target_power_state") != POWER_OFF:
                    ironic.request("PUT", f"/nodes/{node['uuid']}/states/power", {"target": POWER_OFF})
            machines = nodes()
        if not machines:
            return "no machine of Ironic has this server"
        return "its machine is being powered off" if any(map(_is_on, machines)) else ""

    # -- NETWORK -------------------------------------------------------------------------------------------------------

    def _ports(self, handle: str) -> list[Wire]:
        return list(self._cloud.service("network").list("/ports", "ports", device_id=handle))

    def _set(self, port: Wire, *, up: bool, of: str) -> None:
        body = {"port": {"admin_state_up": up}}
        self._cloud.service("network").request("PUT", f"/ports/{port['id']}", body, of=of)

    def _take_down(self, handle: str) -> str:
        ports = self._ports(handle)
        for port in ports:
            if port["admin_state_up"]:
                # The tag first: if the tag request failed afterwards, `unfence` would never bring up the port.
                self._cloud.service("network").request("PUT", f"/ports/{port['id']}/tags/{TAG}", of=handle)
                self._set(port, up=False, of=handle)
        up = [port["id"] for port in self._ports(handle) if port["admin_state_up"]]
        return f"these ports are up: {', '.join(up)}" if up else ""

    # -- STORAGE -------------------------------------------------------------------------------------------------------

    def _detach(self, handle: str) -> str:
        path = f"/servers/{quote(handle, safe='')}/os-volume_attachments"
        compute = self._cloud.service("compute")
        refused: dict[str, str] = {}
        for attachment in compute.list(path, "volumeAttachments"):
            volume = str(attachment["volumeId"])
            try:
                compute.request("DELETE", f"{path}/{quote(volume, safe='')}", of=handle)
            except HomeostatError as error:
                refused[volume] = str(error)
        left = [str(attachment["volumeId"]) for attachment in compute.list(path, "volumeAttachments")]
        return "; ".join(
            f"volume {volume} is attached: {refused.get(volume, 'it is being detached')}" for volume in left
        )


def is_machine(thing: Wire) -> bool:
    """Return whether a server is a machine of Ironic."""
    return UUID.fullmatch(str(thing.get(HYPERVISOR) or "")) is not None


def _is_off(thing: Mapping[str, Any]) -> bool:
    off = thing.get("status") in OFF and thing.get(POWER) == SHUT_DOWN
    return off and thing.get(TASK) is None


def _is_on(node: Mapping[str, Any]) -> bool:
    return node.get("power_state") != POWER_OFF or node.get("target_power_state") not in (None, POWER_OFF)
