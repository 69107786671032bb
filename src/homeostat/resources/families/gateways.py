"""Types of networking that connect networks with hardware, and that measure traffic."""

from typing import Any

from homeostat.resources import comparison
from homeostat.resources.base import Props
from homeostat.resources.families.neutron import NetworkingType, link
from homeostat.resources.rules import is_set, missing, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    between,
    boolean,
    integer,
    length,
    listing,
    mapping,
    one_of,
    text,
)


class L2Gateway(NetworkingType):
    name = "OS::Neutron::L2Gateway"
    kind = "l2_gateway"
    description = "Hardware devices that lead from virtual networks to physical ones."
    properties = {
        "name": text("Name of the gateway.", required=True, update=True),
        "devices": listing(
            "Its devices.",
            required=True,
            update=True,
            same=comparison.unordered,
            items=mapping(
                fields={
                    "device_name": text("Name of the device.", required=True),
                    "interfaces": listing(
                        "Its interfaces.",
                        required=True,
                        items=mapping(
                            fields={
                                "name": text("Name of the interface.", required=True),
                                "segmentation_id": listing("Numbers of the segments there, such as VLANs."),
                            }
                        ),
                    ),
                }
            ),
        ),
    }


class L2GatewayConnection(NetworkingType):
    name = "OS::Neutron::L2GatewayConnection"
    kind = "l2_gateway_connection"
    description = "Leads a network through a gateway to a physical one."
    properties = {
        "l2_gateway_id": text("The gateway.", required=True, same=comparison.reference),
        "network_id": link("The network.", "network", required=True),
        "segmentation_id": text("Number of the segment there; not where the gateway's interfaces name it."),
    }


class NetworkGateway(NetworkingType):
    name = "OS::Neutron::NetworkGateway"
    kind = "network_gateway"
    description = "A gateway between networks and devices of the physical network, as NSX offers it."
    properties = {
        "name": text("Name of the gateway.", update=True),
        "devices": listing(
            "Its devices; a change makes a new gateway unless the cloud can change them.",
            required=True,
            update=True,
            same=comparison.unordered,
            items=mapping(
                fields={
                    "id": text("Id of the device.", required=True),
                    "interface_name": text("Name of its interface.", required=True),
                }
            ),
            constraints=(length(1),),
        ),
        "connections": listing(
            "Networks that are connected.",
            default=[],
            update=True,
            same=comparison.unordered,
            items=mapping(
                fields={
                    "network_id": link("Network; use network.", "network", hidden=True),
                    "network": link("The network.", "network"),
                    "segmentation_type": text(
                        "How it is carried there.", default="flat", constraints=(one_of("flat", "vlan"),)
                    ),
                    "segmentation_id": integer("Its number there.", constraints=(between(0, 4094),)),
                }
            ),
        ),
    }
    attributes = {"default": Attribute("Whether it is the gateway of everything that names none.")}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        connections = values.get("connections")
        for index, connection in enumerate(connections if isinstance(connections, list) else ()):
            if connection is not UNKNOWN:
                _check_connection(connection, (*path, "connections", index))

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        spec["connections"] = [_connection(connection) for connection in values.get("connections") or []]
        return spec


def _check_connection(values: Props, path: tuple[str | int, ...]) -> None:
    if not (is_set(values, "network") or is_set(values, "network_id")):
        raise missing(path, "network")
    kind, number = values.get("segmentation_type", "flat"), values.get("segmentation_id")
    require(kind != "vlan" or number is not None, "segmentation_id is needed for type vlan", path)
    require(kind != "flat" or number in (None, 0, UNKNOWN), "segmentation_id must be 0 for type flat", path)


def _connection(values: Props) -> dict[str, Any]:
    network = {"network_id": values.get("network") or values.get("network_id")}
    numbered = {name: values[name] for name in ("segmentation_type", "segmentation_id") if values.get(name) is not None}
    return {**network, **numbered}


class MeteringLabel(NetworkingType):
    name = "OS::Neutron::MeteringLabel"
    kind = "metering_label"
    description = "What measured traffic is counted under."
    properties = {
        "name": text("Name of the label."),
        "description": text("Description of the label."),
        "shared": boolean("All projects use it.", default=False),
    }
    attributes = {
        "name": Attribute("Name of the label."),
        "description": Attribute("Description of the label."),
        "shared": Attribute("Whether all projects use it."),
    }


class MeteringRule(NetworkingType):
    name = "OS::Neutron::MeteringRule"
    kind = "metering_rule"
    description = "Which traffic counts under a label."
    properties = {
        "metering_label_id": text("The label.", required=True, same=comparison.reference),
        "remote_ip_prefix": text("Network of the other side.", required=True),
        "direction": text(
            "Way of the traffic.", default="ingress", any_case=True, constraints=(one_of("ingress", "egress"),)
        ),
        "excluded": boolean("It does not count.", default=False),
    }
    attributes = {
        "direction": Attribute("Way of the traffic."),
        "excluded": Attribute("Whether it does not count."),
        "metering_label_id": Attribute("The label."),
        "remote_ip_prefix": Attribute("Network of the other side."),
    }


TYPES = [L2Gateway, L2GatewayConnection, NetworkGateway, MeteringLabel, MeteringRule]
