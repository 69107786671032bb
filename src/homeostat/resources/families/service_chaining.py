"""Types that redirect or copy traffic to other ports: service function chains and taps."""

from homeostat.resources import comparison
from homeostat.resources.base import Props
from homeostat.resources.constraints import CIDR
from homeostat.resources.families.neutron import NetworkingType, link
from homeostat.resources.rules import is_set, require
from homeostat.resources.schema import (
    Property,
    between,
    custom,
    integer,
    listing,
    mapping,
    one_of,
    pattern,
    text,
)
from homeostat.resources.support import unsupported

RANGES = r"^([0-9]+(-[0-9]+)?)(,([0-9]+(-[0-9]+)?))*$"
"""Pattern of numbers and ranges of numbers, such as 10,20-30."""
_CORRELATIONS = "How packets are marked on their way."


def _port_number(description: str) -> Property:
    return integer(description, constraints=(between(1, 65535),))


def _links(description: str, kind: str, same: comparison.Rule = comparison.references, **options: object) -> Property:
    return listing(description, update=True, items=text(constraints=(custom(f"neutron.{kind}"),)), same=same, **options)


class FlowClassifier(NetworkingType):
    name = "OS::Neutron::FlowClassifier"
    kind = "flow_classifier"
    description = "Says which traffic goes through a chain."
    support = unsupported(version="8.0.0")
    properties = {
        "name": text("Name of the classifier.", update=True),
        "description": text("Description of the classifier.", update=True),
        "protocol": text("Protocol of the traffic.", any_case=True, constraints=(one_of("tcp", "udp", "icmp"),)),
        "ethertype": text("Kind of packets.", default="IPv4", any_case=True, constraints=(one_of("IPv4", "IPv6"),)),
        "source_ip_prefix": text("Where it comes from.", constraints=(CIDR,)),
        "destination_ip_prefix": text("Where it goes to.", constraints=(CIDR,)),
        "source_port_range_min": _port_number("First port that it comes from."),
        "source_port_range_max": _port_number("Last port that it comes from."),
        "destination_port_range_min": _port_number("First port that it goes to."),
        "destination_port_range_max": _port_number("Last port that it goes to."),
        "logical_source_port": link("Port of networking that it comes from.", "port"),
        "logical_destination_port": link("Port of networking that it goes to.", "port"),
        "l7_parameters": mapping("Settings of higher layers; no cloud offers them."),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        for way in ("source", "destination"):
            low, high = values.get(f"{way}_port_range_min"), values.get(f"{way}_port_range_max")
            if isinstance(low, int) and isinstance(high, int):
                require(low <= high, f"{way}_port_range_min is more than {way}_port_range_max", path)
        ranged = any(is_set(values, name) for name in values if name.endswith(("_min", "_max")))
        require(not ranged or is_set(values, "protocol"), "ports need a protocol: set tcp or udp", path)


class PortPair(NetworkingType):
    name = "OS::Neutron::PortPair"
    kind = "port_pair"
    description = "The two ports of one service that traffic goes through."
    support = unsupported(version="7.0.0")
    properties = {
        "name": text("Name of the pair.", update=True),
        "description": text("Description of the pair.", update=True),
        "ingress": link("Port that traffic goes in by.", "port", required=True),
        "egress": link("Port that it comes out by.", "port", required=True),
        "service_function_parameters": mapping(_CORRELATIONS, default={"correlation": None}),
    }


class PortPairGroup(NetworkingType):
    name = "OS::Neutron::PortPairGroup"
    kind = "port_pair_group"
    description = "Services that do the same, and share the traffic."
    support = unsupported(version="8.0.0")
    properties = {
        "name": text("Name of the group.", update=True),
        "description": text("Description of the group.", update=True),
        "port_pairs": _links("Its pairs.", "port_pair", required=True),
    }


class PortChain(NetworkingType):
    name = "OS::Neutron::PortChain"
    kind = "port_chain"
    description = "Services that traffic goes through one after the other."
    support = unsupported(version="8.0.0")
    properties = {
        "name": text("Name of the chain.", update=True),
        "description": text("Description of the chain.", update=True),
        "port_pair_groups": _links(
            "Its groups in their order.", "port_pair_group", comparison.references_in_order, required=True
        ),
        "flow_classifiers": _links("Which traffic goes through it.", "flow_classifier", default=[]),
        "chain_parameters": mapping(_CORRELATIONS, default={"correlation": "mpls"}),
    }


class TapService(NetworkingType):
    name = "OS::Neutron::TaaS::TapService"
    kind = "tap_service"
    description = "A port that gets copies of traffic."
    properties = {
        "name": text("Name of the service.", default="", update=True),
        "description": text("Description of the service.", default="", update=True),
        "port": link("Port that gets the copies.", "port", required=True),
    }
    renamed = {"port": "port_id"}


class TapFlow(NetworkingType):
    name = "OS::Neutron::TaaS::TapFlow"
    kind = "tap_flow"
    description = "Traffic that is copied to a tap service."
    properties = {
        "name": text("Name of the flow.", default="", update=True),
        "description": text("Description of the flow.", default="", update=True),
        "port": link("Port whose traffic is copied.", "port", required=True),
        "tap_service": link("Service that gets the copies.", "taas.tap_service", required=True),
        "direction": text("Way of the traffic.", default="BOTH", constraints=(one_of("IN", "OUT", "BOTH"),)),
        "vlan_filter": text("VLANs whose traffic is copied, such as 10,20-30.", constraints=(pattern(RANGES),)),
    }
    renamed = {"port": "source_port", "tap_service": "tap_service_id"}


TYPES = [FlowClassifier, PortPair, PortPairGroup, PortChain, TapService, TapFlow]
