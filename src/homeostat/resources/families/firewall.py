"""Types of firewalls as a service: rules, policies that order them, firewalls that apply a policy."""

from homeostat.resources import comparison
from homeostat.resources.constraints import CIDR
from homeostat.resources.families.neutron import NetworkingType, value_specs
from homeostat.resources.schema import Attribute, ValueType, boolean, listing, one_of, text


class FirewallRule(NetworkingType):
    name = "OS::Neutron::FirewallRule"
    kind = "firewall_rule"
    description = "What a firewall lets pass, or does not."
    properties = {
        "name": text("Name of the rule.", update=True),
        "description": text("Description of the rule.", update=True),
        "shared": boolean("All projects may use it.", default=False, update=True),
        "protocol": text(
            "Protocol of the traffic.",
            default="any",
            update=True,
            any_case=True,
            constraints=(one_of("tcp", "udp", "icmp", "any"),),
        ),
        "ip_version": text("Version of IP.", default="4", update=True, constraints=(one_of("4", "6"),)),
        "source_ip_address": text("Where it comes from.", update=True, constraints=(CIDR,)),
        "destination_ip_address": text("Where it goes to.", update=True, constraints=(CIDR,)),
        "source_port": text("Port or range, such as 80:90, that it comes from.", update=True),
        "destination_port": text("Port or range, such as 80:90, that it goes to.", update=True),
        "action": text(
            "What is done with it.", default="deny", update=True, any_case=True, constraints=(one_of("allow", "deny"),)
        ),
        "enabled": boolean("The rule counts.", default=True, update=True),
    }
    attributes = {
        "name": Attribute("Name of the rule."),
        "description": Attribute("Description of the rule."),
        "firewall_policy_id": Attribute("Policy that has it."),
        "shared": Attribute("Whether all projects may use it."),
        "protocol": Attribute("Protocol of the traffic."),
        "ip_version": Attribute("Version of IP."),
        "source_ip_address": Attribute("Where the traffic comes from."),
        "destination_ip_address": Attribute("Where the traffic goes to."),
        "source_port": Attribute("Port that the traffic comes from."),
        "destination_port": Attribute("Port that the traffic goes to."),
        "action": Attribute("What is done with the traffic."),
        "enabled": Attribute("Whether the rule counts."),
        "position": Attribute("Its place in the policy."),
        "tenant_id": Attribute("Project that owns it."),
    }


class FirewallPolicy(NetworkingType):
    name = "OS::Neutron::FirewallPolicy"
    kind = "firewall_policy"
    description = "Rules of a firewall in their order."
    properties = {
        "name": text("Name of the policy.", update=True),
        "description": text("Description of the policy.", update=True),
        "shared": boolean("All projects may use it.", default=False, update=True),
        "audited": boolean("Whether it is audited; changes of its rules reset this.", default=False, update=True),
        "firewall_rules": listing(
            "Its rules, the first that fits decides.", update=True, same=comparison.references_in_order
        ),
    }
    attributes = {
        "name": Attribute("Name of the policy."),
        "description": Attribute("Description of the policy."),
        "firewall_rules": Attribute("Its rules.", ValueType.LIST),
        "shared": Attribute("Whether all projects may use it."),
        "audited": Attribute("Whether it is audited."),
        "tenant_id": Attribute("Project that owns it."),
    }


class Firewall(NetworkingType):
    name = "OS::Neutron::Firewall"
    kind = "firewall"
    description = "Applies a policy to the routers of a project."
    properties = {
        "name": text("Name of the firewall.", update=True),
        "description": text("Description of the firewall.", update=True),
        "admin_state_up": boolean("The firewall is switched on.", default=True, update=True),
        "firewall_policy_id": text("Policy that it applies.", required=True, update=True, same=comparison.reference),
        "value_specs": value_specs(update=True),
        "shared": boolean("All projects may use it; no cloud offers this.", update=True),
    }
    attributes = {
        "name": Attribute("Name of the firewall."),
        "description": Attribute("Description of the firewall."),
        "admin_state_up": Attribute("Whether it is switched on."),
        "firewall_policy_id": Attribute("Policy that it applies."),
        "shared": Attribute("Whether all projects may use it."),
        "status": Attribute("Status of the firewall."),
        "tenant_id": Attribute("Project that owns it."),
    }


TYPES = [FirewallRule, FirewallPolicy, Firewall]
