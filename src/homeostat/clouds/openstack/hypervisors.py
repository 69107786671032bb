"""Hosts of servers, as Compute's list of services tells of them: to administrators alone, by default."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from homeostat.clouds.openstack.answers import Forbidden, Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import Unmade
from homeostat.model import hosts
from homeostat.model.errors import Terminal
from homeostat.model.hosts import Host

READ_ONLY = "a hypervisor is only looked at"


def host_of(service: Wire) -> Host:
    """Return the host of a nova-compute as Compute shows that service."""
    name, state, status = (str(service[each]) for each in ("host", "state", "status"))
    return Host(name, state, status, beat_at(service), bool(service.get("forced_down")))


def beat_at(service: Wire) -> float | None:
    """Return when a service was heard of last; None if it never was.

    To declare its host down, or to disable it, counts as well: Compute shows when the row was changed.
    """
    shown = service.get("updated_at")
    if not shown:
        return None
    try:
        return datetime.fromisoformat(str(shown)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


class Hypervisors(Collection):
    """The hosts of servers, each known by its name, which servers report as their `host`."""

    kind = "hypervisor"
    service = "compute"
    path, keys = "/os-services", "services"
    token = Unmade()
    filtered_by_name = False

    def list(self, **filters: Any) -> Iterator[Wire]:
        # This list has no pages.
        return self.api.list(self.path, self.keys, binary="nova-compute", limit=None)

    def get(self, handle: str) -> Wire:
        found = self.observe([handle]).get(handle)
        if found is None:
            raise Missing(f"there is no hypervisor {handle}")
        return found

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return handle -> host, with one request; where policy hides them, all that is known is why."""
        wanted = set(handles)
        try:
            shown = list(self.list())
            blind = hosts.blindness([host_of(each) for each in shown])
            return {str(each["host"]): {**each, "_blind": blind} for each in shown if each["host"] in wanted}
        except Forbidden as error:
            return {handle: {"host": handle, "_unseen": str(error)} for handle in wanted}

    def resolve(self, name: str) -> str | None:
        return next((str(each["host"]) for each in self.list() if each["host"] == name), None)

    def handle_of(self, thing: Wire) -> str:
        return str(thing["host"])

    def object_of(self, thing: Wire) -> Wire:
        return {
            "id": thing["host"],
            "name": thing["host"],
            "state": thing["state"],
            "status": thing["status"],
            "forced_down": bool(thing.get("forced_down")),
            "reason": thing.get("disabled_reason"),
            "updated_at": beat_at(thing),
            "blind": thing.get("_blind", ""),
        }

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        raise Terminal(READ_ONLY)

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        raise Terminal(READ_ONLY)

    def delete(self, handle: str) -> Wire | None:
        raise Terminal(READ_ONLY)
