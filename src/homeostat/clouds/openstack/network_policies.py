"""Networking for operators: quality of service, segments, address pools, sharing, metering, trunks and quotas."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.network import Aspect, NetworkCollection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InText, Joined
from homeostat.model.errors import Terminal, Transient
from homeostat.resources import comparison


class AddressScopes(NetworkCollection):
    """Address scopes have neither description nor tags, so the token is at the end of the name."""

    kind = "address_scope"
    extension = "address-scope"
    path, key, keys = "/address-scopes", "address_scope", "address_scopes"
    token = InText("name")
    cleared = {}
    separate = ()


class SubnetPools(NetworkCollection):
    kind = "subnetpool"
    extension = "subnet_allocation"
    path, key, keys = "/subnetpools", "subnetpool", "subnetpools"
    cleared = {"tags": (), "address_scope_id": None}

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        # Neutron takes numbers and shows texts.
        lengths = ("default_prefixlen", "min_prefixlen", "max_prefixlen")
        return {**fields, **{name: int(fields[name]) for name in lengths if fields.get(name) is not None}}


class Distinct(NetworkCollection):
    """Objects without a token that must differ from each other: a refused creation may have succeeded earlier.

    Attributes:
        distinct: Fields for filters of the list, to find the earlier object.
    """

    token = Joined()
    cleared = {}
    separate = ()
    distinct: ClassVar[tuple[str, ...]]

    def resolve(self, name: str) -> str | None:
        return name

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        try:
            return super().create(token, spec)
        except Terminal:
            body = self.body_of(spec)
            similar = self.list(**{name: body[name] for name in self.distinct})
            same = next((thing for thing in similar if comparison.equal(body, thing)), None)
            if same is None:
                raise
            return same


class RbacPolicies(Distinct):
    kind = "rbac_policy"
    extension = "rbac-policies"
    path, key, keys = "/rbac-policies", "rbac_policy", "rbac_policies"
    distinct = ("object_id", "action", "target_tenant")

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        if "object_id" in body:
            body["object_id"] = self.reference(spec["object_type"], body["object_id"])
        if body.get("target_tenant") not in (None, "*"):
            body["target_tenant"] = self.reference("project", body["target_tenant"])
        return body


class NetworkQuotas(NetworkCollection):
    """Quotas of projects that differ from the cloud's defaults; the handle is the project's id."""

    kind = "network_quota"
    path, key, keys = "/quotas", "quota", "quotas"
    token = Joined()
    separate = ()

    def list(self, **filters: Any) -> Iterator[Wire]:
        return iter(self.api.get(self.path)["quotas"])

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        return self.list()

    def handle_of(self, thing: Wire) -> str:
        return str(thing.get("project_id") or thing["tenant_id"])

    def get(self, handle: str) -> Wire:
        # Neutron answers a read of any project with the defaults; only its list has just the quotas that were set.
        quota = next((thing for thing in self.list() if self.handle_of(thing) == handle), None)
        if quota is None:
            raise Missing(f"project {handle} has the quota of the cloud")
        return quota

    def object_of(self, thing: Wire) -> Wire:
        return {**super().object_of(thing), "project": self.handle_of(thing)}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        return self._put(self.reference("project", spec["project"]), spec, token)

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        present = self.get(handle)
        lost = [name for name in changed if spec.get(name) is None]
        own = self.api.get(f"{self.path}/{handle}/default")["quota"] if lost else {}
        limits = {name: own.get(name) if name in lost else spec[name] for name in changed}
        return self._put(handle, limits, handle) if limits else present

    def _put(self, project: str, limits: Mapping[str, Any], of: str) -> Wire:
        body = {name: value for name, value in limits.items() if name != "project"}
        quota = self._thing(self.api.request("PUT", self.path_of(project), {"quota": body}, of=of))
        return {**quota, "project_id": project}

    def delete(self, handle: str) -> Wire | None:
        self.get(handle)
        return super().delete(handle)


class Segments(NetworkCollection):
    kind = "segment"
    extension = "segment"
    path, key, keys = "/segments", "segment", "segments"
    cleared = {"description": ""}
    separate = ()


class MeteringLabels(NetworkCollection):
    kind = "metering_label"
    extension = "metering"
    path, key, keys = "/metering/metering-labels", "metering_label", "metering_labels"
    separate = ()


class MeteringRules(Distinct):
    kind = "metering_rule"
    extension = "metering"
    path, key, keys = "/metering/metering-label-rules", "metering_label_rule", "metering_label_rules"
    links = {"metering_label_id": "metering_label"}
    distinct = ("metering_label_id",)


class Trunks(NetworkCollection):
    kind = "trunk"
    extension = "trunk"
    path, key, keys = "/trunks", "trunk", "trunks"
    cleared = {"description": "", "sub_ports": [], "admin_state_up": True}
    statuses: ClassVar[Mapping[str, str]] = {"degraded": "down"}
    separate = ()
    has_tags = True
    changed_apart = ("sub_ports",)

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        return {**body, "sub_ports": self._named(spec["sub_ports"])} if "sub_ports" in body else body

    def _named(self, sub_ports: Sequence[Mapping[str, Any]]) -> list[Wire]:
        return [{**port, "port_id": self.reference("port", port["port_id"])} for port in sub_ports or ()]

    def set_apart(self, handle: str, thing: Wire, part: Wire) -> Wire:
        wanted, present = self._named(part["sub_ports"]), thing["sub_ports"]
        surplus = [{"port_id": port["port_id"]} for port in present if port not in wanted]
        new = [port for port in wanted if port not in present]
        is_off = not thing["admin_state_up"] and (surplus or new)
        if is_off:
            self._switch(handle, on=True)
        for verb, ports in (("remove", surplus), ("add", new)):
            if ports:
                path = f"{self.path_of(handle)}/{verb}_subports"
                thing = {**thing, **self.api.request("PUT", path, {"sub_ports": ports}, of=handle)}
        return self._switch(handle, on=False) if is_off else thing

    def delete(self, handle: str) -> Wire | None:
        try:
            return super().delete(handle)
        except Transient as error:
            if "disabled" not in str(error):
                raise
        self._switch(handle, on=True)
        return super().delete(handle)

    def _switch(self, handle: str, on: bool) -> Wire:
        """Enable or disable a trunk; Neutron refuses to delete a disabled trunk or to change its sub-ports."""
        body = {self.key: {"admin_state_up": on}}
        return self._thing(self.api.request("PUT", self.path_of(handle), body, of=handle))


class QosPolicies(NetworkCollection):
    kind = "qos_policy"
    extension = "qos"
    path, key, keys = "/qos/policies", "policy", "policies"
    links = {"tenant_id": "project"}
    cleared = {"tags": (), "description": ""}


class QosRules(Aspect):
    """Rules of a policy, which shows them all; the handle is `<policy>:<rule>`. A policy has one rule per direction.

    Attributes:
        type: Type of the rules, as shown in the policy.
    """

    path, key, keys = "/qos/policies", "policy", "policies"
    extension = "qos"
    type: ClassVar[str]

    def view(self, of: Wire, rest: str) -> Wire | None:
        rules = (rule for rule in of["rules"] if rule["id"] == rest and rule["type"] == self.type)
        rule = next(rules, None)
        return {**rule, "policy": of["id"]} if rule is not None else None

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        policy = self.reference("qos_policy", spec["policy"])
        body = {name: value for name, value in spec.items() if name not in ("policy", "tenant_id")}
        try:
            rule = self._send("POST", f"{policy}:", body, token)
        except Terminal:
            # A policy has one rule of a type and direction: perhaps that of an earlier request, whose answer was lost.
            rules = self.api.get(self.path_of(policy))[self.key]["rules"]
            same = (rule for rule in rules if rule["type"] == self.type and comparison.equal(body, rule))
            rule = {**next(same, {}), "policy": policy}
            if "id" not in rule:
                raise
        return {**rule, "id": f"{policy}:{rule['id']}"}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        body = {name: spec[name] for name in changed if spec.get(name) is not None and name != "tenant_id"}
        return {**self._send("PUT", handle, body, handle), "id": handle}

    def delete(self, handle: str) -> Wire | None:
        self._send("DELETE", handle, None, handle)
        return None

    def _send(self, method: str, handle: str, body: Wire | None, of: str) -> Wire:
        policy, _, rule = handle.partition(":")
        path = f"{self.path_of(policy)}/{self.type}_rules/{rule}".rstrip("/")
        key = f"{self.type}_rule"
        answer = self.api.request(method, path, {key: body} if body is not None else None, of=of)
        return {**answer.get(key, {}), "policy": policy}


class QosBandwidthLimitRules(QosRules):
    kind, type = "qos_bandwidth_limit_rule", "bandwidth_limit"


class QosDscpMarkingRules(QosRules):
    kind, type = "qos_dscp_marking_rule", "dscp_marking"


class QosMinimumBandwidthRules(QosRules):
    kind, type = "qos_minimum_bandwidth_rule", "minimum_bandwidth"


class QosMinimumPacketRateRules(QosRules):
    kind, type = "qos_minimum_packet_rate_rule", "minimum_packet_rate"


COLLECTIONS = (
    AddressScopes,
    SubnetPools,
    RbacPolicies,
    NetworkQuotas,
    Segments,
    MeteringLabels,
    MeteringRules,
    Trunks,
    QosPolicies,
    QosBandwidthLimitRules,
    QosDscpMarkingRules,
    QosMinimumBandwidthRules,
    QosMinimumPacketRateRules,
)
