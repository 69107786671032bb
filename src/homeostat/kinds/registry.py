"""All kinds by name."""

from collections.abc import Mapping

from homeostat.kinds import (
    alarming,
    block_storage,
    builtin,
    clustering,
    compute,
    container_infrastructure,
    databases,
    dns,
    identity,
    images,
    key_manager,
    load_balancing,
    messaging,
    network,
    network_policies,
    network_services,
    object_storage,
    orchestration,
    reservations,
    shared_file_systems,
    workflows,
)
from homeostat.kinds.base import Kind

_SERVICES = (
    compute.KINDS,
    block_storage.KINDS,
    network.KINDS,
    network_policies.KINDS,
    network_services.KINDS,
    load_balancing.KINDS,
    orchestration.KINDS,
    object_storage.KINDS,
    images.KINDS,
    identity.KINDS,
    key_manager.KINDS,
    alarming.KINDS,
    dns.KINDS,
    workflows.KINDS,
    shared_file_systems.KINDS,
    container_infrastructure.KINDS,
    databases.KINDS,
    messaging.KINDS,
    reservations.KINDS,
)

CLOUD_KINDS: Mapping[str, Kind] = {kind.name: kind for kinds in _SERVICES for kind in kinds}
"""Kinds of clouds."""
BUILTIN_KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (*builtin.KINDS, *clustering.KINDS)}
"""Kinds provided by the service itself."""
KINDS: Mapping[str, Kind] = {**CLOUD_KINDS, **BUILTIN_KINDS}
PART_KINDS = frozenset(part for kind in CLOUD_KINDS.values() for part in kind.parts)
"""Kinds of objects that are parts of a larger object, and may be deleted together with it."""
LISTED_KINDS = frozenset(
    kind.name for kind in (builtin.SOFTWARE_CONFIG, builtin.SOFTWARE_DEPLOYMENT, *clustering.KINDS)
)
"""The built-in kinds with separate URLs in the API: users can list and delete such objects without a stack."""
