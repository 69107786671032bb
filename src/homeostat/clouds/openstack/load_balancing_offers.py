"""Load balancing for operators: flavors and availability zones, their profiles, and quotas."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InText, Joined
from homeostat.model.errors import Terminal


class OfferCollection(Collection):
    """A collection of options for users. Its objects have no tags."""

    service = "load-balancer"
    token = InText("description")
    profile = ""
    """Field that refers to the profile; `profiles` is the kind of the profile."""
    profiles = ""

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        if body.get(self.profile):
            body[self.profile] = self.cloud.collections[self.profiles].id_of(body[self.profile])
        return body


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
    profile, profiles = "flavor_profile_id", "load_balancer_flavor_profile"


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
    profile, profiles = "availability_zone_profile_id", "load_balancer_zone_profile"

    def handle_of(self, thing: Wire) -> str:
        return str(thing["name"])

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        if "name" in changed and spec.get("name") != handle:
            self.get(handle)
            raise Terminal(f"availability zone {handle} of load balancers keeps its name")
        return super().update(handle, spec, [name for name in changed if name != "name"])


class Quotas(Collection):
    """Quotas, known by the id of their project. A quota always exists: unless it was set, it has the defaults."""

    kind = "load_balancer_quota"
    service = "load-balancer"
    path, key, keys = "/lbaas/quotas", "quota", "quotas"
    further_looks = "one for each, since there is no list"
    token = Joined()

    def get(self, handle: str) -> Wire:
        return {**super().get(handle), "id": handle}

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        return iter(())

    def object_of(self, thing: Wire) -> Wire:
        """Return a quota with the fields of its kind."""
        return {**super().object_of(thing), "project": thing["id"]}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        project = str(self.reference("project", spec["project"]))
        limits = {name: value for name, value in spec.items() if name != "project" and value is not None}
        return self._set(project, limits, token)

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        return self._set(handle, {name: spec.get(name) for name in changed if name != "project"}, handle)

    def _set(self, project: str, limits: Wire, of: str) -> Wire:
        self.api.request("PUT", self.path_of(project), self._wrapped(limits), of=of)
        return self.get(project)


COLLECTIONS: tuple[type[Collection], ...] = (FlavorProfiles, Flavors, ZoneProfiles, Zones, Quotas)
