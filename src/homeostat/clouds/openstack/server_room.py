"""Room for a server: whether some other host could take one of its flavor now, as Placement tells administrators.

It is a dry run of what the scheduler asks first. What else the scheduler looks at, such as affinity, is not known here.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from homeostat.clouds.openstack.answers import Forbidden
from homeostat.clouds.openstack.collection import CloudOfCollections
from homeostat.clouds.openstack.service import Wire

CANDIDATES = "1.29"
"""A microversion of Placement in which candidates are whole trees of providers."""
CANDIDATES_MAX = 1000
MIB_PER_GIB = 1024
RESOURCES, TRAIT, REQUIRED = "resources:", "trait:", "required"
"""What extra specs of a flavor are called that override what it needs, or ask for a trait."""


class ServerRoom:
    """Asks whether there is room for servers."""

    def __init__(self, cloud: CloudOfCollections) -> None:
        self._cloud = cloud

    def is_full(self, server: Wire, hosts: Collection[str]) -> bool:
        """Return whether none of these hosts can take another server like this one; False where that is not told.

        Raises:
            Transient: The cloud does not answer.
        """
        needs = needs_of(server)
        if not needs:
            return False
        try:
            fit = {*self._candidates(needs, traits_of(server))}
            there = {*self._providers(hosts)}
        except Forbidden:
            return False
        return fit.isdisjoint(there)

    def _candidates(self, needs: Mapping[str, int], traits: Collection[str]) -> Iterator[str]:
        """Yield the ids of the roots of providers that can take that much."""
        query = {"resources": ",".join(f"{name}:{amount}" for name, amount in needs.items()), "limit": CANDIDATES_MAX}
        if traits:
            query["required"] = ",".join(sorted(traits))
        found = self._cloud.service("placement").request(
            "GET", "/allocation_candidates", params=query, microversion=CANDIDATES
        )
        for provider in (found.get("provider_summaries") or {}).values():
            yield str(provider["root_provider_uuid"])

    def _providers(self, hosts: Collection[str]) -> Iterator[str]:
        """Yield the ids of the hypervisors of some hosts; those of their providers are the same."""
        compute = self._cloud.service("compute")
        for each in compute.list("/os-hypervisors/detail", "hypervisors"):
            if (each.get("service") or {}).get("host") in hosts:
                yield str(each["id"])


def needs_of(server: Wire) -> dict[str, int]:
    """Return how much a server takes of each class of resources, by its flavor; empty where that is not shown."""
    flavor: Mapping[str, Any] = server.get("flavor") or {}
    if not {"vcpus", "ram", "disk"} <= flavor.keys():
        return {}
    # The disk of a server that boots from a volume is not its host's.
    disk = flavor["disk"] if server.get("image") else 0
    swap = -(-int(flavor.get("swap") or 0) // MIB_PER_GIB)
    needs = {
        "VCPU": int(flavor["vcpus"]),
        "MEMORY_MB": int(flavor["ram"]),
        "DISK_GB": int(disk) + int(flavor.get("ephemeral") or 0) + swap,
    }
    for name, value in (flavor.get("extra_specs") or {}).items():
        if name.startswith(RESOURCES):
            needs[name.removeprefix(RESOURCES)] = int(value)
    return {name: amount for name, amount in needs.items() if amount > 0}


def traits_of(server: Wire) -> list[str]:
    """Return the traits that a host of the server must have."""
    specs = (server.get("flavor") or {}).get("extra_specs") or {}
    return [name.removeprefix(TRAIT) for name, value in specs.items() if name.startswith(TRAIT) and value == REQUIRED]
