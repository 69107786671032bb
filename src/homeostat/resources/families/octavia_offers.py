"""Types of load balancing for operators: flavors and availability zones, each with a profile."""

from homeostat.resources.base import ResourceType
from homeostat.resources.constraints import JSON_TEXT
from homeostat.resources.families.octavia import link
from homeostat.resources.schema import Attribute, Property, Schema, boolean, text


def _profile(what: str) -> Schema:
    """Return the properties of the profile of a flavor or zone."""
    return {
        "name": text("Name of the profile.", update=True),
        f"{what}_data": text(
            "Settings for the provider, as JSON text.", required=True, update=True, constraints=(JSON_TEXT,)
        ),
        "provider_name": text("The provider.", update=True),
    }


def _offer(what: str, profile: Property) -> Schema:
    """Return the properties of a flavor or zone."""
    return {
        "description": text(f"Description of the {what}.", default="", update=True),
        "enabled": boolean(f"Users may choose the {what}.", default=True, update=True),
        "name": text(f"Name of the {what}.", update=True),
        f"{what.replace(' ', '_')}_profile": profile,
    }


class FlavorProfile(ResourceType):
    name = "OS::Octavia::FlavorProfile"
    kind = "load_balancer_flavor_profile"
    description = "What a provider makes of a flavor of load balancers."
    properties = _profile("flavor")


class Flavor(ResourceType):
    name = "OS::Octavia::Flavor"
    kind = "load_balancer_flavor"
    description = "A flavor of load balancers that users may choose."
    properties = _offer("flavor", link("Its profile.", "octavia.flavorprofile", required=True))
    attributes = {"flavor_profile_id": Attribute("Its profile.")}
    renamed = {"flavor_profile": "flavor_profile_id"}


class AvailabilityZoneProfile(ResourceType):
    name = "OS::Octavia::AvailabilityZoneProfile"
    kind = "load_balancer_zone_profile"
    description = "What a provider makes of an availability zone of load balancers."
    properties = _profile("availability_zone")


class AvailabilityZone(ResourceType):
    name = "OS::Octavia::AvailabilityZone"
    kind = "load_balancer_zone"
    description = "An availability zone of load balancers that users may choose."
    properties = _offer("availability zone", link("Its profile.", "octavia.availabilityzoneprofile", required=True))
    attributes = {"availability_zone_profile_id": Attribute("Its profile.")}
    renamed = {"availability_zone_profile": "availability_zone_profile_id"}


TYPES: list[type[ResourceType]] = [FlavorProfile, Flavor, AvailabilityZoneProfile, AvailabilityZone]
