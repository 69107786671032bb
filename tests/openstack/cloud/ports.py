"""Where the servers listen: each this far from the first port of the cloud."""

OFFSETS = {
    "keystone": 0,
    "placement": 1,
    "nova-api": 2,
    "glance-api": 3,
    "neutron-api": 4,
    "cinder-api": 5,
    "octavia-api": 6,
    "barbican-api": 7,
    "swift-proxy": 8,
    "designate-api": 9,
    "mistral-api": 10,
    "zaqar-api": 11,
    "aodh-api": 12,
    "manila-api": 13,
    "gnocchi-api": 14,
    "ironic-api": 15,
    "blazar-api": 16,
    "swift-account": 30,
    "swift-container": 31,
    "swift-object": 32,
    "mariadb": 50,
    "redis": 51,
}
RABBITMQ = 5672
"""All clouds of a machine share one RabbitMQ, in a virtual host each."""
