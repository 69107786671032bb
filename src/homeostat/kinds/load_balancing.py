"""Load balancing."""

from homeostat.kinds.base import BOOLEAN, INTEGER, LIST, MAP, TEXT, Field, FieldType, Kind, Statuses
from homeostat.model.observed import Remedy

STATUSES = Statuses(
    ready=frozenset({"active", "online"}),
    busy=frozenset({"building", "deleting", "pending_create", "pending_delete", "pending_update"}),
    broken={"error": Remedy.RECREATE},
)
STATUSES_OF_L7_POLICY = Statuses(
    ready=frozenset({"active", "online"}),
    busy=frozenset({"building", "deleting", "pending_create", "pending_delete", "pending_update"}),
)

LOAD_BALANCER = Kind(
    name="load_balancer",
    description="A load balancer with an address of its own.",
    fixed={
        "vip_subnet": TEXT,
        "vip_network": TEXT,
        "provider": TEXT,
        "vip_address": TEXT,
        "tenant_id": TEXT,
        "flavor": TEXT,
        "availability_zone": TEXT,
    },
    mutable={
        "name": TEXT,
        "description": TEXT,
        "admin_state_up": BOOLEAN,
    },
    reported={
        "status": TEXT,
        "vip_port_id": TEXT,
        "pools": LIST,
    },
    statuses=Statuses(
        ready=frozenset({"active", "online"}),
        busy=frozenset({"building", "deleting", "pending_create", "pending_delete", "pending_update"}),
        operations={"error": "start", "stopped": "start"},
    ),
    operations={
        "start": "Only where it has a process that can die; its status is then `stopped`.",
        "delete_with_parts": (
            "Its argument `parts` ({kind: [handle]}) lists the parts that may be deleted with it. If it has others, "
            "it is refused for good and nothing is deleted."
        ),
    },
    parts=("listener", "pool", "pool_member", "health_monitor", "l7_policy", "l7_rule"),
    notes=(
        "It may be created without vip_subnet: the cloud chooses one, of the network vip_network if that is given.",
        "`delete` is refused as long as it has parts.",
    ),
)
LISTENER = Kind(
    name="listener",
    description="A port on which a load balancer takes connections.",
    fixed={
        "protocol_port": INTEGER,
        "protocol": TEXT,
        "loadbalancer": TEXT,
        "tenant_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "admin_state_up": BOOLEAN,
        "description": TEXT,
        "connection_limit": INTEGER,
        "default_pool": TEXT,
        "default_tls_container_ref": TEXT,
        "sni_container_refs": LIST,
        "allowed_cidrs": LIST,
    },
    reported={
        "status": TEXT,
    },
    statuses=Statuses(
        ready=frozenset({"active", "online"}),
        busy=frozenset({"building", "deleting", "pending_create", "pending_delete", "pending_update", "stopped"}),
        broken={"error": Remedy.UPDATE},
    ),
)
POOL = Kind(
    name="pool",
    description="A pool of servers that share the connections of a load balancer.",
    fixed={
        "listener": TEXT,
        "protocol": TEXT,
        "loadbalancer": TEXT,
    },
    mutable={
        "name": TEXT,
        "admin_state_up": BOOLEAN,
        "description": TEXT,
        "lb_algorithm": TEXT,
        "tls_enabled": BOOLEAN,
        "session_persistence": MAP,
    },
    reported={
        "status": TEXT,
        "members": LIST,
        "healthmonitor_id": TEXT,
    },
    statuses=Statuses(
        ready=frozenset({"active", "online"}),
        busy=frozenset({"building", "deleting", "pending_create", "pending_delete", "pending_update"}),
        broken={"error": Remedy.UPDATE},
    ),
)
POOL_MEMBER = Kind(
    name="pool_member",
    description="One server of a pool.",
    fixed={
        "pool": TEXT,
        "address": TEXT,
        "protocol_port": INTEGER,
        "monitor_address": TEXT,
        "monitor_port": INTEGER,
        "subnet": TEXT,
        "server": TEXT,
    },
    mutable={
        "weight": INTEGER,
        "admin_state_up": BOOLEAN,
        "tags": LIST,
    },
    reported={
        "status": TEXT,
        "operating_status": Field(FieldType.TEXT, "online|error|offline|no_monitor|draining"),
    },
    statuses=STATUSES,
    notes=(
        "It may be created with `server` in place of address: the server's first address, on its subnet if it has one.",
    ),
)
HEALTH_MONITOR = Kind(
    name="health_monitor",
    description="A check of which members of a pool are healthy.",
    fixed={
        "pool": TEXT,
        "type": TEXT,
        "tenant_id": TEXT,
    },
    mutable={
        "admin_state_up": BOOLEAN,
        "delay": INTEGER,
        "max_retries": INTEGER,
        "timeout": INTEGER,
        "expected_codes": TEXT,
        "http_method": TEXT,
        "url_path": TEXT,
    },
    reported={
        "status": TEXT,
    },
    statuses=STATUSES,
)
L7_POLICY = Kind(
    name="l7_policy",
    description="A layer 7 policy: what a listener does with requests that match its rules.",
    fixed={
        "listener": TEXT,
    },
    mutable={
        "name": TEXT,
        "admin_state_up": BOOLEAN,
        "action": TEXT,
        "description": TEXT,
        "redirect_pool": TEXT,
        "position": INTEGER,
        "redirect_url": TEXT,
    },
    reported={
        "status": TEXT,
        "rules": LIST,
    },
    statuses=STATUSES_OF_L7_POLICY,
)
L7_RULE = Kind(
    name="l7_rule",
    description="A layer 7 rule; a request must match all rules of the policy.",
    fixed={
        "l7policy": TEXT,
    },
    mutable={
        "admin_state_up": BOOLEAN,
        "type": TEXT,
        "compare_type": TEXT,
        "invert": BOOLEAN,
        "key": TEXT,
        "value": TEXT,
    },
    reported={
        "status": TEXT,
    },
    statuses=STATUSES_OF_L7_POLICY,
)
LOAD_BALANCER_FLAVOR = Kind(
    name="load_balancer_flavor",
    description="A flavor of load balancers that users may choose.",
    fixed={
        "flavor_profile_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "description": TEXT,
        "enabled": BOOLEAN,
    },
)
LOAD_BALANCER_FLAVOR_PROFILE = Kind(
    name="load_balancer_flavor_profile",
    description="A flavor profile: what a provider makes of a flavor of load balancers.",
    mutable={
        "name": TEXT,
        "flavor_data": TEXT,
        "provider_name": TEXT,
    },
)
LOAD_BALANCER_ZONE = Kind(
    name="load_balancer_zone",
    description="An availability zone of load balancers that users may choose.",
    fixed={
        "availability_zone_profile_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "description": TEXT,
        "enabled": BOOLEAN,
    },
)
LOAD_BALANCER_ZONE_PROFILE = Kind(
    name="load_balancer_zone_profile",
    description="An availability zone profile: what a provider makes of an availability zone of load balancers.",
    mutable={
        "name": TEXT,
        "availability_zone_data": TEXT,
        "provider_name": TEXT,
    },
)
LOAD_BALANCER_QUOTA = Kind(
    name="load_balancer_quota",
    description="The load balancing quota of a project.",
    fixed={
        "project": TEXT,
    },
    mutable={
        "listener": INTEGER,
        "healthmonitor": INTEGER,
        "loadbalancer": INTEGER,
        "pool": INTEGER,
        "member": INTEGER,
    },
    notes=("Deleting one restores the defaults of the cloud.",),
)

KINDS = (
    LOAD_BALANCER,
    LISTENER,
    POOL,
    POOL_MEMBER,
    HEALTH_MONITOR,
    L7_POLICY,
    L7_RULE,
    LOAD_BALANCER_FLAVOR,
    LOAD_BALANCER_FLAVOR_PROFILE,
    LOAD_BALANCER_ZONE,
    LOAD_BALANCER_ZONE_PROFILE,
    LOAD_BALANCER_QUOTA,
)
