"""Load balancing for operators: flavors and availability zones, their profiles, and quotas."""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.quotas import QuotaSets
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InText
from homeostat.model.errors import Terminal


class OfferCollection(Collection):
    """A collection of options for users. Its objects have no tags."""

    service = "load-balancer"
    token = InText("description")

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        return super().body_of(self.with_ids(spec))


class ProfileCollection(Collection):
    """A collection of profiles, whose only text field is the name."""

    service = "load-balancer"
    token = InText("name")


class FlavorProfiles(ProfileCollection):
    kind = "load_balancer_flavor_profile"
    path, key, keys = "/lbaas/flavorprofiles", "flavorprofile", "flavorprofiles"


class Flavors(OfferCollection):
    kind = "load_balancer_flavor"
    path, key, keys = "/lbaas/flavors", "flavor", "flavors"


class ZoneProfiles(ProfileCollection):
    kind = "load_balancer_zone_profile"
    path, key, keys = (
        "/lbaas/availabilityzoneprofiles",
        "availability_zone_profile",
        "availability_zone_profiles",
    )


class Zones(OfferCollection):
    """Availability zones, known by their name."""

    kind = "load_balancer_zone"
    path, key, keys = "/lbaas/availabilityzones", "availability_zone", "availability_zones"

    def handle_of(self, thing: Wire) -> str:
        return str(thing["name"])

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        if "name" in changed and spec.get("name") != handle:
            self.get(handle)
            raise Terminal(f"availability zone {handle} of load balancers keeps its name")
        return super().update(handle, spec, [name for name in changed if name != "name"])


class Quotas(QuotaSets):
    kind = "load_balancer_quota"
    service = "load-balancer"
    path, key, keys = "/lbaas/quotas", "quota", "quotas"

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        # Octavia restores the default of a limit that is null.
        return self._set(handle, {name: spec.get(name) for name in changed}, handle)


COLLECTIONS: tuple[type[Collection], ...] = (FlavorProfiles, Flavors, ZoneProfiles, Zones, Quotas)
