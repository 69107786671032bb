"""Types of bare metal."""

from homeostat.resources.base import ResourceType
from homeostat.resources.schema import Attribute, ValueType, boolean, link, mapping, text
from homeostat.resources.support import Support


class Port(ResourceType):
    name = "OS::Ironic::Port"
    kind = "baremetal_port"
    support = Support(version="13.0.0")
    description = "A network port of a machine."
    properties = {
        "node": link("The machine.", "ironic.node", required=True, update=True),
        "address": text("Hardware address of the port.", required=True, update=True),
        "portgroup": link("Group of ports it belongs to.", "ironic.portgroup", update=True),
        "local_link_connection": mapping("Switch and port of the switch that it is connected to.", update=True),
        "pxe_enabled": boolean("The machine may boot from it.", update=True),
        "physical_network": text("Physical network that it is connected to.", update=True),
        "extra": mapping("Metadata of the port.", update=True),
        "is_smartnic": boolean("It is the port of a smart NIC.", update=True),
    }
    attributes = {
        "address": Attribute("Hardware address of the port."),
        "node_uuid": Attribute("The machine."),
        "portgroup_uuid": Attribute("Group of ports it belongs to."),
        "local_link_connection": Attribute("What it is connected to.", ValueType.MAP),
        "pxe_enabled": Attribute("Whether the machine may boot from it.", ValueType.BOOLEAN),
        "physical_network": Attribute("Physical network that it is connected to."),
        "internal_info": Attribute("What the service keeps about it.", ValueType.MAP),
        "extra": Attribute("Metadata of the port.", ValueType.MAP),
        "is_smartnic": Attribute("Whether it is the port of a smart NIC.", ValueType.BOOLEAN),
    }
    renamed = {"node": "node_uuid", "portgroup": "portgroup_uuid"}


TYPES: list[type[ResourceType]] = [Port]
