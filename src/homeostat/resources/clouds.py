"""The families of types that every cloud is made of: compute, networking, block storage, load balancing."""

from homeostat.resources import (
    chaining,
    cinder,
    compute,
    ec2,
    firewall,
    gateways,
    layer7,
    lbaas,
    lbaas1,
    neutron,
    nova,
    octavia,
    octavia_offers,
    provider,
    qos,
    quotas,
    remote,
    routing,
    volume_types,
    vpc,
    vpn,
)

FAMILIES = (
    *(nova, compute, neutron, routing, qos, provider, gateways, vpn, firewall, chaining),
    *(cinder, volume_types, octavia, layer7, octavia_offers, lbaas, lbaas1, quotas, remote),
    *(ec2, vpc),
)
