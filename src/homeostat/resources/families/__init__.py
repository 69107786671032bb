"""The built-in resource types, one module for each family, with its types in `TYPES`.

The families come in groups: `OWN`, which the service implements itself; `CLOUDS`, compute, networking, block storage
and load balancing; `EC2`; `SERVICES`, the other services of OpenStack; and the retired types.
"""

from homeostat.resources import nested
from homeostat.resources.families import (
    access,
    aodh,
    barbican,
    blazar,
    cinder,
    compute,
    configs,
    delay,
    deployment_groups,
    deployments,
    designate,
    ec2,
    firewall,
    gateways,
    glance,
    health_policies,
    heat,
    ironic,
    keystone,
    launch_configurations,
    layer7_policies,
    lbaas_v1,
    lbaas_v2,
    magnum,
    manila,
    mistral,
    neutron,
    nova,
    octavia,
    octavia_offers,
    provider_networks,
    qos,
    quotas,
    remote,
    resource_groups,
    retired,
    routing,
    scaling,
    scaling_policies,
    senlin,
    service_chaining,
    swift,
    trove,
    volume_types,
    vpc,
    vpn,
    wait_conditions,
    zaqar,
    zun,
)

OWN = (
    heat,
    nested,
    resource_groups,
    scaling,
    launch_configurations,
    scaling_policies,
    health_policies,
    wait_conditions,
    configs,
    deployments,
    deployment_groups,
    access,
    delay,
    remote,
    senlin,
)
CLOUDS = (
    *(nova, compute, neutron, routing, qos, provider_networks, gateways, vpn, firewall, service_chaining),
    *(cinder, volume_types, octavia, layer7_policies, octavia_offers, lbaas_v2, lbaas_v1, quotas),
)
EC2 = (ec2, vpc)
SERVICES = (
    *(swift, glance, keystone, barbican, aodh, designate, mistral, manila, magnum, trove, zaqar, zun, blazar, ironic),
)
FAMILIES = (*OWN, *CLOUDS, *EC2, *SERVICES, retired)
