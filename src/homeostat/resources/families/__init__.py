"""The resource types that come with the service, one module a family, each with its `TYPES`.

What the service keeps or makes itself · the clouds' compute, networking, block storage and load balancing · the types
of EC2 · the other services of OpenStack · what is retired.
"""

from homeostat.resources import nested
from homeostat.resources.families import (
    access,
    aodh,
    barbican,
    blazar,
    chaining,
    cinder,
    compute,
    configs,
    delay,
    deploymentgroups,
    deployments,
    designate,
    ec2,
    firewall,
    gateways,
    glance,
    grouping,
    heat,
    ironic,
    keystone,
    layer7,
    lbaas,
    lbaas1,
    magnum,
    manila,
    mistral,
    neutron,
    nova,
    octavia,
    octavia_offers,
    provider,
    qos,
    quotas,
    remote,
    retired,
    routing,
    scaling,
    swift,
    trove,
    volume_types,
    vpc,
    vpn,
    waiting,
    zaqar,
    zun,
)

OWN = (heat, nested, grouping, scaling, waiting, configs, deployments, deploymentgroups, access, delay, remote)
CLOUDS = (
    *(nova, compute, neutron, routing, qos, provider, gateways, vpn, firewall, chaining),
    *(cinder, volume_types, octavia, layer7, octavia_offers, lbaas, lbaas1, quotas),
)
EC2 = (ec2, vpc)
SERVICES = (
    *(swift, glance, keystone, barbican, aodh, designate, mistral, manila, magnum, trove, zaqar, zun, blazar, ironic),
)
FAMILIES = (*OWN, *CLOUDS, *EC2, *SERVICES, retired)
