"""Types of load balancing by content: policies of a listener, and the rules that decide when they apply."""

from homeostat.resources.base import Props, ResourceType
from homeostat.resources.families.octavia import PartType, link
from homeostat.resources.rules import is_set, require
from homeostat.resources.schema import UNKNOWN, Attribute, Schema, ValueType, between, boolean, number, one_of, text

TARGETS = {"REDIRECT_TO_POOL": "redirect_pool", "REDIRECT_TO_URL": "redirect_url"}
"""Action of a policy -> the property with its target."""
POLICY: Schema = {
    "name": text("Name of the policy.", update=True),
    "description": text("Description of the policy.", update=True),
    "admin_state_up": boolean("The policy is switched on.", default=True, update=True),
    "action": text(
        "What is done with requests that fit.", required=True, update=True, constraints=(one_of("REJECT", *TARGETS),)
    ),
    "redirect_pool": link("Pool that gets them.", "octavia.pool", update=True),
    "redirect_url": text("URL that clients are sent to.", update=True),
    # A cloud renumbers the positions whenever a policy is added or removed.
    "position": number(
        "Its place among the policies of the listener.", update=True, drift=False, constraints=(between(1),)
    ),
    "listener": link("Listener whose requests it is for.", "octavia.listener", required=True),
}
RULE: Schema = {
    "admin_state_up": boolean("The rule is switched on.", default=True, update=True),
    "l7policy": link("Policy that it belongs to.", "octavia.l7policy", required=True),
    "type": text(
        "Part of the request that is looked at.",
        required=True,
        update=True,
        constraints=(one_of("HOST_NAME", "PATH", "FILE_TYPE", "HEADER", "COOKIE"),),
    ),
    "compare_type": text(
        "How it is compared.",
        required=True,
        update=True,
        constraints=(one_of("REGEX", "STARTS_WITH", "ENDS_WITH", "CONTAINS", "EQUAL_TO"),),
    ),
    "invert": boolean("It fits where the comparison does not.", default=False, update=True),
    "key": text("Name of the header or cookie.", update=True),
    "value": text("What it is compared with.", required=True, update=True),
}


class L7Policy(ResourceType):
    name = "OS::Octavia::L7Policy"
    kind = "l7_policy"
    description = "What a listener does with requests that fit the policy's rules."
    properties = POLICY
    attributes = {"rules": Attribute("Its rules.", ValueType.LIST)}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        action = values.get("action")
        if action is UNKNOWN:
            return
        for wanted, name in TARGETS.items():
            require(action != wanted or is_set(values, name), f"{name} is needed for action {wanted}", path)
            misplaced = action != wanted and is_set(values, name)
            require(not misplaced, f"{name} must not be given for action {action}", path)


class L7Rule(PartType):
    name = "OS::Octavia::L7Rule"
    kind = "l7_rule"
    description = "Which requests fit a policy: all its rules must hold."
    properties = RULE

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        keyed = values.get("type") in ("HEADER", "COOKIE")
        require(not keyed or is_set(values, "key"), f"key is needed for type {values.get('type')}", path)


TYPES: list[type[ResourceType]] = [L7Policy, L7Rule]
