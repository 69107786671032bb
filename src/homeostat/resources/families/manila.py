"""Types of shared file systems."""

from typing import Any

from homeostat.resources import comparison
from homeostat.resources.base import Props, ResourceType, payload
from homeostat.resources.rules import is_set, require
from homeostat.resources.schema import (
    Attribute,
    ValueType,
    boolean,
    integer,
    link,
    listing,
    mapping,
    one_of,
    text,
)
from homeostat.resources.support import Support


class Share(ResourceType):
    """A share; a failed one may hold data, so it is left to the user (CV13)."""

    name = "OS::Manila::Share"
    kind = "share"
    support = Support(version="5.0.0")
    description = "A file system that several servers may mount."
    properties = {
        "share_protocol": text(
            "Protocol to mount it with.",
            required=True,
            constraints=(one_of("NFS", "CIFS", "GlusterFS", "HDFS", "CEPHFS"),),
        ),
        "size": integer("Size in GiB.", required=True),
        "snapshot": link("Snapshot to start from.", "manila.share_snapshot"),
        "name": text("Name of the share.", update=True),
        "metadata": mapping("Metadata of the share.", update=True),
        "share_network": link("Network of shares to be on.", "manila.share_network"),
        "description": text("Description of the share.", update=True),
        "share_type": link("Type of the share.", "manila.share_type"),
        "is_public": boolean("All projects see it.", default=False, update=True),
        "access_rules": listing(
            "Who may mount it.",
            default=[],
            update=True,
            same=comparison.unordered,
            items=mapping(
                fields={
                    "access_to": text("Address, user or certificate.", required=True),
                    "access_type": text(
                        "What access_to is.", required=True, constraints=(one_of("ip", "user", "cert", "cephx"),)
                    ),
                    "access_level": text("Read only, or read and write.", constraints=(one_of("ro", "rw"),)),
                }
            ),
        ),
    }
    attributes = {
        "availability_zone": Attribute("Availability zone it is in."),
        "host": Attribute("Host that it is on."),
        "export_locations": Attribute("Where to mount it from.", ValueType.LIST),
        "share_server_id": Attribute("Server that serves it."),
        "created_at": Attribute("When it was created."),
        "status": Attribute("Status of the share."),
        "project_id": Attribute("Project that owns it."),
    }
    renamed = {
        "share_protocol": "share_proto",
        "snapshot": "snapshot_id",
        "share_network": "share_network_id",
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        return {**spec, "access_rules": payload(spec.get("access_rules") or [])}


class ShareNetwork(ResourceType):
    name = "OS::Manila::ShareNetwork"
    kind = "share_network"
    support = Support(version="5.0.0")
    description = "The network that servers of shares are on."
    properties = {
        "name": text("Name of the share network.", update=True),
        "neutron_network": link("Network.", "neutron.network", update=True),
        "neutron_subnet": link("Subnet.", "neutron.subnet", update=True),
        "nova_network": text("Network of a service that is gone.", update=True, hidden=True),
        "description": text("Description of the share network.", update=True),
        "security_services": listing(
            "Security services.", default=[], update=True, items=text(), same=comparison.references
        ),
    }
    attributes = {
        "segmentation_id": Attribute("VLAN or tunnel of the network."),
        "cidr": Attribute("Range of addresses of the subnet."),
        "ip_version": Attribute("Version of IP."),
        "network_type": Attribute("How the network is made."),
    }
    renamed = {"neutron_network": "neutron_net_id", "neutron_subnet": "neutron_subnet_id"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        message = "nova_network is not possible any more: use neutron_network and neutron_subnet"
        require(not is_set(values, "nova_network"), message, path)
        alone = is_set(values, "neutron_network") and not is_set(values, "neutron_subnet")
        require(not alone, "neutron_network needs neutron_subnet", path)


class ShareType(ResourceType):
    name = "OS::Manila::ShareType"
    kind = "share_type"
    support = Support(version="5.0.0")
    description = "A type of shares."
    properties = {
        "name": text("Name of the share type.", required=True),
        "is_public": boolean("All projects may use it.", default=True),
        "driver_handles_share_servers": boolean("The driver makes servers of shares.", required=True),
        "extra_specs": mapping("Further demands.", update=True),
        "snapshot_support": boolean("Snapshots can be made of such shares.", default=True),
    }


class SecurityService(ResourceType):
    name = "OS::Manila::SecurityService"
    kind = "share_security_service"
    support = Support(version="5.0.0")
    description = "Who knows the users of shares."
    properties = {
        "name": text("Name of the security service.", update=True),
        "type": text("Kind of service.", required=True, constraints=(one_of("ldap", "kerberos", "active_directory"),)),
        "dns_ip": text("Address of the DNS server to use.", update=True),
        "server": text("Its host.", update=True),
        "domain": text("Its domain.", update=True),
        "user": text("User to log in as.", update=True),
        "password": text("Password of the user.", update=True, drift=False),
        "description": text("Description of the security service.", update=True),
    }


TYPES: list[type[ResourceType]] = [Share, ShareNetwork, ShareType, SecurityService]
