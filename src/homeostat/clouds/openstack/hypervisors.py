"""Compute hosts, from Nova's list of services, which by default only administrators see."""

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
    """Return the host of a nova-compute service."""
    name, state, status = (str(service[field]) for field in ("host", "state", "status"))
    return Host(name, state, status, beat_at(service), bool(service.get("forced_down")))


def beat_at(service: Wire) -> float | None:
    """Return the time of a service's last report; None if it never reported.

    Forcing the host down or disabling it counts, too: Nova shows the time of the row's last change.
    """
    updated_at = service.get("updated_at")
    if not updated_at:
        return None
    try:
        return datetime.fromisoformat(str(updated_at)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


class Hypervisors(Collection):
    """The compute hosts, each known by its name, which is also the `host` of its servers."""

    kind = "hypervisor"
    service = "compute"
    path, keys = "/os-services", "services"
    token = Unmade()
    filtered_by_name = False

    def list(self, **filters: Any) -> Iterator[Wire]:
        # This list has no pages.
        return self.api.list(self.path, self.keys, binary="nova-compute", limit=None)

    def get(self, handle: str) -> Wire:
        host = self.observe([handle]).get(handle)
        if host is None:
            raise Missing(f"there is no hypervisor {handle}")
        return host

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return handle -> host, with one request; if policy hides the hosts, only the reason."""
        wanted = set(handles)
        try:
            services = list(self.list())
            blind = hosts.blindness([host_of(service) for service in services])
            return {
                str(service["host"]): {**service, "_blind": blind} for service in services if service["host"] in wanted
            }
        except Forbidden as error:
            return {handle: {"host": handle, "_unseen": str(error)} for handle in wanted}

    def resolve(self, name: str) -> str | None:
        return next((str(service["host"]) for service in self.list() if service["host"] == name), None)

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
