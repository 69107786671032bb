"""Capacity for a server: whether another host could take one of the same flavor, as Placement shows to administrators.

This is a dry run of the scheduler's first query. Its further criteria, such as affinity, are not known here.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from homeostat.clouds.openstack.answers import Forbidden
from homeostat.clouds.openstack.collection import CloudOfCollections
from homeostat.clouds.openstack.service import Wire

CANDIDATES = "1.29"
"""Microversion of Placement whose candidates are whole trees of providers."""
CANDIDATES_MAX = 1000
MIB_PER_GIB = 1024
RESOURCES, TRAIT, REQUIRED = "resources:", "trait:", "required"
"""Prefixes of a flavor's extra specs that override its needs or require a trait."""


class ServerRoom:
    """Checks capacity for servers."""

    def __init__(self, cloud: CloudOfCollections) -> None:
        self._cloud = cloud

    def is_full(self, server: Wire, hosts: Collection[str]) -> bool:
        """Return whether none of these hosts can take another server like this; False if policy hides the capacity.

        Raises:
            Transient: The cloud does not answer.
        """
        needs = needs_of(server)
        if not needs:
            return False
        try:
            roots = {*self._candidates(needs, traits_of(server))}
            providers = {*self._providers(hosts)}
        except Forbidden:
            return False
        return roots.isdisjoint(providers)

    def _candidates(self, needs: Mapping[str, int], traits: Collection[str]) -> Iterator[str]:
        """Yield the root providers with enough capacity."""
        query = {"resources": ",".join(f"{name}:{amount}" for name, amount in needs.items()), "limit": CANDIDATES_MAX}
        if traits:
            query["required"] = ",".join(sorted(traits))
        candidates = self._cloud.service("placement").request(
            "GET", "/allocation_candidates", params=query, microversion=CANDIDATES
        )
        for provider in (candidates.get("provider_summaries") or {}).values():
            yield str(provider["root_provider_uuid"])

    def _providers(self, hosts: Collection[str]) -> Iterator[str]:
        """Yield the ids of the hypervisors of these hosts; each is also the id of the host's root provider."""
        compute = self._cloud.service("compute")
        for hypervisor in compute.list("/os-hypervisors/detail", "hypervisors"):
            if (hypervisor.get("service") or {}).get("host") in hosts:
                yield str(hypervisor["id"])


def needs_of(server: Wire) -> dict[str, int]:
    """Return class of resources -> amount that a server takes, by its flavor; empty if Nova hides the flavor."""
    flavor: Mapping[str, Any] = server.get("flavor") or {}
    if not {"vcpus", "ram", "disk"} <= flavor.keys():
        return {}
    # A server that boots from a volume takes no disk of its host.
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
