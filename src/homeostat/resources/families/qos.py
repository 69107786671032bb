"""Types of quality of service in networking: policies, and the rules that they hold."""

from homeostat.resources.families.neutron import NetworkingType, link, owner
from homeostat.resources.schema import Attribute, Property, Schema, ValueType, between, boolean, integer, one_of, text

DSCP_MARKS = (0, *range(8, 42, 2), 46, 48, 56)
"""DSCP marks that networking accepts (differentiated services, RFC 2474)."""


class QoSPolicy(NetworkingType):
    name = "OS::Neutron::QoSPolicy"
    kind = "qos_policy"
    description = "A policy on how well traffic is served; rules say what it holds."
    properties = {
        "name": text("Name of the policy.", update=True),
        "description": text("Description of the policy.", update=True),
        "shared": boolean("All projects may use it.", default=False, update=True),
        "tenant_id": owner(),
    }
    attributes = {"rules": Attribute("Its rules.", ValueType.LIST)}


def _rule(**limits: Property) -> Schema:
    """Return the properties of a rule: its limits, its policy and its owner."""
    return {
        **limits,
        "policy": link("Policy it belongs to.", "qos_policy", required=True),
        "tenant_id": owner(),
    }


def _way(*more: str) -> Property:
    ways = (*more, "egress", "ingress")
    return text("Way of the traffic.", default="egress", update=True, constraints=(one_of(*ways),))


class QoSBandwidthLimitRule(NetworkingType):
    name = "OS::Neutron::QoSBandwidthLimitRule"
    kind = "qos_bandwidth_limit_rule"
    description = "A rule that limits the bandwidth of a port."
    properties = _rule(
        max_kbps=integer("Most kilobits a second.", required=True, update=True, constraints=(between(0),)),
        max_burst_kbps=integer(
            "Most kilobits in a burst; 0 leaves it to the cloud.", default=0, update=True, constraints=(between(0),)
        ),
        direction=_way(),
    )


class QoSDscpMarkingRule(NetworkingType):
    name = "OS::Neutron::QoSDscpMarkingRule"
    kind = "qos_dscp_marking_rule"
    description = "A rule that marks the packets of a port."
    properties = _rule(
        dscp_mark=integer("Mark of the packets.", required=True, update=True, constraints=(one_of(*DSCP_MARKS),)),
    )


class QoSMinimumBandwidthRule(NetworkingType):
    name = "OS::Neutron::QoSMinimumBandwidthRule"
    kind = "qos_minimum_bandwidth_rule"
    description = "A rule that guarantees bandwidth to a port."
    properties = _rule(
        min_kbps=integer("Kilobits a second at least.", required=True, update=True, constraints=(between(0),)),
        direction=_way(),
    )


class QoSMinimumPacketRateRule(NetworkingType):
    name = "OS::Neutron::QoSMinimumPacketRateRule"
    kind = "qos_minimum_packet_rate_rule"
    description = "A rule that guarantees a rate of packets to a port."
    properties = _rule(
        min_kpps=integer(
            "Packets a second at least, in thousands.", required=True, update=True, constraints=(between(0),)
        ),
        direction=_way("any"),
    )


TYPES = [
    QoSPolicy,
    QoSBandwidthLimitRule,
    QoSDscpMarkingRule,
    QoSMinimumBandwidthRule,
    QoSMinimumPacketRateRule,
]
