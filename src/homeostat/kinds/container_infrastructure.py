"""Container clusters, and containers that run alone."""

from homeostat.kinds.base import BOOLEAN, INTEGER, LIST, MAP, TEXT, Kind, Statuses, listing, mapping
from homeostat.model.observed import Remedy

CLUSTER_TEMPLATE = Kind(
    name="cluster_template",
    description="What container clusters are made from.",
    fixed={
        "name": TEXT,
        "image_id": TEXT,
        "external_network_id": TEXT,
        "docker_storage_driver": TEXT,
        "coe": TEXT,
        "tls_disabled": BOOLEAN,
        "registry_enabled": BOOLEAN,
        "server_type": TEXT,
        "master_lb_enabled": BOOLEAN,
        "floating_ip_enabled": BOOLEAN,
        "flavor_id": TEXT,
        "master_flavor_id": TEXT,
        "keypair_id": TEXT,
        "fixed_network": TEXT,
        "fixed_subnet": TEXT,
        "dns_nameserver": TEXT,
        "docker_volume_size": INTEGER,
        "network_driver": TEXT,
        "volume_driver": TEXT,
        "http_proxy": TEXT,
        "https_proxy": TEXT,
        "no_proxy": TEXT,
        "labels": MAP,
    },
    mutable={
        "public": BOOLEAN,
    },
)
CONTAINER_CLUSTER = Kind(
    name="container_cluster",
    description="A cluster that runs containers.",
    fixed={
        "name": TEXT,
        "cluster_template_id": TEXT,
        "keypair": TEXT,
    },
    mutable={
        "node_count": INTEGER,
        "master_count": INTEGER,
        "create_timeout": INTEGER,
        "discovery_url": TEXT,
    },
    reported={
        "status": TEXT,
        "api_address": TEXT,
        "master_addresses": listing("[address]"),
        "node_addresses": listing("[address]"),
        "stack_id": TEXT,
        "coe_version": TEXT,
        "container_version": TEXT,
        "status_reason": TEXT,
        "fault": TEXT,
    },
    statuses=Statuses(
        ready=frozenset({"adopt_complete", "check_complete", "create_complete", "resume_complete", "update_complete"}),
        busy=frozenset({"create_in_progress", "delete_in_progress", "rollback_in_progress", "update_in_progress"}),
        broken={
            "create_failed": Remedy.RECREATE,
            "delete_complete": Remedy.RECREATE,
            "delete_failed": Remedy.MANUAL,
            "update_failed": Remedy.MANUAL,
        },
    ),
)
APP_CONTAINER = Kind(
    name="app_container",
    description="A container that runs an application.",
    fixed={
        "image": TEXT,
        "security_groups": LIST,
        "command": TEXT,
        "environment": MAP,
        "workdir": TEXT,
        "labels": MAP,
        "image_pull_policy": TEXT,
        "interactive": BOOLEAN,
        "image_driver": TEXT,
        "hints": MAP,
        "hostname": TEXT,
        "mounts": LIST,
    },
    mutable={
        "name": TEXT,
        "cpu": INTEGER,
        "memory": INTEGER,
        "networks": LIST,
    },
    reported={
        "status": TEXT,
        "addresses": mapping("{network: [{addr, version, port}]}"),
    },
    statuses=Statuses(
        ready=frozenset({"running", "stopped"}),
        busy=frozenset({"created", "creating", "deleting", "rebuilding", "restarting"}),
        broken={"dead": Remedy.RECREATE, "deleted": Remedy.RECREATE, "error": Remedy.RECREATE},
        operations={"paused": "unpause"},
    ),
    operations={"start": "", "unpause": ""},
)

KINDS = (
    CLUSTER_TEMPLATE,
    CONTAINER_CLUSTER,
    APP_CONTAINER,
)
