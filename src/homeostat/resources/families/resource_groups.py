"""Types whose members are resources of a child stack: groups of alike resources, and chains in sequence."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from homeostat.model.errors import InvalidTemplateAttribute, invalid
from homeostat.model.rollout import IMMEDIATE, AppliesTo, RolloutSettings
from homeostat.resources.base import Props, Thing
from homeostat.resources.group_limits import MAX_UNAVAILABLE, check_limit, limit_entry
from homeostat.resources.nested import POLICY, NestedStack, attributes_of_members, of_member
from homeostat.resources.rollout_policy import (
    ROLLOUT,
    applies_to,
    check_definitions,
    check_rollout,
    pattern_property,
    refuse_definitions,
    rollout_section,
    settings_of,
)
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
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
from homeostat.templates.tree import part_of

Launched = Callable[[str], Props | None]
"""Reference of a launch configuration or model server -> the properties of members; None if unknown."""


def section_of(provided: Props, internal: str, section: str, path: tuple[str | int, ...]) -> Props:
    """Return a section of the definition of a group, which is stored among its properties under an internal name.

    Args:
        internal: The internal name.

    Raises:
        Rejected: The value is no map: a template names the internal property itself.
    """
    content: Any = provided[internal]
    if not isinstance(content, Mapping):
        message = f"Unknown Property {internal}: give the group a section {section} beside its properties"
        raise invalid(message, *path, error="Property error")
    return content


class Membership(NestedStack):
    """Base of the types with members in a child stack: their attributes, and the internal property `POLICY`.

    Attributes:
        pattern: Name of the property with the rollout pattern of new metadata.
        needing_path: Attributes that need a path beginning with the name of an attribute of the members.
    """

    pattern: ClassVar[str] = "metadata_update_pattern"
    needing_path: ClassVar[tuple[str, ...]] = ("attributes",)

    def member(self, values: Props, launched: Launched, group_id: str) -> Any:
        """Return the definition of the members of a group of alike resources: `{type, properties[, metadata]}`.

        Args:
            values: Properties, with defaults.
            launched: Looks up a launch configuration.
            group_id: Id of the stack with the members.

        Returns:
            None or UNKNOWN if the definition is not known yet.
        """
        return values.get(self.member_property)

    def check(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        values = super().check({name: value for name, value in provided.items() if name != POLICY}, path)
        if POLICY in provided:
            values[POLICY] = self.check_policy(section_of(provided, POLICY, "update_policy", path), path)
            self.check_steps(values, path)
        return values

    def check_steps(self, values: Props, path: tuple[str | int, ...]) -> None:
        """Check that the update policy of a group fits its properties, which are as provided.

        Raises:
            Rejected: Two settings compete about new definitions of members, or none applies.
        """
        check_definitions(self.pattern, values, values[POLICY], self.batched_by(values), path)

    def batched_by(self, values: Props) -> str:
        """Return the name of the setting by which members change in batches; "" if there is none."""
        return ""

    def check_policy(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        """Check the section `update_policy`, and convert its values.

        Raises:
            Rejected: A value is wrong; the error has its path.
        """
        values = {name: value for name, value in provided.items() if value is not None}
        policy = coerce(self.update_policy, values, path)
        check_rollout(policy.get(ROLLOUT), path)
        check_limit(policy.get(MAX_UNAVAILABLE), path)
        return policy

    def batches(self, values: Props) -> Mapping[str, Any]:
        """Return how members are changed and created, in the form of `planner.members.rolling_update`."""
        return values[POLICY] or {}

    def metadata_pattern(self, values: Props) -> str:
        """Return the rollout pattern of new metadata, an item of `model.rollout.PATTERNS`."""
        return str(values[self.pattern])

    def rolls_out(self, values: Props, what: AppliesTo) -> bool:
        """Return whether members get new metadata, or a new definition, step by step; `values` include defaults."""
        return applies_to(values[POLICY]) in (what, AppliesTo.BOTH) and self.metadata_pattern(values) != IMMEDIATE

    def rollout_settings(self, values: Props) -> RolloutSettings:
        """Return how a rollout of new metadata proceeds; `values` include defaults."""
        return settings_of(self.metadata_pattern(values), values[POLICY].get(ROLLOUT))

    def alarms(self, values: Props) -> list[str]:
        """Return the names of the handles that receive alarms about a rollout; `values` include defaults."""
        return list((values[POLICY].get(ROLLOUT) or {}).get("alarms") or ())

    def complete(self, values: Props) -> dict[str, Any]:
        policy = with_defaults(self.update_policy, values.get(POLICY) or {})
        return {**super().complete(values), POLICY: policy}

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        return super().replacement_reason(before, after, changed - {POLICY})

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        """Return an attribute of the group; any unknown name is an attribute of the members, listed in their order."""
        members = thing.seen.properties.get("members") or {}
        ordered = sorted(members, key=_member_order)
        if name == "refs":
            return part_of([members[member]["reference"] for member in ordered], path, thing.name, name)
        if name in self.needing_path:
            require_path(thing, name, path)
            return dict(zip(ordered, attributes_of_members(members, ordered, path), strict=True))
        if name.startswith("resource."):
            member, *deeper = name.removeprefix("resource.").split(".")
            return of_member(thing, member, (*deeper, *path))
        return list(attributes_of_members(members, ordered, (name, *path)))

    def attribute(self, thing: Thing, name: str) -> Any:
        return None if name in self.needing_path else self.resolve(thing, name)


def require_path(thing: Thing, name: str, path: Sequence[str | int]) -> None:
    """Raise InvalidTemplateAttribute if an attribute of a group that needs a path has none."""
    if not path:
        raise InvalidTemplateAttribute(thing.name, name, "the name of an attribute of its members has to follow it")


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
        **limit_entry(),
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

    def batched_by(self, values: Props) -> str:
        return "rolling_update" if values[POLICY].get("rolling_update") is not None else ""

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        if name == "refs_map":
            members = thing.seen.properties.get("members") or {}
            references = {member: members[member]["reference"] for member in sorted(members, key=_member_order)}
            return part_of(references, path, thing.name, name)
        if name == "removed_rsrc_list":
            return part_of(list(thing.seen.properties.get("skip") or []), path, thing.name, name)
        return super().resolve(thing, name, path)


class ResourceChain(Membership):
    """Resources in a child stack, each depending on its predecessor; see `desired.members`."""

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

    def check_steps(self, values: Props, path: tuple[str | int, ...]) -> None:
        refuse_definitions(values[POLICY], path)

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        """Check that each item names a type."""
        types = values.get("resources")
        for index, type_name in enumerate(types if isinstance(types, list) else ()):
            if type_name is not UNKNOWN and not (isinstance(type_name, str) and type_name):
                raise invalid(f"the name of a resource type is needed, got {type_name!r}", *path, "resources", index)


TYPES = [ResourceGroup, ResourceChain]
