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
"""Begin of the tag of a group that names a rule of the other kind."""
OUT: list[Wire] = [{"direction": "egress", "ethertype": "IPv4"}, {"direction": "egress", "ethertype": "IPv6"}]
"""Rules of a new group; they come back when a specification has no other ways out any more."""


class SecurityGroups(NetworkCollection):
    """Security groups with rules of their own: those without a token, which marks the things of the other kind.

    A rule never changes, so an adopted one of the other kind cannot carry a mark: its group has a tag with its id.
    """

    kind = "security_group"
    path, key, keys = "/security-groups", "security_group", "security_groups"
    cleared = {"tags": (), "description": "", "rules": [], "stateful": True}
    separate = ("tags", "rules")

    def object_of(self, thing: Wire) -> Wire:
        # 0 is a type of ICMP.
        rules = [
            {name: each[name] for name in ("id", *OF_RULES) if each.get(name) not in (None, "")}
            for each in self._rules(thing)
        ]
        return {**super().object_of(thing), "rules": rules}

    def _rules(self, thing: Wire) -> Sequence[Wire]:
        apart = {each.removeprefix(APART) for each in thing.get("tags") or () if each.startswith(APART)}
        rules = thing.get("security_group_rules") or ()
        return [each for each in rules if not self.token.read(each) and each["id"] not in apart]

    def set_apart(self, handle: str, thing: Wire, part: Wire) -> Wire:
        thing = super().set_apart(handle, thing, part)
        if "rules" not in part:
            return thing
        wanted, there = [self._meant(handle, each) for each in part["rules"] or ()], self._rules(thing)
        if not _ways_out(wanted) and comparison.rule_changes(OUT, _ways_out(there))[0] == OUT:
            wanted += OUT
        missing, surplus = comparison.rule_changes(wanted, there)
        for each in surplus:
            self.api.request("DELETE", f"{RULES}/{each['id']}", of=handle)
        if missing:
            bodies = [{**each, "security_group_id": handle} for each in missing]
            self.api.request("POST", RULES, {"security_group_rules": bodies}, of=handle)
        return self.get(handle) if missing or surplus else thing

    def _meant(self, handle: str, rule: Mapping[str, Any]) -> Wire:
        """Return a rule as the service takes it; an empty group is the rule's own."""
        found = {name: rule[name] for name in OF_RULES if rule.get(name) is not None}
        if "remote_group_id" in found:
            found["remote_group_id"] = self.id_of(found["remote_group_id"]) or handle
        return found


def _ways_out(rules: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each for each in rules if each.get("direction") == "egress"]


class SecurityGroupRules(NetworkCollection):
    kind = "security_group_rule"
    path, key, keys = RULES, "security_group_rule", "security_group_rules"
    references = {"security_group_id": "security_group", "remote_group_id": "security_group"}
    separate = ()

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        return {name: value for name, value in super().body_of(spec).items() if value not in (None, "")}

    def resolve(self, name: str) -> str | None:
        return name

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Change nothing: a rule cannot change."""
        return self.get(handle)

    def operations(self) -> Mapping[str, Callable[[str, Mapping[str, Any]], None]]:
        return {"adopt": self._set_apart_from_group}

    def _set_apart_from_group(self, handle: str, arguments: Mapping[str, Any]) -> None:
        rule = self.get(handle)
        if not self.token.read(rule):
            group = self.cloud.collections["security_group"].path_of(rule["security_group_id"])
            self.api.request("PUT", f"{group}/tags/{APART}{handle}", of=handle)
