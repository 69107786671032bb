"""Networking for operators: quality of service, segments, address pools, sharing and metering."""

from homeostat.kinds.base import LIST, Kind
from homeostat.kinds.network import NETWORKING_STATUSES

KINDS = (
    Kind(
        "qos_policy",
        "A QoS policy for traffic; its rules are things of their own.",
        reported={"rules": LIST},
        statuses=NETWORKING_STATUSES,
    ),
    Kind("qos_bandwidth_limit_rule", "A rule that limits the bandwidth of a port.", statuses=NETWORKING_STATUSES),
    Kind("qos_dscp_marking_rule", "A rule that marks the packets of a port.", statuses=NETWORKING_STATUSES),
    Kind("qos_minimum_bandwidth_rule", "A rule that guarantees bandwidth to a port.", statuses=NETWORKING_STATUSES),
    Kind(
        "qos_minimum_packet_rate_rule",
        "A rule that guarantees a rate of packets to a port.",
        statuses=NETWORKING_STATUSES,
    ),
    Kind("segment", "A part of a network that is one link.", statuses=NETWORKING_STATUSES),
    Kind(
        "address_scope", "A range within which addresses are unique, for pools to be in.", statuses=NETWORKING_STATUSES
    ),
    Kind("subnetpool", "A pool that subnets take their ranges from.", statuses=NETWORKING_STATUSES),
    Kind(
        "rbac_policy",
        "A permission for one project to use a networking object of another.",
        statuses=NETWORKING_STATUSES,
    ),
    Kind("metering_label", "A label under which measured traffic is counted.", statuses=NETWORKING_STATUSES),
    Kind("metering_rule", "A rule for which traffic counts under a label.", statuses=NETWORKING_STATUSES),
)
