"""Quotas of services. A project always has a quota: deletion restores the defaults."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import Joined


class QuotaSets(Collection):
    """Quotas, known by the id of their project.

    There is no list of quotas. A quota always exists: unless it was set, it has the defaults.
    """

    path, key = "/os-quota-sets", "quota_set"
    further_looks = "one for each, since there is no list"
    token = Joined()
    how: Mapping[str, Any] = {}
    """Further arguments of requests."""

    def get(self, handle: str) -> Wire:
        quota = self._thing(self.api.request("GET", self.path_of(handle), **self.how))
        return {**quota, "id": handle}

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        return iter(())

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        project = str(self.reference("project", spec["project"]))
        limits = {name: value for name, value in spec.items() if name != "project"}
        return self._set(project, limits, token)

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        limits = {name: spec.get(name) for name in changed}
        if None in limits.values():
            defaults = self._thing(self.api.request("GET", f"{self.path_of(handle)}/defaults", **self.how))
            limits = {name: defaults.get(name) if value is None else value for name, value in limits.items()}
        return self._set(handle, limits, handle)

    def _set(self, project: str, limits: Mapping[str, Any], of: str) -> Wire:
        self.api.request("PUT", self.path_of(project), self._wrapped(dict(limits)), of=of, **self.how)
        return self.get(project)

    def delete(self, handle: str) -> None:
        self.api.request("DELETE", self.path_of(handle), of=handle, **self.how)

    def object_of(self, thing: Wire) -> Wire:
        return {**super().object_of(thing), "project": thing["id"]}


class ComputeQuotas(QuotaSets):
    """Quotas of Compute, in the last microversion with quotas for files and for nova-network."""

    kind = "compute_quota"
    service = "compute"
    how = {"microversion": "2.35"}


class VolumeQuotas(QuotaSets):
    kind = "volume_quota"
    service = "block-storage"
