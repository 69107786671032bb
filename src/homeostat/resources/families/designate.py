"""Types of DNS: zones and sets of records."""

from typing import Any

from homeostat.resources import comparison
from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.rules import is_set, require
from homeostat.resources.schema import Attribute, between, integer, length, link, listing, mapping, one_of, text
from homeostat.resources.support import Support

TTL = integer("Seconds that answers may be kept.", update=True, constraints=(between(1, 2147483647),))


class Zone(ResourceType):
    name = "OS::Designate::Zone"
    kind = "dns_zone"
    support = Support(version="8.0.0")
    description = "A DNS zone."
    properties = {
        "name": text("DNS name of the zone; it ends with a dot.", required=True, constraints=(length(None, 255),)),
        "ttl": TTL,
        "description": text("Description of the zone.", update=True, constraints=(length(None, 160),)),
        "email": text("Address for mail about a PRIMARY zone.", update=True, blank=True),
        "type": text(
            "PRIMARY is kept here, SECONDARY comes from other servers.",
            default="PRIMARY",
            constraints=(one_of("PRIMARY", "SECONDARY"),),
        ),
        "masters": listing(
            "Servers that a SECONDARY zone comes from; use primaries.",
            update=True,
            hidden=True,
            same=comparison.unordered,
        ),
        "primaries": listing("Servers that a SECONDARY zone comes from.", update=True, same=comparison.unordered),
        "attributes": mapping("What may tell the cloud where to put the zone."),
    }
    attributes = {"serial": Attribute("Serial number of the zone.")}
    deprecated_properties = {"masters": "primaries"}
    renamed = {"primaries": "masters"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        kind = values.get("type", "PRIMARY")
        require(kind != "PRIMARY" or is_set(values, "email"), "email is needed when type is PRIMARY", path)
        require(kind != "SECONDARY" or is_set(values, "primaries"), "primaries is needed when type is SECONDARY", path)


class RecordSet(ResourceType):
    name = "OS::Designate::RecordSet"
    kind = "dns_record_set"
    support = Support(version="8.0.0")
    description = "The records of one type under one name of a DNS zone."
    properties = {
        "name": text("DNS name of the records.", constraints=(length(None, 255),)),
        "ttl": TTL,
        "description": text("Description of the records.", update=True, constraints=(length(None, 160),)),
        "type": text(
            "Type of the records.",
            required=True,
            constraints=(one_of("A", "AAAA", "CNAME", "MX", "SRV", "TXT", "SPF", "NS", "PTR", "SSHFP", "SOA"),),
        ),
        "records": listing("Data of each record.", required=True, update=True, same=comparison.distinct),
        "zone": link("The zone.", "designate.zone", required=True),
    }
    renamed = {"zone": "zone_id"}

    def shown_id(self, handle: str) -> str:
        """Return the id alone: the handle may be `<zone>/<id>`."""
        return handle.rpartition("/")[2]

    def reference(self, thing: Thing) -> Any:
        """Its id."""
        return self.shown_id(thing.handle) or thing.name


TYPES: list[type[ResourceType]] = [Zone, RecordSet]
