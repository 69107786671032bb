"""Types of virtual private networks: services, policies of key exchange and encryption, connections between sites."""

from homeostat.resources import comparison
from homeostat.resources.base import Props
from homeostat.resources.constraints import CIDR
from homeostat.resources.families.neutron import NetworkingType, link
from homeostat.resources.rules import require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Property,
    Schema,
    ValueType,
    boolean,
    integer,
    listing,
    mapping,
    one_of,
    text,
)

AUTHENTICATION = ("sha1", "sha256", "sha384", "sha512", "aes-xcbc", "aes-cmac")
_SIZES = (128, 192, 256)
ENCRYPTION = (
    "3des",
    *(f"aes-{size}" for size in _SIZES),
    *(f"aes-{size}-{mode}-{tag}" for mode in ("ccm", "gcm") for tag in (8, 12, 16) for size in _SIZES),
    *(f"aes-{size}-ctr" for size in _SIZES),
)
FORWARD_SECRECY = ("group2", "group5", *(f"group{number}" for number in range(14, 32)))


class VPNService(NetworkingType):
    name = "OS::Neutron::VPNService"
    kind = "vpn_service"
    description = "Lets a router connect a subnet with other sites."
    properties = {
        "name": text("Name of the service.", update=True),
        "description": text("Description of the service.", update=True),
        "admin_state_up": boolean("The service is switched on.", default=True, update=True),
        "subnet_id": link("Subnet; use subnet.", "subnet", hidden=True),
        "subnet": link("Subnet that is connected.", "subnet", required=True),
        "router_id": link("Router; use router.", "router", hidden=True),
        "router": link("Router that connects it.", "router", required=True),
    }
    attributes = {
        "admin_state_up": Attribute("Whether it is switched on."),
        "description": Attribute("Description of the service."),
        "name": Attribute("Name of the service."),
        "router_id": Attribute("Router that connects it."),
        "status": Attribute("Status of the service."),
        "subnet_id": Attribute("Subnet that is connected."),
        "tenant_id": Attribute("Project that owns it."),
    }
    renamed = {"subnet": "subnet_id", "router": "router_id"}
    deprecated_properties = {"subnet_id": "subnet", "router_id": "router"}
    # The cloud reports pending_create until the first connection uses the service: waiting for "active" would deadlock.


def _policy(*, update: bool) -> Schema:
    """Return the properties common to both types of policies.

    Args:
        update: Whether the properties can change while connections use the policy.
    """
    return {
        "auth_algorithm": text(
            "How data is authenticated.", default="sha1", update=update, constraints=(one_of(*AUTHENTICATION),)
        ),
        "encryption_algorithm": text(
            "How data is encrypted.", default="aes-128", update=update, constraints=(one_of(*ENCRYPTION),)
        ),
        "lifetime": mapping(
            "How long keys are used.",
            update=update,
            fields={
                "units": text("Unit.", default="seconds", constraints=(one_of("seconds", "kilobytes"),)),
                "value": integer("So many of them.", default=3600),
            },
        ),
        "pfs": text(
            "Group of perfect forward secrecy.",
            default="group5",
            update=update,
            constraints=(one_of(*FORWARD_SECRECY),),
        ),
    }


_POLICY_ATTRIBUTES = {
    "auth_algorithm": Attribute("How data is authenticated."),
    "description": Attribute("Description of the policy."),
    "encryption_algorithm": Attribute("How data is encrypted."),
    "lifetime": Attribute("How long keys are used.", ValueType.MAP),
    "name": Attribute("Name of the policy."),
    "pfs": Attribute("Group of perfect forward secrecy."),
    "tenant_id": Attribute("Project that owns it."),
}


class IKEPolicy(NetworkingType):
    name = "OS::Neutron::IKEPolicy"
    kind = "ike_policy"
    description = "How two sites exchange keys."
    properties = {
        "name": text("Name of the policy.", update=True),
        "description": text("Description of the policy.", update=True),
        **_policy(update=True),
        "phase1_negotiation_mode": text("How the exchange begins.", default="main", constraints=(one_of("main"),)),
        "ike_version": text("Version of the exchange.", default="v1", update=True, constraints=(one_of("v1", "v2"),)),
    }
    attributes = {
        **_POLICY_ATTRIBUTES,
        "ike_version": Attribute("Version of the exchange."),
        "phase1_negotiation_mode": Attribute("How the exchange begins."),
    }


class IPsecPolicy(NetworkingType):
    name = "OS::Neutron::IPsecPolicy"
    kind = "ipsec_policy"
    description = "How the data between two sites is protected."
    properties = {
        "name": text("Name of the policy.", update=True),
        "description": text("Description of the policy.", update=True),
        "transform_protocol": text(
            "Protocol of the protection.", default="esp", constraints=(one_of("esp", "ah", "ah-esp"),)
        ),
        "encapsulation_mode": text(
            "What is protected.", default="tunnel", constraints=(one_of("tunnel", "transport"),)
        ),
        **_policy(update=False),
    }
    attributes = {
        **_POLICY_ATTRIBUTES,
        "encapsulation_mode": Attribute("What is protected."),
        "transform_protocol": Attribute("Protocol of the protection."),
    }


def _part(description: str) -> Property:
    return text(description, required=True, same=comparison.reference)


class IPsecSiteConnection(NetworkingType):
    secretive = True
    name = "OS::Neutron::IPsecSiteConnection"
    kind = "ipsec_site_connection"
    description = "A protected connection to another site."
    properties = {
        "name": text("Name of the connection.", update=True),
        "description": text("Description of the connection.", update=True),
        "peer_address": text("Address or name of the other side's gateway.", required=True),
        "peer_id": text("How the other side identifies itself.", required=True),
        "peer_cidrs": listing("Networks of the other side.", required=True, items=text(constraints=(CIDR,))),
        "mtu": integer("Largest packet in bytes.", default=1500),
        "dpd": mapping(
            "What happens when the other side is silent.",
            fields={
                "actions": text(
                    "What is done then.",
                    default="hold",
                    constraints=(one_of("clear", "disabled", "hold", "restart", "restart-by-peer"),),
                ),
                "interval": integer("Seconds between questions.", default=30),
                "timeout": integer("Seconds of silence until it counts as dead.", default=120),
            },
        ),
        "psk": text("Secret that both sides know.", required=True),
        "initiator": text(
            "Who begins.", default="bi-directional", constraints=(one_of("bi-directional", "response-only"),)
        ),
        "admin_state_up": boolean("The connection is switched on.", default=True, update=True),
        "ikepolicy_id": _part("Policy of the key exchange."),
        "ipsecpolicy_id": _part("Policy of the protection."),
        "vpnservice_id": _part("Service that makes the connection."),
    }
    attributes = {
        "admin_state_up": Attribute("Whether it is switched on."),
        "auth_mode": Attribute("How the sides prove who they are."),
        "description": Attribute("Description of the connection."),
        "dpd": Attribute("What happens when the other side is silent.", ValueType.MAP),
        "ikepolicy_id": Attribute("Policy of the key exchange."),
        "initiator": Attribute("Who begins."),
        "ipsecpolicy_id": Attribute("Policy of the protection."),
        "mtu": Attribute("Largest packet in bytes."),
        "name": Attribute("Name of the connection."),
        "peer_address": Attribute("Address or name of the other side's gateway."),
        "peer_cidrs": Attribute("Networks of the other side.", ValueType.LIST),
        "peer_id": Attribute("How the other side identifies itself."),
        "psk": Attribute("Secret that both sides know.", secret=True),
        "route_mode": Attribute("How routes are made."),
        "status": Attribute("Status of the connection."),
        "tenant_id": Attribute("Project that owns it."),
        "vpnservice_id": Attribute("Service that makes the connection."),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        """Check that the peer counts as dead only after more than one unanswered probe."""
        silence = values.get("dpd")
        if isinstance(silence, dict):
            interval_s, limit_s = silence.get("interval", 30), silence.get("timeout", 120)
            if UNKNOWN not in (interval_s, limit_s):
                text_ = f"timeout ({limit_s}) must be more than interval ({interval_s})"
                require(limit_s > interval_s, text_, (*path, "dpd"))


TYPES = [VPNService, IKEPolicy, IPsecPolicy, IPsecSiteConnection]
