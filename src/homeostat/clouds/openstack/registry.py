"""The kinds of things that the service offers on an OpenStack."""

from collections.abc import Mapping

from homeostat.clouds.openstack import (
    floating_ips,
    key_manager,
    load_balancing,
    network,
    network_policies,
    routers,
    security_groups,
)
from homeostat.clouds.openstack.collection import Collection

COLLECTIONS: tuple[type[Collection], ...] = (
    network.Networks,
    network.Subnets,
    network.Ports,
    routers.Routers,
    routers.RouterInterfaces,
    routers.RouterGateways,
    routers.ExtraRouteSets,
    floating_ips.FloatingIps,
    floating_ips.FloatingIpAssociations,
    security_groups.SecurityGroups,
    security_groups.SecurityGroupRules,
    network_policies.AddressScopes,
    network_policies.SubnetPools,
    network_policies.RbacPolicies,
    network_policies.NetworkQuotas,
    *load_balancing.COLLECTIONS,
    *key_manager.COLLECTIONS,
)
VERSIONS: Mapping[str, tuple[str, str]] = {"compute": ("2.53", "2.96"), "block-storage": ("3.50", "3.71")}
"""Service -> the lowest and the highest microversion that this adapter was tried with."""
