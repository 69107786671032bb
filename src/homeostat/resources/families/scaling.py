"""Types that scale: groups of variable size, launch configurations for their members, and policies that resize them.

Members are resources of a child stack, like the members of a resource group. FAILED members are removed first, then the
oldest ones; a new member gets the next number as its name, so names are never used again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from homeostat.model.errors import InvalidTemplateAttribute, Rejected, Terminal, invalid
from homeostat.model.status import DeletionPolicy
from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.families.balanced import (
    NAMES,
    SCALED,
    SERVER,
    BalancedServer,
    check_balancers,
    places_of,
)
from homeostat.resources.families.launch_configurations import LikeServer
from homeostat.resources.families.resource_groups import Launched, Membership, require_path, section_of
from homeostat.resources.graph import Graph
from homeostat.resources.group_limits import limit_entry, limits_of
from homeostat.resources.groups import clamped
from homeostat.resources.instance_signals import (
    CREATION_FIELDS,
    SIGNAL_FIELDS,
    batches_of,
    check_creation,
    check_rolling,
    creation_of,
)
from homeostat.resources.nested import (
    BALANCERS,
    CONTENT,
    CREATION,
    DEFINED,
    POLICY,
    attributes_of_members,
    away,
    not_found,
    of_member,
)
from homeostat.resources.rollout_policy import pattern_property, rollout_section
from homeostat.resources.rules import exactly_one, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Property,
    ValueType,
    between,
    coerce,
    custom,
    integer,
    listing,
    mapping,
    number,
    one_of,
    text,
)
from homeostat.templates.tree import part_of

ZONE = "AvailabilityZone"
"""Property of members that a template implementing them may omit."""
METERED = "metering."
TAGS = listing(
    "Tags of the members.",
    items=mapping(
        fields={"Key": text("Name of the tag.", required=True), "Value": text("Value of the tag.", required=True)}
    ),
)


class ScalingGroup(Membership):
    """Base of the types of groups whose size can change."""

    attributes: ClassVar[Mapping[str, Attribute]] = {}
    needing_path: ClassVar[tuple[str, ...]] = ("outputs", "outputs_list")

    def wanted_size(self, values: Props, healthy: int | None) -> int:
        """Return the number of members that the group should have.

        Args:
            values: Properties, with defaults.
            healthy: Number of existing members that have not FAILED; None for a new group.
        """
        raise NotImplementedError

    def bounds(self, values: Props) -> tuple[int, int] | None:
        """Return the least and the greatest size that a signal may lead to; None if signals do not scale the group."""
        return None

    def cooldown_s(self, values: Props) -> float:
        """Return the seconds after a change in which signals do not change the size; policies may override them."""
        return 0.0

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        """Return an attribute, ignoring FAILED members; `resource.<n>` is the member at index n, the oldest first."""
        members = _healthy(thing)
        if name.startswith("resource."):
            place, *deeper = name.removeprefix("resource.").split(".")
            names, defined = list(members), thing.seen.properties.get(DEFINED)
            if place.isdigit() and int(place) < len(names):
                return of_member(thing, names[int(place)], (*deeper, *path))
            if defined is None:
                return None
            is_away = place.isdigit() and int(place) < defined["count"]
            raise away(thing, place) if is_away else not_found(thing, place)
        if name not in self.attributes:
            raise InvalidTemplateAttribute(thing.name, name)
        if name not in self.needing_path:
            return part_of(self.of_members(members, name, ()), path, thing.name, name)
        require_path(thing, name, path)
        return self.of_members(members, name, path)

    def of_members(self, members: Mapping[str, Any], name: str, path: Sequence[str | int]) -> Any:
        """Return an attribute other than `resource.<n>`, computed from the members, which are in their order.

        `path` is the path after an attribute of `needing_path`.
        """
        raise NotImplementedError


def _healthy(thing: Thing) -> dict[str, Any]:
    members = thing.seen.properties.get("members") or {}
    return {name: members[name] for name in sorted(members, key=int) if not members[name].get("failed")}


def bounds_of(kind: ResourceType, values: Props) -> tuple[int, int] | None:
    """Return the least and the greatest size of a group; None for other types, and for groups without bounds."""
    return kind.bounds(values) if isinstance(kind, ScalingGroup) else None


def check_bounds(values: Props, names: tuple[str, str, str], path: tuple[str | int, ...]) -> None:
    """Check the sizes of a group.

    Args:
        names: Names of the properties for the least, the greatest and the desired size.

    Raises:
        Rejected: The sizes contradict one another.
    """
    low, high, wanted = (values.get(name) for name in names)
    if isinstance(low, int) and isinstance(high, int):
        require(low >= 0 and high >= 0, "The size of the group can not be less than zero", path)
        require(low <= high, "MinSize can not be greater than MaxSize", path)
        if isinstance(wanted, int) and wanted:
            require(low <= wanted <= high, "DesiredCapacity must be between MinSize and MaxSize", path)


class AutoScalingGroup(ScalingGroup):
    name = "OS::Heat::AutoScalingGroup"
    description = "A group of alike resources whose size can change between two bounds."
    member_property = "resource"
    properties = {
        "resource": mapping(
            "Definition of each member: type, properties, metadata, deletion and update policy.",
            required=True,
            update=True,
        ),
        "max_size": integer("Most members.", required=True, update=True, constraints=(between(0),)),
        "min_size": integer("Least members.", required=True, update=True, constraints=(between(0),)),
        "cooldown": integer("Seconds after a change in which the size stays.", update=True),
        "desired_capacity": integer("Members at first, and after an update.", update=True),
        "rolling_updates": mapping(
            "How members change when their definition does.",
            default={"min_in_service": 0, "max_batch_size": 1, "pause_time": 0},
            update=True,
            fields={
                "min_in_service": integer(
                    "Members to keep in service meanwhile.", default=0, constraints=(between(0),)
                ),
                "max_batch_size": integer("Members changed at once.", default=1, constraints=(between(1),)),
                "pause_time": number("Seconds between batches.", default=0, constraints=(between(0),)),
            },
        ),
        **pattern_property("metadata_update_pattern"),
    }
    update_policy = {**rollout_section(), **limit_entry()}
    attributes = {
        "outputs": Attribute("An attribute of each member by its name; needs a path.", ValueType.MAP),
        "outputs_list": Attribute("An attribute of each member, the oldest first; needs a path.", ValueType.LIST),
        "current_size": Attribute("How many members there are.", ValueType.INTEGER),
        "refs": Attribute("Reference ids of the members, the oldest first.", ValueType.LIST),
        "refs_map": Attribute("Reference id of each member by its name.", ValueType.MAP),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        check_bounds(values, ("min_size", "max_size", "desired_capacity"), path)
        definition = values.get("resource")
        if isinstance(definition, Mapping):
            check_member(definition, (*path, "resource"))

    def wanted_size(self, values: Props, healthy: int | None) -> int:
        """Return the size between the bounds; a `desired_capacity` of 0 counts as not given, as in Heat."""
        current = values["min_size"] if healthy is None else healthy
        return clamped(values["desired_capacity"] or current, values["min_size"], values["max_size"])

    def bounds(self, values: Props) -> tuple[int, int]:
        return values["min_size"], values["max_size"]

    def cooldown_s(self, values: Props) -> float:
        return float(values["cooldown"] or 0)

    def member(self, values: Props, launched: Launched, group_id: str) -> Any:
        definition = values["resource"]
        if not isinstance(definition, Mapping):
            return definition
        member = {name: definition[name] for name in MEMBER_KEYS if definition.get(name) is not None}
        policy = member.get("deletion_policy")
        return {**member, "deletion_policy": policy.capitalize()} if isinstance(policy, str) else member

    def batched_by(self, values: Props) -> str:
        return "rolling_updates" if values.get("rolling_updates") is not None else ""

    def batches(self, values: Props) -> Mapping[str, Any]:
        """Return the rolling update, which always applies; by default members change one after the other."""
        return {"rolling_update": values["rolling_updates"], **limits_of(values[POLICY])}

    def of_members(self, members: Mapping[str, Any], name: str, path: Sequence[str | int]) -> Any:
        match name:
            case "current_size":
                return len(members)
            case "refs":
                return [member["reference"] for member in members.values()]
            case "refs_map":
                return {key: member["reference"] for key, member in members.items()}
            case "outputs":
                return dict(zip(members, attributes_of_members(members, members, path), strict=True))
            case "outputs_list":
                return list(attributes_of_members(members, members, path))
        return None


MEMBER_KEYS = ("type", "properties", "metadata", "deletion_policy", "update_policy", "description")
"""Sections allowed in the definition of members, besides an empty `depends_on`."""


def check_member(definition: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
    """Check the definition of members; the type checks their properties and their update policy.

    Raises:
        Rejected: The definition has no type, forbidden sections, or a section of a wrong form.
    """
    for key in definition:
        if key not in (*MEMBER_KEYS, "depends_on"):
            raise invalid(f"{key} is not supported in members of a group; use {', '.join(MEMBER_KEYS)}", *path)
    require(
        definition.get("depends_on") in (None, UNKNOWN, "", []),
        "members have nothing beside them to depend on: let the group itself depend on it",
        (*path, "depends_on"),
    )
    kind = definition.get("type")
    require(kind is UNKNOWN or (isinstance(kind, str) and bool(kind)), "Property type not assigned", path)
    deletion = definition.get("deletion_policy")
    known = deletion in (None, UNKNOWN) or (isinstance(deletion, str) and deletion.capitalize() in list(DeletionPolicy))
    require(known, f'Invalid deletion policy "{deletion}": use {", ".join(DeletionPolicy)}', (*path, "deletion_policy"))
    update = definition.get("update_policy")
    require(update in (None, UNKNOWN) or isinstance(update, Mapping), "A map is needed", (*path, "update_policy"))


def _rolling_section() -> Property:
    return mapping(
        "Change members in batches.",
        fields={
            "MinInstancesInService": integer("Members to keep in service meanwhile.", default=0),
            "MaxBatchSize": integer("Members changed at once.", default=1),
            "PauseTime": text(
                "Time between batches, such as PT1M30S; with WaitOnResourceSignals that for signals, by default PT5M."
            ),
            **SIGNAL_FIELDS,
        },
    )


class InstanceGroup(ScalingGroup):
    """A group of servers made from a launch configuration.

    Attributes:
        section: Section of the update policy about changing members.
        metered: Names of the `metering.` tags whose value is the id of the group.
    """

    name = "OS::Heat::InstanceGroup"
    description = "A group of servers made from a launch configuration."
    section: ClassVar[str] = "RollingUpdate"
    metered: ClassVar[tuple[str, ...]] = ("groupname",)
    properties = {
        "AvailabilityZones": listing("Availability zones; the first is used.", required=True),
        "LaunchConfigurationName": text(
            "Launch configuration of the same stack that members are made from.", required=True, update=True
        ),
        "Size": integer("How many members.", required=True, update=True),
        NAMES: listing("Load balancers of the same template in front of the members."),
        "Tags": TAGS,
        **pattern_property("MetadataUpdatePattern"),
    }
    pattern = "MetadataUpdatePattern"
    internal = (CONTENT, CREATION, BALANCERS)
    update_policy = {"RollingUpdate": _rolling_section(), **rollout_section(), **limit_entry()}
    attributes = {"InstanceList": Attribute("Addresses of the members, with commas.")}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        size = values.get("Size")
        require(not isinstance(size, int) or size >= 0, "Size can not be less than zero", (*path, "Size"))

    def validate_among(self, properties: Props, graph: Graph, path: tuple[str | int, ...]) -> None:
        check_balancers(properties, graph, path)

    def check(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        values = super().check(provided, path)
        if values.get(CREATION) is not None:
            values[CREATION] = self.check_creation(section_of(values, CREATION, "CreationPolicy", path), path)
        return values

    def check_policy(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        policy = super().check_policy(provided, path)
        try:
            check_rolling(policy.get(self.section) or {})
        except Rejected as error:
            raise error.at(*path, self.section) from error
        return policy

    def check_creation(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        """Check the section `CreationPolicy`, and convert its values.

        Raises:
            Rejected: A value is wrong; the error has its path.
        """
        creation = coerce(CREATION_FIELDS, {name: value for name, value in provided.items() if value is not None}, path)
        check_creation(creation, path)
        return creation

    def wanted_size(self, values: Props, healthy: int | None) -> int:
        return int(values["Size"])

    def member(self, values: Props, launched: Launched, group_id: str) -> Any:
        name = values["LaunchConfigurationName"] or values.get("InstanceId")
        launch = launched(str(name)) if name else None
        if launch is None:
            return None
        server = {**self.instance(values, launch), "Tags": self.tags(values, group_id)}
        if not values[BALANCERS]:
            return {"type": SCALED, "properties": server}
        places = places_of(values[BALANCERS])
        if places is None:
            raise Terminal(f"the pools of its load balancers ({', '.join(values[BALANCERS])}) are not known")
        return {"type": BalancedServer.name, "properties": {SERVER: server, "places": places}}

    def instance(self, values: Props, launch: Props) -> dict[str, Any]:
        """Return the properties of a member."""
        copied = ("ImageId", "InstanceType", "KeyName", "UserData", "SecurityGroups", "BlockDeviceMappings")
        properties = {name: launch[name] for name in (*copied, "NovaSchedulerHints") if launch.get(name)}
        if values["AvailabilityZones"] and values["AvailabilityZones"][0]:
            properties[ZONE] = values["AvailabilityZones"][0]
        return properties

    def tags(self, values: Props, group_id: str) -> list[dict[str, Any]]:
        """Return the template's tags, and further tags by which meters find the members.

        The latter are left out if the template itself has `metering.` tags.
        """
        provided = list(values["Tags"] or ())
        if any(str(tag.get("Key")).startswith(METERED) for tag in provided):
            return provided
        return [*provided, *({"Key": METERED + word, "Value": group_id} for word in self.metered)]

    def batches(self, values: Props) -> Mapping[str, Any]:
        policy, creation = values[POLICY].get(self.section), creation_of(values[CREATION])
        batches: dict[str, Any] = limits_of(values[POLICY])
        if creation is not None:
            batches["creation"] = creation
        if policy is None:
            return batches
        rolling = {
            "min_in_service": max(policy["MinInstancesInService"], 0),
            "max_batch_size": max(policy["MaxBatchSize"], 1),
        }
        return {**batches, "rolling_update": {**rolling, **batches_of(policy)}}

    def batched_by(self, values: Props) -> str:
        return self.section if values[POLICY].get(self.section) is not None else ""

    def takes_reports(self, values: Props) -> bool:
        """Return whether members have to report before the group continues; `values` include defaults."""
        batches = self.batches(values)
        return "creation" in batches or "reports" in (batches.get("rolling_update") or {})

    def of_members(self, members: Mapping[str, Any], name: str, path: Sequence[str | int]) -> Any:
        if name != "InstanceList":
            return None
        addresses = attributes_of_members(members, members, ("PublicIp",))
        return ",".join(str(address) for address in addresses if address is not None)


class AwsAutoScalingGroup(InstanceGroup, LikeServer):
    name = "AWS::AutoScaling::AutoScalingGroup"
    description = "A group of servers whose size can change between two bounds."
    section = "AutoScalingRollingUpdate"
    metered = ("groupname", "AutoScalingGroupName")
    properties = {
        "AvailabilityZones": listing("Availability zones; the first is used.", required=True),
        "LaunchConfigurationName": text(
            "Launch configuration of the same stack that members are made from.", update=True
        ),
        "InstanceId": text(
            "Server whose image, flavor, key pair and security groups the members get.",
            constraints=(custom("nova.server"),),
        ),
        "MaxSize": integer("Most members.", required=True, update=True),
        "MinSize": integer("Least members.", required=True, update=True),
        "Cooldown": integer("Seconds after a change in which the size stays.", update=True),
        "DesiredCapacity": integer("Members at first, and after an update.", update=True),
        "HealthCheckGracePeriod": integer("Seconds until members are checked.", implemented=False),
        "HealthCheckType": text("Who checks them.", implemented=False, constraints=(one_of("EC2", "ELB"),)),
        NAMES: listing("Load balancers of the same template in front of the members."),
        "VPCZoneIdentifier": listing("Subnet of the members, in a list of one.", items=text()),
        "Tags": TAGS,
        **pattern_property("MetadataUpdatePattern"),
    }
    update_policy = {"AutoScalingRollingUpdate": _rolling_section(), **rollout_section(), **limit_entry()}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        exactly_one(values, path, "InstanceId", "LaunchConfigurationName")
        check_bounds(values, ("MinSize", "MaxSize", "DesiredCapacity"), path)
        subnets = values.get("VPCZoneIdentifier")
        is_single = not isinstance(subnets, list) or len(subnets) <= 1
        require(is_single, "Anything other than one VPCZoneIdentifier is not supported", (*path, "VPCZoneIdentifier"))

    def wanted_size(self, values: Props, healthy: int | None) -> int:
        current = values["MinSize"] if healthy is None else healthy
        return clamped(values["DesiredCapacity"] or current, values["MinSize"], values["MaxSize"])

    def bounds(self, values: Props) -> tuple[int, int]:
        return values["MinSize"], values["MaxSize"]

    def cooldown_s(self, values: Props) -> float:
        return float(values["Cooldown"] or 0)

    def instance(self, values: Props, launch: Props) -> dict[str, Any]:
        properties = super().instance(values, launch)
        if values["VPCZoneIdentifier"]:
            properties["SubnetId"] = values["VPCZoneIdentifier"][0]
        return properties


TYPES: list[type[ResourceType]] = [
    AutoScalingGroup,
    InstanceGroup,
    AwsAutoScalingGroup,
]
