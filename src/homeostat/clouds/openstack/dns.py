"""DNS: zones and sets of records."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InText
from homeostat.kinds.registry import KINDS

DESCRIPTION_MAX = 160


class DnsCollection(Collection):
    """A collection of the DNS service. A change is PENDING until the name servers have it."""

    service = "dns"
    token = InText("description", DESCRIPTION_MAX)

    def object_of(self, thing: Wire) -> Wire:
        """Return a thing with the fields of its kind."""
        found = super().object_of(thing)
        if found.get("action") == "DELETE" and found.get("status") == "pending":
            found["status"] = "deleting"
        if found.get("status") == "error":
            found["fault"] = f"status ERROR, action {found.get('action')}"
        return found

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        # The repair of a thing in ERROR names all its fields.
        return super().update(handle, spec, [each for each in changed if each in KINDS[self.kind].mutable])

    def delete(self, handle: str) -> Wire | None:
        return self._thing(self.api.request("DELETE", self.path_of(handle), of=handle))


TTL_S = 3600
"""Seconds for which the records of a new zone may be kept, unless the operator of Designate has chosen another time."""


class Zones(DnsCollection):
    kind = "dns_zone"
    path, keys = "/zones", "zones"
    update_method = "PATCH"
    cleared: ClassVar[Mapping[str, Any]] = {"ttl": TTL_S}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        return super().create(token, _given(spec))


class RecordSets(DnsCollection):
    """The record sets of all zones, which are in one list. Their handle is `<zone>/<id>`."""

    kind = "dns_record_set"
    path, keys = "/recordsets", "recordsets"

    def path_under(self, zone: str) -> str:
        """Return the path of the record sets of a zone."""
        return f"/zones/{zone}/recordsets"

    def path_of(self, handle: str) -> str:
        """Return the path of a record set; of an id alone, as other services know it, the zone is looked for.

        Raises:
            Missing: No zone has it.
        """
        zone, slash, id = handle.rpartition("/")
        if not slash:
            zone = next((str(each["zone_id"]) for each in self.list() if each["id"] == handle), "")
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
    """Return the fields that are set: the service refuses some that are null."""
    return {name: value for name, value in spec.items() if value not in (None, "", {})}


COLLECTIONS: tuple[type[Collection], ...] = (Zones, RecordSets)
