"""Networking: security groups and their rules."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.network import NetworkCollection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import PREFIX
from homeostat.resources import comparison

RULES = "/security-group-rules"
OF_RULES = (
    *("direction", "ethertype", "protocol", "port_range_min", "port_range_max"),
    *("remote_ip_prefix", "remote_group_id", "description"),
)
APART = f"{PREFIX}rule:"
"""Prefix of a group's tag that names a separate rule, of the kind `security_group_rule`."""
OUT: list[Wire] = [{"direction": "egress", "ethertype": "IPv4"}, {"direction": "egress", "ethertype": "IPv6"}]
"""Default rules of a new group; restored once a specification has no further egress rules."""


class SecurityGroups(NetworkCollection):
    """Security groups with their own rules: all rules without a token, which separate rules carry.

    A rule cannot change, so an adopted separate rule cannot carry a token: its group has a tag with the rule's id.
    """

    kind = "security_group"
    path, key, keys = "/security-groups", "security_group", "security_groups"
    cleared = {"tags": (), "description": "", "rules": [], "stateful": True}
    separate = ("tags", "rules")

    def object_of(self, thing: Wire) -> Wire:
        rules = [
            # Not by truth: 0 is a valid ICMP type.
            {name: rule[name] for name in ("id", *OF_RULES) if rule.get(name) not in (None, "")}
            for rule in self._rules(thing)
        ]
        return {**super().object_of(thing), "rules": rules}

    def _rules(self, thing: Wire) -> Sequence[Wire]:
        apart = {tag.removeprefix(APART) for tag in thing.get("tags") or () if tag.startswith(APART)}
        rules = thing.get("security_group_rules") or ()
        return [rule for rule in rules if not self.token.read(rule) and rule["id"] not in apart]

    def set_apart(self, handle: str, thing: Wire, part: Wire) -> Wire:
        thing = super().set_apart(handle, thing, part)
        if "rules" not in part:
            return thing
        wanted, present = [self._meant(handle, rule) for rule in part["rules"] or ()], self._rules(thing)
        if not _ways_out(wanted) and comparison.rule_changes(OUT, _ways_out(present))[0] == OUT:
            wanted += OUT
        missing, surplus = comparison.rule_changes(wanted, present)
        for rule in surplus:
            self.api.request("DELETE", f"{RULES}/{rule['id']}", of=handle)
        if missing:
            bodies = [{**rule, "security_group_id": handle} for rule in missing]
            self.api.request("POST", RULES, {"security_group_rules": bodies}, of=handle)
        return self.get(handle) if missing or surplus else thing

    def _meant(self, handle: str, rule: Mapping[str, Any]) -> Wire:
        """Return a rule as the service takes it; an empty remote group means the rule's own group."""
        fields = {name: rule[name] for name in OF_RULES if rule.get(name) is not None}
        if "remote_group_id" in fields:
            fields["remote_group_id"] = self.id_of(fields["remote_group_id"]) or handle
        return fields


def _ways_out(rules: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [rule for rule in rules if rule.get("direction") == "egress"]


class SecurityGroupRules(NetworkCollection):
    kind = "security_group_rule"
    path, key, keys = RULES, "security_group_rule", "security_group_rules"
    separate = ()

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        return {name: value for name, value in super().body_of(spec).items() if value not in (None, "")}

    def resolve(self, name: str) -> str | None:
        return name

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Do nothing: a rule cannot change."""
        return self.get(handle)

    def operations(self) -> Mapping[str, Callable[[str, Mapping[str, Any]], None]]:
        return {"adopt": self._set_apart_from_group}

    def _set_apart_from_group(self, handle: str, arguments: Mapping[str, Any]) -> None:
        rule = self.get(handle)
        if not self.token.read(rule):
            group = self.cloud.collections["security_group"].path_of(rule["security_group_id"])
            self.api.request("PUT", f"{group}/tags/{APART}{handle}", of=handle)
