"""Networking for operators: quality of service, segments, address pools, sharing and metering."""

from homeostat.kinds.base import BOOLEAN, INTEGER, LIST, TEXT, Kind
from homeostat.kinds.network import NETWORKING_STATUSES

QOS_POLICY = Kind(
    name="qos_policy",
    description="A QoS policy for traffic; its rules are things of their own.",
    fixed={
        "tenant_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "shared": BOOLEAN,
        "description": TEXT,
    },
    reported={
        "rules": LIST,
    },
    statuses=NETWORKING_STATUSES,
)
QOS_BANDWIDTH_LIMIT_RULE = Kind(
    name="qos_bandwidth_limit_rule",
    description="A rule that limits the bandwidth of a port.",
    fixed={
        "policy": TEXT,
        "tenant_id": TEXT,
    },
    mutable={
        "max_kbps": INTEGER,
        "max_burst_kbps": INTEGER,
        "direction": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
QOS_DSCP_MARKING_RULE = Kind(
    name="qos_dscp_marking_rule",
    description="A rule that marks the packets of a port.",
    fixed={
        "policy": TEXT,
        "tenant_id": TEXT,
    },
    mutable={
        "dscp_mark": INTEGER,
    },
    statuses=NETWORKING_STATUSES,
)
QOS_MINIMUM_BANDWIDTH_RULE = Kind(
    name="qos_minimum_bandwidth_rule",
    description="A rule that guarantees bandwidth to a port.",
    fixed={
        "policy": TEXT,
        "tenant_id": TEXT,
    },
    mutable={
        "min_kbps": INTEGER,
        "direction": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
QOS_MINIMUM_PACKET_RATE_RULE = Kind(
    name="qos_minimum_packet_rate_rule",
    description="A rule that guarantees a rate of packets to a port.",
    fixed={
        "policy": TEXT,
        "tenant_id": TEXT,
    },
    mutable={
        "min_kpps": INTEGER,
        "direction": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
SEGMENT = Kind(
    name="segment",
    description="A part of a network that is one link.",
    fixed={
        "network_id": TEXT,
        "network_type": TEXT,
        "physical_network": TEXT,
        "segmentation_id": INTEGER,
    },
    mutable={
        "name": TEXT,
        "description": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
ADDRESS_SCOPE = Kind(
    name="address_scope",
    description="A range within which addresses are unique, for pools to be in.",
    fixed={
        "ip_version": INTEGER,
        "tenant_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "shared": BOOLEAN,
    },
    statuses=NETWORKING_STATUSES,
)
SUBNETPOOL = Kind(
    name="subnetpool",
    description="A pool that subnets take their ranges from.",
    fixed={
        "shared": BOOLEAN,
        "tenant_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "prefixes": LIST,
        "is_default": BOOLEAN,
        "address_scope_id": TEXT,
        "default_quota": INTEGER,
        "default_prefixlen": INTEGER,
        "min_prefixlen": INTEGER,
        "max_prefixlen": INTEGER,
        "tags": LIST,
    },
    statuses=NETWORKING_STATUSES,
)
RBAC_POLICY = Kind(
    name="rbac_policy",
    description="A permission for one project to use a networking object of another.",
    fixed={
        "object_type": TEXT,
        "action": TEXT,
        "object_id": TEXT,
        "tenant_id": TEXT,
    },
    mutable={
        "target_tenant": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
METERING_LABEL = Kind(
    name="metering_label",
    description="A label under which measured traffic is counted.",
    fixed={
        "name": TEXT,
        "shared": BOOLEAN,
        "description": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
METERING_RULE = Kind(
    name="metering_rule",
    description="A rule for which traffic counts under a label.",
    fixed={
        "metering_label_id": TEXT,
        "remote_ip_prefix": TEXT,
        "direction": TEXT,
        "excluded": BOOLEAN,
    },
    statuses=NETWORKING_STATUSES,
)

KINDS = (
    QOS_POLICY,
    QOS_BANDWIDTH_LIMIT_RULE,
    QOS_DSCP_MARKING_RULE,
    QOS_MINIMUM_BANDWIDTH_RULE,
    QOS_MINIMUM_PACKET_RATE_RULE,
    SEGMENT,
    ADDRESS_SCOPE,
    SUBNETPOOL,
    RBAC_POLICY,
    METERING_LABEL,
    METERING_RULE,
)
