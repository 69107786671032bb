"""DNS: zones and record sets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InText
from homeostat.resources.kind_fields import fields_of

DESCRIPTION_MAX = 160


class DnsCollection(Collection):
    """A collection of the DNS service. A change is PENDING until the name servers have it."""

    service = "dns"
    token = InText("description", DESCRIPTION_MAX)

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        if fields.get("action") == "DELETE" and fields.get("status") == "pending":
            fields["status"] = "deleting"
        if fields.get("status") == "error":
            fields["fault"] = f"status ERROR, action {fields.get('action')}"
        return fields

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        # The repair of an object in ERROR passes all its fields.
        return super().update(handle, spec, [name for name in changed if name in fields_of(self.kind).mutable])

    def delete(self, handle: str) -> Wire | None:
        return self._thing(self.api.request("DELETE", self.path_of(handle), of=handle))


TTL_S = 3600
"""TTL in seconds of a new zone's records; this is Designate's default, which its operator can change."""


class Zones(DnsCollection):
    kind = "dns_zone"
    path, keys = "/zones", "zones"
    update_method = "PATCH"
    cleared: ClassVar[Mapping[str, Any]] = {"ttl": TTL_S}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        return super().create(token, _given(spec))


class RecordSets(DnsCollection):
    """The record sets of all zones; one list has them all. The handle is `<zone>/<id>`."""

    kind = "dns_record_set"
    path, keys = "/recordsets", "recordsets"

    def path_under(self, zone: str) -> str:
        """Return the path of the record sets of a zone."""
        return f"/zones/{zone}/recordsets"

    def path_of(self, handle: str) -> str:
        """Return the path of a record set; for an id alone, as known to other services, its zone is searched.

        Raises:
            Missing: No zone has the record set.
        """
        zone, slash, id = handle.rpartition("/")
        if not slash:
            zone = next((str(record_set["zone_id"]) for record_set in self.list() if record_set["id"] == handle), "")
            if not zone:
                raise Missing(f"no zone has the record set {handle}")
        return f"{self.path_under(zone)}/{id}"

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        zones = {handle.rpartition("/")[0] for handle in handles}
        if len(zones) > 1:
            return self.list()
        try:
            return iter(list(self.api.list(self.path_under(zones.pop()), self.keys)))
        except Missing:
            return iter(())

    def handle_of(self, thing: Wire) -> str:
        return f"{thing['zone_id']}/{thing['id']}"

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        zone = self.cloud.collections["dns_zone"].id_of(spec.get("zone_id"))
        fields = {name: value for name, value in _given(spec).items() if name != "zone_id"}
        return self.api.request("POST", self.path_under(zone), self.token.write(fields, token), of=token)

    def resolve(self, name: str) -> str | None:
        try:
            return self.handle_of(self.get(name))
        except Missing:
            return None


def _given(spec: Mapping[str, Any]) -> Wire:
    """Return the fields that are set: the service refuses some null fields."""
    return {name: value for name, value in spec.items() if value not in (None, "", {})}


COLLECTIONS: tuple[type[Collection], ...] = (Zones, RecordSets)
