"""Reservations: reservable hosts, and leases."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InField, InText


class Reservations(Collection):
    """A collection of reservations, whose lists have a single page. Only answers have its keys, requests do not."""

    service = "reservation"
    filtered_by_name = False

    def list(self, **filters: Any) -> Iterator[Wire]:
        return iter(self.api.get(self.path)[self.keys])

    def _wrapped(self, body: Wire) -> Wire:
        return body

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        return self.get(handle)


class Hosts(Reservations):
    """Hosts, with numbers as ids. Blazar stores extra properties of a host next to its own fields."""

    kind = "reservable_host"
    path, key, keys = "/os-hosts", "host", "hosts"
    token = InField()
    names = "hypervisor_hostname"

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        more = {name: str(value) for name, value in (spec.get("extra_capability") or {}).items()}
        return {"name": spec["name"], **more}

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        if isinstance(fields.get("cpu_info"), str):
            fields["cpu_info"] = _map_of(fields["cpu_info"])
        return {**fields, "name": thing["hypervisor_hostname"]}


class Leases(Reservations):
    kind = "lease"
    path, key, keys = "/leases", "lease", "leases"
    token = InText("name")

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        fields = {name: value for name, value in spec.items() if value is not None}
        return {**fields, "reservations": [_reservation(entry) for entry in fields["reservations"]]}


def _reservation(wanted: Mapping[str, Any]) -> Wire:
    """Add the properties that the service requires."""
    if wanted["resource_type"] == "virtual:instance":
        return {"resource_properties": "", **wanted}
    return {"hypervisor_properties": "", "resource_properties": "", **wanted}


def _map_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}


COLLECTIONS: tuple[type[Collection], ...] = (Hosts, Leases)
