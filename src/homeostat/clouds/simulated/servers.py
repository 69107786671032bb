"""Operations on simulated servers that have arguments, or involve further objects."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from homeostat.clouds.simulated.hosts import Hosts
from homeostat.clouds.simulated.objects import READY_STATUS, Fields
from homeostat.kinds.compute import fences_of
from homeostat.model.errors import Terminal

READY = READY_STATUS["server"]
VERBS = frozenset({"restore", "evacuate", "unrescue", "change_password", "rebuild", "fence", "unfence"})
"""Operations carried out here."""
UNSEEN = "it is not seen yet"
"""Reason for a cut-off resource that is not confirmed."""
OFF = ("stopped", "soft_deleted")
"""Statuses of servers without running processes: no host is declared down for them."""


class Thing(Protocol):
    """The part of a simulated object that is used here."""

    properties: Fields


class Servers:
    """The servers of a project, with their ports and attachments."""

    def __init__(
        self,
        things: Mapping[tuple[str, str], Thing],
        remove: Callable[[tuple[str, str]], None],
        hosts: Hosts,
        fails: Callable[[], bool],
        now: float,
    ) -> None:
        """Take the state of the cloud.

        Args:
            things: All objects of the project.
            remove: Removes an object.
            fails: Whether this time a cut-off resource is not yet seen as cut off.
        """
        self._things = things
        self._remove = remove
        self._hosts = hosts
        self._fails = fails
        self._now = now

    def operate(self, server: Fields, verb: str, arguments: Mapping[str, Any]) -> Fields:
        """Carry out an operation; return fields that only its answer has.

        Raises:
            Terminal: The operation is impossible.
        """
        if verb == "fence":
            withheld = self._withheld(server, host_down=bool(arguments.get("host_down")))
            what = fences_of(arguments)
            return (
                {"fenced": [], "not_fenced": dict.fromkeys(what, withheld)} if withheld else self._fence(server, what)
            )
        if verb == "unfence":
            self._unfence(server, fences_of(arguments))
        elif verb == "evacuate":
            self._evacuate(server, arguments)
        elif verb == "change_password":
            if not arguments.get("admin_pass"):
                raise Terminal("a password is needed: admin_pass")
        elif verb == "rebuild":
            server.update({name: arguments[name] for name in arguments if name not in ("admin_pass", "id", "status")})
            server["status"] = READY
        elif server["status"] == {"restore": "soft_deleted", "unrescue": "rescue"}[verb]:
            server["status"] = READY
        return {}

    def _evacuate(self, server: Fields, arguments: Mapping[str, Any]) -> None:
        if arguments.get("from") in (None, server["host"]) and arguments.get("host") != server["host"]:
            server["host"] = self._hosts.target(server["host"], arguments.get("host"))

    def _fence(self, server: Fields, what: Collection[str]) -> Fields:
        cut = {"COMPUTE": self._stop, "NETWORK": self._take_down, "STORAGE": self._detach}
        fenced = []
        for resource in what:
            cut[resource](server)
            if not self._fails():
                fenced.append(resource)
        rest = [resource for resource in what if resource not in fenced]
        host = server["host"] if "COMPUTE" in fenced and server["status"] not in OFF else ""
        declared = host if host in self._hosts.forced else ""
        return {"fenced": fenced, "not_fenced": dict.fromkeys(rest, UNSEEN), "declared_down": declared}

    def _withheld(self, server: Fields, *, host_down: bool) -> str:
        """Return the reason to cut off nothing of a server yet; "" if there is none."""
        if server["status"] in OFF:
            return ""
        if not self._hosts.is_called_down(server["host"]):
            return "its host is not called down now" if host_down else ""
        return self._hosts.doubt(server["host"], self._now)

    def _stop(self, server: Fields) -> None:
        if server["status"] in OFF:
            return
        if self._hosts.is_called_down(server["host"]):
            self._hosts.declare_down(server["host"], self._now)
        else:
            server["status"] = "stopped"

    def _ports(self, server: Fields) -> list[Fields]:
        ids = [entry["port"] for group in server["addresses"].values() for entry in group]
        return [self._things["port", id].properties for id in ids if ("port", id) in self._things]

    def _take_down(self, server: Fields) -> None:
        for port in self._ports(server):
            port["admin_state_up"] = False

    def _unfence(self, server: Fields, what: Collection[str]) -> None:
        for port in self._ports(server) if "NETWORK" in what else ():
            port["admin_state_up"] = True

    def _detach(self, server: Fields) -> None:
        server["block_device_mapping"] = []
        for key in [key for key in self._things if key[0] == "volume_attachment"]:
            if self._things[key].properties.get("instance_uuid") == server["id"]:
                self._remove(key)
