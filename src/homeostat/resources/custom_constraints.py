"""Custom constraints: properties and parameters that name cloud objects, collected here and checked by the caller.

The name of a constraint consists of the service and the kind of object in it (`glance.image`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from homeostat.model.errors import Rejected, invalid
from homeostat.resources.schema import UNKNOWN, Property, Schema

Path = tuple[str | int, ...]
CUSTOM = "custom_constraint"


@dataclass(frozen=True, slots=True)
class NamedKind:
    """Kind of objects that a constraint allows.

    Attributes:
        kind: Kind of the cloud port.
        word: Name of such an object in error messages, as in Heat.
        network: Whether the message has the form of Heat's network constraints.
    """

    kind: str
    word: str
    network: bool = False

    def missing(self, name: str) -> str:
        """Return the error message for a name without an object."""
        if self.network:
            return f"Unable to find {self.word} with name or id '{name}'"
        return f"The {self.word} ({name}) could not be found."


def _network(kind: str, word: str = "") -> NamedKind:
    return NamedKind(kind, word or kind, network=True)


KINDS: Mapping[str, NamedKind] = {
    "barbican.container": NamedKind("secret_container", "Container"),
    "barbican.secret": NamedKind("secret", "Secret"),
    "blazar.reservation": NamedKind("reservation", "Reservation"),
    "cinder.backup": NamedKind("volume_backup", "Volume backup"),
    "cinder.qos_specs": NamedKind("volume_qos_specs", "QoS Specs"),
    "cinder.snapshot": NamedKind("volume_snapshot", "VolumeSnapshot"),
    "cinder.volume": NamedKind("volume", "Volume"),
    "cinder.vtype": NamedKind("volume_type", "VolumeType"),
    "designate.zone": NamedKind("dns_zone", "Zone"),
    "glance.image": NamedKind("image", "Image"),
    "ironic.node": NamedKind("baremetal_node", "Node"),
    "ironic.portgroup": NamedKind("baremetal_port_group", "Port group"),
    "keystone.domain": NamedKind("domain", "KeystoneDomain"),
    "keystone.group": NamedKind("group", "KeystoneGroup"),
    "keystone.project": NamedKind("project", "KeystoneProject"),
    "keystone.region": NamedKind("region", "KeystoneRegion"),
    "keystone.role": NamedKind("role", "KeystoneRole"),
    "keystone.service": NamedKind("service", "KeystoneService"),
    "keystone.user": NamedKind("user", "KeystoneUser"),
    "magnum.cluster_template": NamedKind("cluster_template", "Cluster template"),
    "manila.share_network": NamedKind("share_network", "Share network"),
    "manila.share_snapshot": NamedKind("share_snapshot", "Share snapshot"),
    "manila.share_type": NamedKind("share_type", "Share type"),
    "mistral.workflow": NamedKind("workflow", "Workflow"),
    "neutron.address_scope": _network("address_scope"),
    "neutron.flow_classifier": _network("flow_classifier", "sfc_flow_classifier"),
    "neutron.lbaas.listener": _network("listener", "lbaas_listener"),
    "neutron.lbaas.loadbalancer": _network("load_balancer", "lbaas_loadbalancer"),
    "neutron.lbaas.pool": _network("pool", "lbaas_pool"),
    "neutron.lbaas.provider": _network("load_balancer_provider", "lbaasv2 provider"),
    "neutron.network": _network("network"),
    "neutron.port": _network("port"),
    "neutron.port_pair": _network("port_pair", "sfc_port_pair"),
    "neutron.port_pair_group": _network("port_pair_group", "sfc_port_pair_group"),
    "neutron.qos_policy": _network("qos_policy"),
    "neutron.router": _network("router"),
    "neutron.security_group": _network("security_group"),
    "neutron.segment": _network("segment"),
    "neutron.subnet": _network("subnet"),
    "neutron.subnetpool": _network("subnetpool"),
    "neutron.taas.tap_flow": _network("tap_flow"),
    "neutron.taas.tap_service": _network("tap_service"),
    "nova.flavor": NamedKind("flavor", "Flavor"),
    "nova.host": NamedKind("compute_host", "Host"),
    "nova.keypair": NamedKind("keypair", "Key"),
    "nova.network": _network("network"),
    "nova.server": NamedKind("server", "Server"),
    "octavia.availabilityzone": NamedKind("load_balancer_zone", "Availability zone"),
    "octavia.availabilityzoneprofile": NamedKind("load_balancer_zone_profile", "Availability zone profile"),
    "octavia.flavor": NamedKind("load_balancer_flavor", "Load balancer flavor"),
    "octavia.flavorprofile": NamedKind("load_balancer_flavor_profile", "Load balancer flavor profile"),
    "octavia.l7policy": NamedKind("l7_policy", "L7Policy"),
    "octavia.listener": NamedKind("listener", "Listener"),
    "octavia.loadbalancer": NamedKind("load_balancer", "Load balancer"),
    "octavia.pool": NamedKind("pool", "Pool"),
    "senlin.cluster": NamedKind("node_cluster", "Cluster"),
    "senlin.policy": NamedKind("cluster_policy", "Policy"),
    "senlin.policy_type": NamedKind("cluster_policy_type", "Policy type"),
    "senlin.profile": NamedKind("cluster_profile", "Profile"),
    "senlin.profile_type": NamedKind("cluster_profile_type", "Profile type"),
    "trove.flavor": NamedKind("flavor", "Flavor"),
    "zaqar.queue": NamedKind("queue", "Queue"),
}
"""Constraint -> the kind of objects allowed."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A value with a named constraint.

    Attributes:
        value: Name or id of an object.
        path: Path of the value in the template; () for a parameter.
        parameter: Name of the parameter that has the value; "" for a property.
        instead: Error message from the template, to be used instead; or "".
    """

    constraint: str
    value: Any
    path: Path
    parameter: str = ""
    instead: str = ""

    def wrong(self, problem: str) -> Rejected:
        """Return the error for this value."""
        text = self.instead or problem
        if self.parameter:
            return invalid(f"Parameter '{self.parameter}' is invalid: {text}", *self.path)
        return invalid(text, *self.path, error="Property error")


def mentions(schema: Schema, values: Mapping[str, Any], path: Path) -> Iterator[Mention]:
    """Yield all values with named constraints that are known and not empty.

    Args:
        values: Converted properties, without defaults.
    """
    for name, value in values.items():
        if name in schema:
            yield from _of_value(schema[name], value, (*path, name))


def _of_value(prop: Property, value: Any, path: Path) -> Iterator[Mention]:
    if value is UNKNOWN or value in (None, ""):
        return
    for constraint in prop.constraints:
        if CUSTOM in constraint.wire:
            yield from _mentioned(constraint.wire[CUSTOM], value, path)
    if prop.fields is not None and isinstance(value, Mapping):
        yield from mentions(prop.fields, value, path)
    elif prop.items is not None and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _of_value(prop.items, item, (*path, index))


def _mentioned(constraint: str, value: Any, path: Path) -> Iterator[Mention]:
    if not isinstance(value, list):
        yield Mention(constraint, value, path)
        return
    for index, item in enumerate(value):
        if item is not UNKNOWN:
            yield Mention(constraint, item, (*path, index))


def of_parameter(name: str, constraint: str, value: Any, instead: str = "") -> Iterator[Mention]:
    """Yield the value of a parameter with a named constraint, or each item of a list."""
    if value is not UNKNOWN and value not in (None, ""):
        for item in value if isinstance(value, list) else [value]:
            yield Mention(constraint, item, (), name, instead)
