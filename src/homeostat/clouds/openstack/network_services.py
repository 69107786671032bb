"""Networking's optional plug-ins: VPNs, service function chains, and taps.

Each plug-in is an API extension: without the extension its lists are empty, and creations are refused with its name.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from homeostat.clouds.openstack.network import NetworkCollection
from homeostat.clouds.openstack.service import Wire
from homeostat.model.errors import HomeostatError, Terminal, Transient, Uncertain

DROPPED = frozenset({"sha1", "3des"})
"""Algorithms that Neutron's VPNs store no longer from 2026.2 on, though their API still accepts them."""
INTERNAL = "internal server error"
IN_USE = "is in use by existing IPsecSiteConnection"
"""Neutron refuses to change a policy as long as a connection uses it: a retry does not help."""
REMEDY = "set auth_algorithm to sha256 or another one, and encryption_algorithm to one of aes"


class Plugged(NetworkCollection):
    """Objects without tags, some of which refer to several objects.

    Attributes:
        listed: Field -> kind of the objects in its list, by name or id.
    """

    cleared: ClassVar[Mapping[str, Any]] = {"description": ""}
    separate = ()
    listed: ClassVar[Mapping[str, str]] = {}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        named = {name: self._all_named(kind, body[name]) for name, kind in self.listed.items() if body.get(name)}
        return {**body, **named}

    def _all_named(self, kind: str, names: Sequence[Any]) -> list[Any]:
        return [self.named(kind, name) for name in names]


class VpnServices(Plugged):
    kind = "vpn_service"
    extension = "vpnaas"
    path, key, keys = "/vpn/vpnservices", "vpnservice", "vpnservices"
    references = {"subnet_id": "subnet", "router_id": "router"}


class VpnPolicies(Plugged):
    """Policies; newer services store some algorithms no longer, and answer with an internal error."""

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        try:
            return super().create(token, spec)
        except Uncertain as error:
            self._check_algorithms(spec, error)
            raise

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        try:
            return super().update(handle, spec, changed)
        except Transient as error:
            if IN_USE not in str(error):
                raise
            raise Terminal(f"{error}: add another policy, and let the connection name that one") from error
        except HomeostatError as error:
            self._check_algorithms({name: spec[name] for name in changed if name in spec}, error)
            raise

    def _check_algorithms(self, spec: Mapping[str, Any], error: HomeostatError) -> None:
        """Check whether an obsolete algorithm explains an internal error.

        Raises:
            Terminal: It does: the service works otherwise, since it answers a list.
        """
        old = [str(value) for value in spec.values() if value in DROPPED]
        if old and INTERNAL in str(error):
            next(self.list(), None)
            raise Terminal(f"this networking stores no policy with {', '.join(old)} any more: {REMEDY}") from error


class IkePolicies(VpnPolicies):
    kind = "ike_policy"
    extension = "vpnaas"
    path, key, keys = "/vpn/ikepolicies", "ikepolicy", "ikepolicies"
    cleared = {**Plugged.cleared, "lifetime": {"units": "seconds", "value": 3600}}


class IpsecPolicies(VpnPolicies):
    kind = "ipsec_policy"
    extension = "vpnaas"
    path, key, keys = "/vpn/ipsecpolicies", "ipsecpolicy", "ipsecpolicies"


class IpsecSiteConnections(Plugged):
    """Connections. The service's `action` for a dead peer is Heat's `actions`."""

    kind = "ipsec_site_connection"
    extension = "vpnaas"
    path, key, keys = "/vpn/ipsec-site-connections", "ipsec_site_connection", "ipsec_site_connections"
    references = {"vpnservice_id": "vpn_service", "ikepolicy_id": "ike_policy", "ipsecpolicy_id": "ipsec_policy"}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        return {**body, "dpd": _renamed(body["dpd"], "actions", "action")} if body.get("dpd") else body

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        return {**fields, "dpd": _renamed(fields["dpd"], "action", "actions")} if fields.get("dpd") else fields


def _renamed(fields: Mapping[str, Any], old: str, new: str) -> Wire:
    return {new if name == old else name: value for name, value in fields.items()}


class FlowClassifiers(Plugged):
    kind = "flow_classifier"
    extension = "flow_classifier"
    path, key, keys = "/sfc/flow_classifiers", "flow_classifier", "flow_classifiers"
    references = {"logical_source_port": "port", "logical_destination_port": "port"}


class PortPairs(Plugged):
    kind = "port_pair"
    extension = "sfc"
    path, key, keys = "/sfc/port_pairs", "port_pair", "port_pairs"
    references = {"ingress": "port", "egress": "port"}


class PortPairGroups(Plugged):
    kind = "port_pair_group"
    extension = "sfc"
    path, key, keys = "/sfc/port_pair_groups", "port_pair_group", "port_pair_groups"
    listed = {"port_pairs": "port_pair"}


class PortChains(Plugged):
    kind = "port_chain"
    extension = "sfc"
    path, key, keys = "/sfc/port_chains", "port_chain", "port_chains"
    listed = {"port_pair_groups": "port_pair_group", "flow_classifiers": "flow_classifier"}
    cleared = {"description": "", "flow_classifiers": []}


class TapServices(Plugged):
    kind = "tap_service"
    extension = "taas"
    path, key, keys = "/taas/tap_services", "tap_service", "tap_services"
    references = {"port_id": "port"}


class TapFlows(Plugged):
    kind = "tap_flow"
    extension = "taas"
    path, key, keys = "/taas/tap_flows", "tap_flow", "tap_flows"
    references = {"source_port": "port", "tap_service_id": "tap_service"}


COLLECTIONS = (
    VpnServices,
    IkePolicies,
    IpsecPolicies,
    IpsecSiteConnections,
    FlowClassifiers,
    PortPairs,
    PortPairGroups,
    PortChains,
    TapServices,
    TapFlows,
)
