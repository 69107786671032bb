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
    """Objects without tags."""

    cleared: ClassVar[Mapping[str, Any]] = {"description": ""}
    separate = ()


class VpnServices(Plugged):
    kind = "vpn_service"
    extension = "vpnaas"
    path, key, keys = "/vpn/vpnservices", "vpnservice", "vpnservices"


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
    links = {"vpnservice_id": "vpn_service", "ikepolicy_id": "ike_policy", "ipsecpolicy_id": "ipsec_policy"}

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


class PortPairs(Plugged):
    kind = "port_pair"
    extension = "sfc"
    path, key, keys = "/sfc/port_pairs", "port_pair", "port_pairs"


class PortPairGroups(Plugged):
    kind = "port_pair_group"
    extension = "sfc"
    path, key, keys = "/sfc/port_pair_groups", "port_pair_group", "port_pair_groups"


class PortChains(Plugged):
    kind = "port_chain"
    extension = "sfc"
    path, key, keys = "/sfc/port_chains", "port_chain", "port_chains"
    cleared = {"description": "", "flow_classifiers": []}


class TapServices(Plugged):
    kind = "tap_service"
    extension = "taas"
    path, key, keys = "/taas/tap_services", "tap_service", "tap_services"


class TapFlows(Plugged):
    kind = "tap_flow"
    extension = "taas"
    path, key, keys = "/taas/tap_flows", "tap_flow", "tap_flows"


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
