"""Reservations: hosts that can be reserved, and leases."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InField, InText


class Reservations(Collection):
    """A collection of reservations, which all come in one answer. Its keys are in answers only."""

    service = "reservation"
    filtered_by_name = False

    def list(self, **filters: Any) -> Iterator[Wire]:
        return iter(self.api.get(self.path)[self.keys])

    def _wrapped(self, body: Wire) -> Wire:
        return body

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        return self.get(handle)


class Hosts(Reservations):
    """Hosts, which the service numbers. It keeps what else is said of a host among the fields of its own."""

    kind = "reservable_host"
    path, key, keys = "/os-hosts", "host", "hosts"
    token = InField()
    names = "hypervisor_hostname"

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        more = {name: str(value) for name, value in (spec.get("extra_capability") or {}).items()}
        return {"name": spec["name"], **more}

    def object_of(self, thing: Wire) -> Wire:
        """Return a thing with the fields of its kind."""
        found = super().object_of(thing)
        if isinstance(found.get("cpu_info"), str):
            found["cpu_info"] = _map_of(found["cpu_info"])
        return {**found, "name": thing["hypervisor_hostname"]}


class Leases(Reservations):
    kind = "lease"
    path, key, keys = "/leases", "lease", "leases"
    token = InText("name")

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        given = {name: value for name, value in spec.items() if value is not None}
        return {**given, "reservations": [_reservation(each) for each in given["reservations"]]}


def _reservation(wanted: Mapping[str, Any]) -> Wire:
    """Return a reservation with the properties that the service wants in any case."""
    if wanted["resource_type"] == "virtual:instance":
        return {"resource_properties": "", **wanted}
    return {"hypervisor_properties": "", "resource_properties": "", **wanted}


def _map_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}


COLLECTIONS: tuple[type[Collection], ...] = (Hosts, Leases)
