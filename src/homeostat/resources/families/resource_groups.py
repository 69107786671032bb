"""Types whose members are resources of a child stack: groups of alike resources, and chains in sequence."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from homeostat.model.errors import invalid
from homeostat.model.rollout import (
    CANARY,
    CANARY_STEPS,
    IMMEDIATE,
    PATTERNS,
    WAITED_FOR_MAX,
    MemberOrder,
    OnFailure,
    RolloutSettings,
)
from homeostat.resources.base import Props, Thing
from homeostat.resources.graph import Graph
from homeostat.resources.nested import POLICY, NestedStack, of_member
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Property,
    ValueType,
    between,
    boolean,
    coerce,
    integer,
    length,
    listing,
    mapping,
    number,
    one_of,
    text,
    with_defaults,
)
from homeostat.templates.tree import traverse

Launched = Callable[[str], Props | None]
"""Reference of a launch configuration, or a server to be like -> the properties of members; None where none is."""
ROLLOUT = "rollout"
"""Section of the update policy that says how members get new metadata."""
STEP = re.compile(r"[1-9][0-9]{0,8}|(?![0.]+%)(?:100(?:\.0{1,6})?|[1-9]?[0-9](?:\.[0-9]{1,6})?)%")
STEPS_MAX = 100
GATES_MAX, URL_MAX = 10, 2000
DAY_S = 86_400


def pattern_property(name: str) -> dict[str, Property]:
    """Return the property, under the name that fits to its type, that says how members get new metadata."""
    described = "How members get new metadata of the group: all at once, one by one, or in growing steps."
    return {name: text(described, default=IMMEDIATE, update=True, constraints=(one_of(*PATTERNS),))}


def rollout_section() -> dict[str, Property]:
    """Return the section of the update policy about rollouts."""
    return {
        ROLLOUT: mapping(
            "When a rollout of new metadata goes on, and when it stops.",
            fields={
                "steps": listing(
                    "Members that have the new metadata after each step: numbers, or shares such as 5%.",
                    items=text(),
                    constraints=(length(0, STEPS_MAX),),
                ),
                "bake_time": number(
                    "Seconds to wait once a step has reported.", default=0, constraints=(between(0, DAY_S),)
                ),
                "progress_deadline": number(
                    "Seconds in which the members of a step have to report.", constraints=(between(1, DAY_S),)
                ),
                "min_success_percent": number(
                    "Share of a step that has to report success by then.", default=100, constraints=(between(0, 100),)
                ),
                "max_failures": integer("Members in all that may fail.", default=0, constraints=(between(0),)),
                "max_failures_per_step": integer("Members of one step that may fail.", constraints=(between(0),)),
                "on_failure": text(
                    "What to do when more fail: bring all back, wait for a person, or stop.",
                    default=OnFailure.ROLLBACK,
                    constraints=(one_of(*OnFailure),),
                ),
                "approval": boolean("Let a person approve each step before the next one.", default=False),
                "order": text("Order of the members.", default=MemberOrder.NUMBER, constraints=(one_of(*MemberOrder),)),
                "seed": integer("Seed of a random order.", default=0),
                "alarms": listing(
                    "Names of wait condition handles of the template to which alarms are sent: one that fires says no.",
                    items=text(),
                    constraints=(length(0, GATES_MAX),),
                ),
                "checks": listing(
                    "URLs that have to answer with a success; an answer of 400 to 499 says no.",
                    items=text(constraints=(length(1, URL_MAX),)),
                    constraints=(length(0, GATES_MAX),),
                ),
            },
        )
    }


def check_alarms(policy: Mapping[str, Any], graph: Graph, path: tuple[str | int, ...]) -> None:
    """Check that the handles for alarms about a rollout are in the template.

    Raises:
        Rejected: One is missing, or is something else.
    """
    for index, name in enumerate((policy.get(ROLLOUT) or {}).get("alarms") or ()):
        if name not in graph or not graph[name][0].endswith("Handle"):
            message = f"{name!r} is no wait condition handle of this template: give the name of one"
            raise invalid(message, *path, ROLLOUT, "alarms", index, error="Property error")


def check_rollout(section: Any, path: tuple[str | int, ...]) -> None:
    """Check the steps and the URLs of a rollout.

    Raises:
        Rejected: A step is neither a number nor a share, or a URL is none.
    """
    for index, url in enumerate((section or {}).get("checks") or ()):
        if isinstance(url, str) and not url.startswith(("http://", "https://")):
            message = f"{url!r} is no http or https URL"
            raise invalid(message, *path, ROLLOUT, "checks", index, error="Property error")
    for index, step in enumerate((section or {}).get("steps") or ()):
        if not (isinstance(step, str) and STEP.fullmatch(step)):
            message = f"{step!r} is no step of a rollout: give a number of members such as 10, or a share such as 5%"
            raise invalid(message, *path, ROLLOUT, "steps", index, error="Property error")


class Membership(NestedStack):
    """Base of the types with members in a child stack: their attributes, and the internal property `POLICY`.

    Attributes:
        pattern: Name of the property that says how members get new metadata.
    """

    pattern: ClassVar[str] = "metadata_update_pattern"

    def member(self, values: Props, launched: Launched, group_id: str) -> Any:
        """Return the definition of the members of a group of alike ones: `{type, properties[, metadata]}`.

        Args:
            values: Properties, with defaults.
            launched: Looks up a launch configuration.
            group_id: Id of the stack with the members.

        Returns:
            None or UNKNOWN where the definition is not known yet.
        """
        return values.get(self.member_property)

    def check(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        values = super().check({name: value for name, value in provided.items() if name != POLICY}, path)
        if POLICY in provided:
            values[POLICY] = self.check_policy(provided[POLICY], path)
        return values

    def check_policy(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        """Check the section `update_policy`, and convert its values.

        Raises:
            Rejected: A value is wrong; the error has its path.
        """
        given = {name: value for name, value in provided.items() if value is not None}
        found = coerce(self.update_policy, given, path)
        check_rollout(found.get(ROLLOUT), path)
        return found

    def metadata_pattern(self, values: Props) -> str:
        """Return how members get new metadata: one of `model.rollout.PATTERNS`."""
        return str(values[self.pattern])

    def rollout_settings(self, values: Props) -> RolloutSettings:
        """Return how a rollout of new metadata proceeds; `values` are with defaults."""
        pattern, section = self.metadata_pattern(values), values[POLICY].get(ROLLOUT) or {}
        given = section.get("steps") or (CANARY_STEPS if pattern == CANARY else ())
        per_step, seconds = section.get("max_failures_per_step"), section.get("progress_deadline")
        return RolloutSettings(
            pattern,
            tuple(given),
            float(section.get("bake_time") or 0),
            None if seconds is None else float(seconds),
            float(section.get("min_success_percent", 100)) / 100,
            int(section.get("max_failures") or 0),
            None if per_step is None else int(per_step),
            str(section.get("on_failure") or OnFailure.ROLLBACK),
            bool(section.get("approval")),
            str(section.get("order") or MemberOrder.NUMBER),
            int(section.get("seed") or 0),
            checks=tuple(section.get("checks") or ()),
        )

    def alarms(self, values: Props) -> list[str]:
        """Return the names of the handles to which alarms about a rollout are sent; `values` are with defaults."""
        return list((values[POLICY].get(ROLLOUT) or {}).get("alarms") or ())

    def complete(self, values: Props) -> dict[str, Any]:
        policy = with_defaults(self.update_policy, values.get(POLICY) or {})
        return {**super().complete(values), POLICY: policy}

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        return super().replacement_reason(before, after, changed - {POLICY})

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        """Return an attribute of the group; any other name is an attribute of the members, listed in their order."""
        members = thing.seen.properties.get("members") or {}
        ordered = sorted(members, key=_member_order)
        if name == "refs":
            return traverse([members[each]["reference"] for each in ordered], path)
        if name == "attributes" and path:
            return {each: traverse(members[each]["attributes"], path) for each in ordered}
        if name.startswith("resource."):
            member, *deeper = name.removeprefix("resource.").split(".")
            return of_member(members.get(member), (*deeper, *path))
        return [traverse(members[each]["attributes"], (name, *path)) for each in ordered]

    def attribute(self, thing: Thing, name: str) -> Any:
        return None if name == "attributes" else self.resolve(thing, name)


def _member_order(name: str) -> tuple[int, str]:
    return (int(name), name) if name.isdigit() else (0, name)


class ResourceGroup(Membership):
    """A group of alike resources in a child stack; see `resources.groups` for their names and definitions."""

    name = "OS::Heat::ResourceGroup"
    description = "A number of alike resources made from one definition."
    properties = {
        "count": integer("How many members.", default=1, update=True, constraints=(between(0),)),
        "index_var": text(
            "Text that becomes the member's name in every value of its properties.",
            default="%index%",
            constraints=(length(3),),
        ),
        "resource_def": mapping(
            "Definition of each member.",
            required=True,
            update=True,
            fields={
                "type": text("Type of the members.", required=True),
                "properties": mapping("Properties of the members."),
                "metadata": mapping("Metadata of the members."),
            },
        ),
        "removal_policies": listing(
            "Which members go first when there are too many.",
            default=[],
            update=True,
            items=mapping(fields={"resource_list": listing("Names, numbers or reference ids of members.", default=[])}),
        ),
        "removal_policies_mode": text(
            "Add to the names removed before, or start the list afresh.",
            default="append",
            update=True,
            constraints=(one_of("append", "update"),),
        ),
        **pattern_property("metadata_update_pattern"),
    }
    update_policy = {
        **rollout_section(),
        "rolling_update": mapping(
            "Change members in batches.",
            fields={
                "min_in_service": integer(
                    "Members to keep in service meanwhile.", default=0, constraints=(between(0),)
                ),
                "max_batch_size": integer("Members changed at once.", default=1, constraints=(between(1),)),
                "pause_time": number("Seconds between batches.", default=0, constraints=(between(0),)),
            },
        ),
        "batch_create": mapping(
            "Create members in batches.",
            fields={
                "max_batch_size": integer("Members created at once.", default=1, constraints=(between(1),)),
                "pause_time": number("Seconds between batches.", default=0, constraints=(between(0),)),
            },
        ),
    }
    attributes = {
        "refs": Attribute("Reference ids of the members, in order.", ValueType.LIST),
        "refs_map": Attribute("Reference id of each member by its name.", ValueType.MAP),
        "attributes": Attribute("An attribute of each member by its name; needs a path.", ValueType.MAP),
        "removed_rsrc_list": Attribute("Names that no member may have any more.", ValueType.LIST),
    }

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        if name == "refs_map":
            members = thing.seen.properties.get("members") or {}
            return traverse({each: members[each]["reference"] for each in sorted(members, key=_member_order)}, path)
        if name == "removed_rsrc_list":
            return traverse(list(thing.seen.properties.get("skip") or []), path)
        return super().resolve(thing, name, path)


class ResourceChain(Membership):
    """Resources in a child stack, each depending on the one before; see `desired.members`."""

    name = "OS::Heat::ResourceChain"
    description = "Resources of the types listed, all with the same properties, made one after the other."
    contents = "chain"
    properties = {
        "resources": listing(
            "Types of the members, in their order.",
            required=True,
            update=True,
        ),
        "concurrent": boolean("Make them side by side instead.", default=False),
        "resource_properties": mapping("Properties of every member."),
        **pattern_property("metadata_update_pattern"),
    }
    update_policy = rollout_section()
    attributes = {
        "refs": Attribute("Reference ids of the members, in order.", ValueType.LIST),
        "attributes": Attribute("An attribute of each member by its name; needs a path.", ValueType.MAP),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        """Check that each item names a type."""
        types = values.get("resources")
        for index, each in enumerate(types if isinstance(types, list) else ()):
            if each is not UNKNOWN and not (isinstance(each, str) and each):
                raise invalid(f"the name of a resource type is needed, got {each!r}", *path, "resources", index)


def check_waited_for(kind: Membership, provided: Props, count: int, path: tuple[str | int, ...]) -> None:
    """Check that not too many wait conditions depend on a group whose members get new metadata in a rollout.

    Raises:
        Rejected: They are too many.
    """
    if provided.get(kind.pattern) not in (None, IMMEDIATE):
        message = (
            f"{count} wait conditions depend on this group: in a rollout at most {WAITED_FOR_MAX} can be waited for, "
            f"so let fewer depend on it, or leave the pattern {IMMEDIATE}"
        )
        raise invalid(message, *path, kind.pattern, error="Property error")


TYPES = [ResourceGroup, ResourceChain]
