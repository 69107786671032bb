"""Clusters of servers behind a load balancer of a real Octavia."""

from tests.openstack.serving import Wire


def of(resource: str) -> dict[str, str]:
    return {"get_resource": resource}


def policy(kind: str, version: str, properties: Wire) -> Wire:
    return {
        "type": "OS::Senlin::Policy",
        "properties": {"type": f"senlin.policy.{kind}-{version}", "properties": properties},
    }


HEALTH = {
    "detection": {"interval": 5, "node_update_timeout": 0, "detection_modes": [{"type": "LB_STATUS_POLLING"}]},
    "recovery": {"actions": [{"name": "RECREATE"}]},
}


def farm(nodes: int, *policies: str, health: Wire = HEALTH) -> Wire:
    """A cluster with a network of its own, and these of its policies attached. health — of the policy of that name."""
    server = {"image": "mini", "flavor": "m1.tiny", "networks": [{"network": of("net"), "subnet": of("subnet")}]}
    balanced = {
        "pool": {"subnet": of("subnet"), "protocol": "TCP", "protocol_port": 8080},
        "vip": {"subnet": of("subnet"), "protocol": "TCP", "protocol_port": 80},
        "health_monitor": {"type": "TCP", "delay": 5, "timeout": 3, "max_retries": 2},
    }
    bound = [{"policy": of(each), "enabled": True} for each in policies]
    return {
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {"type": "OS::Neutron::Subnet", "properties": {"network": of("net"), "cidr": "10.8.0.0/24"}},
        "profile": {
            "type": "OS::Senlin::Profile",
            "properties": {"type": "os.nova.server-1.0", "properties": server},
        },
        "balancing": policy("loadbalance", "1.3", balanced),
        "apart": policy("affinity", "1.0", {"servergroup": {"policies": "soft-anti-affinity"}}),
        "leaving": policy("deletion", "1.1", {"criteria": "OLDEST_FIRST", "grace_period": 1}),
        "health": policy("health", "1.2", health),
        "cluster": {
            "type": "OS::Senlin::Cluster",
            "properties": {"profile": of("profile"), "desired_capacity": nodes, "policies": bound},
        },
    }
