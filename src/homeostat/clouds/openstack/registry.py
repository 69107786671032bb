"""The kinds of things that the service offers on an OpenStack."""

from collections.abc import Mapping

from homeostat.clouds.openstack import (
    block_storage,
    compute,
    dns,
    floating_ips,
    images,
    key_manager,
    load_balancing,
    network,
    network_policies,
    object_storage,
    quotas,
    routers,
    security_groups,
    volume_attachments,
    volume_types,
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
    *dns.COLLECTIONS,
    *key_manager.COLLECTIONS,
    block_storage.Volumes,
    block_storage.VolumeSnapshots,
    block_storage.VolumeBackups,
    volume_attachments.VolumeAttachments,
    volume_types.VolumeTypes,
    volume_types.VolumeTypeEncryptions,
    volume_types.VolumeQosSpecs,
    volume_types.VolumeQosAssociations,
    quotas.VolumeQuotas,
    quotas.ComputeQuotas,
    images.Images,
    compute.KeyPairs,
    compute.ServerGroups,
    compute.Flavors,
    compute.HostAggregates,
    *object_storage.COLLECTIONS,
)
VERSIONS: Mapping[str, tuple[str, str]] = {"compute": ("2.70", "2.96"), "block-storage": ("3.50", "3.71")}
"""Service -> the lowest and the highest microversion that this adapter was tried with."""
