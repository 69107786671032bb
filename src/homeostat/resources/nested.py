"""Types implemented by a nested stack; among them templates as types, whose names end in `.yaml` or `.template`.

The properties of such a type are the parameters of its template, its attributes are the outputs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from homeostat.kinds.base import Statuses
from homeostat.model.errors import Absent, InvalidTemplateAttribute, MemberAway, invalid
from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.resources import groups
from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.graph import Graph, subnets_of_mentioned
from homeostat.resources.schema import ValueType, between, integer, mapping, text
from homeostat.templates.tree import UNKNOWN, holds, part_of, traverse

STACK = "stack"
"""Kind of nested stacks."""
CONTENT = "(content)"
"""Internal property with the fingerprint of the files of a nested stack: an edited file is a change.

The parentheses keep the internal names apart from parameters, which cannot have such names."""
POLICY = "(update policy)"
"""Internal property with the section `update_policy` of a group: a changed policy is a change of the group."""
CREATION = "(creation policy)"
"""Internal property with the section `CreationPolicy` of a group of servers."""
BALANCERS = "(balancers)"
"""Internal property of a group of servers with the pools of its load balancers, by their names."""
FILES = "(files)"
"""Internal property with the files that the template of a remote stack names."""
FACADE = "(facade)"
"""Internal property with the sections of the resource that the implementing template may read (`resource_facade`)."""
INTERNAL = frozenset({CONTENT, POLICY, CREATION, BALANCERS, FILES, FACADE})
"""Internal properties: no schema and no template has them."""


def public_properties(properties: Props) -> dict[str, Any]:
    """Return the properties of a resource without the internal ones."""
    return {name: value for name, value in properties.items() if name not in INTERNAL}


LISTS = ("comma_delimited_list", "CommaDelimitedList")
"""Types of parameters whose values are lists, in HOT and CFN."""


def parameters_of(properties: Props, declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a template resource as values for the parameters of its template.

    Nulls and unknown values are left out. A map or list with an unknown part is passed as it is.

    Args:
        properties: Properties of the resource.
        declared: Parameters section of the template.
    """
    values = {}
    for name, value in public_properties(properties).items():
        entry = declared.get(name)
        kind = (entry.get("type") or entry.get("Type")) if isinstance(entry, Mapping) else None
        if value is not None and value is not UNKNOWN:
            joined = kind in LISTS and isinstance(value, list) and not holds(value, UNKNOWN)
            values[name] = _joined(value) if joined else value
    return values


def _joined(items: Sequence[Any]) -> str:
    """Join a list with commas, as in Heat; a map becomes items `.member.<index>.<key>=<value>`."""
    parts: list[str] = []
    for place, item in enumerate(items):
        if isinstance(item, Mapping):
            parts += [f".member.{place}.{key}={value}" for key, value in item.items()]
        else:
            parts.append("" if item is None else str(item))
    return ",".join(parts)


_AS_PARAMETER = {
    ValueType.STRING: "string",
    ValueType.INTEGER: "number",
    ValueType.NUMBER: "number",
    ValueType.BOOLEAN: "boolean",
    ValueType.LIST: "comma_delimited_list",
    ValueType.MAP: "json",
}


def facade_problem(facade: ResourceType, provided: Mapping[str, str], needed: Collection[str]) -> str:
    """Return why a template cannot implement an existing type; "" if it can.

    Args:
        facade: The existing type.
        provided: Type of each parameter of the template, by name.
        needed: Names of the parameters without a default.
    """
    for name, prop in facade.properties.items():
        wanted = _AS_PARAMETER.get(prop.kind)
        if prop.required and name not in provided:
            return f"Required property {name} for facade {facade.name} missing in provider"
        if name in provided and wanted is not None and provided[name] != wanted:
            names = f"facade {facade.name} ({wanted}) and provider ({provided[name]})"
            return f"Property {name} type mismatch between {names}"
    unknown = sorted(set(needed) - facade.properties.keys())
    return f"Provider requires property {unknown[0]} unknown in facade {facade.name}" if unknown else ""


class NestedStack(ResourceType):
    """Base of the types implemented by a child stack, which heals itself and fails as its parts do.

    Attributes:
        contents: Kind of the revisions of the child stack, see `store.schema.revision`.
        member_property: Property with the definition of each member, if all members are alike.
        internal: Internal properties, which no schema has and no template may set.
    """

    kind = STACK
    contents: ClassVar[str] = "group"
    member_property: ClassVar[str] = "resource_def"
    internal: ClassVar[tuple[str, ...]] = (CONTENT,)
    heals_itself = True
    statuses = Statuses(frozenset({"complete"}), frozenset({"in_progress"}), broken={"failed": Remedy.MANUAL})

    def check(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        """Check as other types do, but let internal properties pass."""
        values = super().check({name: value for name, value in provided.items() if name not in self.internal}, path)
        return values | {name: provided[name] for name in self.internal if name in provided}

    def complete(self, values: Props) -> dict[str, Any]:
        return super().complete(values) | {name: values.get(name) for name in self.internal}

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the subnets of all networks named in the properties: ports and servers inside connect to them."""
        return subnets_of_mentioned(graph, properties)

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        return super().replacement_reason(before, after, changed.difference(self.internal))

    def timeout_s(self, properties: Props) -> float | None:
        """Return the seconds that an action of the child stack may take; None for the time left to its parent."""
        return None

    def fitness(self, thing: Thing, now: float) -> Verdict:
        """Judge as other types do, but report the failure of the child stack without a phrase around it."""
        verdict = super().fitness(thing, now)
        fault = thing.seen.properties.get("fault")
        return replace(verdict, reason=fault) if verdict.condition is Condition.BROKEN and fault else verdict

    def drift(self, thing: Thing) -> tuple[str, ...]:
        """Return nothing: the child stack is converged separately; only its presence and status count here."""
        return ()


DEFINED = "defined"
"""Observed property of a child stack with the names of its resources, or a group."""


def of_member(thing: Thing, name: str, path: Sequence[str | int]) -> Any:
    """Return the reference of a resource of the child stack, or with a path its attribute.

    None if the child stack is unknown.

    Raises:
        MemberAway: The resource is yet to be created, or to be replaced.
        Absent: There is no such resource in the child stack, or nothing at the path.
        Rejected: The attribute cannot be read.
    """
    member = (thing.seen.properties.get("members") or {}).get(name)
    if member is not None and not member["away"]:
        return _read(member, name, path) if path else member["reference"]
    defined = thing.seen.properties.get(DEFINED)
    if defined is None:
        return None
    raise away(thing, name) if groups.is_defined(name, defined) else not_found(thing, name)


def away(thing: Thing, name: str) -> Absent:
    """Return the error for reading a resource that the child stack temporarily lacks."""
    return MemberAway(f"Member '{name}' of '{thing.name}' is not there for now.", "resources", thing.name)


def not_found(thing: Thing, name: str) -> Absent:
    """Return the error for reading a resource that the child stack does not have."""
    return Absent(f"Member '{name}' not found in group resource '{thing.name}'.", "resources", thing.name)


def attributes_of_members(members: Mapping[str, Any], names: Iterable[str], path: Sequence[str | int]) -> Iterator[Any]:
    """Yield the value at a path for each of these members; the path begins with the name of an attribute.

    The value is None for a member without this part: templates filter such lists, for instance of chains with members
    of different templates.

    Raises:
        Rejected: The attribute cannot be read, or a member does not have it.
    """
    for name in names:
        yield traverse(_attribute_of(members[name], name, path[0]), path[1:])


def _read(member: Mapping[str, Any], name: str, path: Sequence[str | int]) -> Any:
    return part_of(_attribute_of(member, name, path[0]), path[1:], name, str(path[0]))


def _attribute_of(member: Mapping[str, Any], name: str, attribute: str | int) -> Any:
    fault = member["faults"].get(attribute)
    if fault is not None:
        raise invalid(fault)
    if attribute not in member["attributes"] and not member["open"]:
        raise InvalidTemplateAttribute(name, str(attribute))
    return member["attributes"].get(attribute)


def output_of(thing: Thing, name: str) -> Any:
    """Return the value of an output of the template of a child stack; None if there is no such output.

    Raises:
        Rejected: The output has an error.
    """
    fault = _faults(thing).get(name)
    if fault is not None:
        raise invalid(_of_output(thing, name, fault))
    return outputs_of(thing).get(name)


def existing_output(thing: Thing, name: str, attribute: str) -> Any:
    """Return the value of an output that the template must have, as soon as the child stack is known.

    Raises:
        InvalidTemplateAttribute: There is no such output.
        Rejected: The output has an error.
    """
    outputs = thing.seen.properties.get("outputs")
    if outputs is not None and name not in outputs and name not in _faults(thing):
        raise InvalidTemplateAttribute(thing.name, attribute)
    return output_of(thing, name)


def outputs_of(thing: Thing) -> dict[str, Any]:
    """Return the values of the outputs that have no error, by their names."""
    return dict(thing.seen.properties.get("outputs") or {})


def _faults(thing: Thing) -> dict[str, str]:
    """Return the errors of outputs, by their names."""
    return dict(thing.seen.properties.get("output_faults") or {})


class FromTemplate(NestedStack):
    """Base of the types whose child stack is made from one template."""

    contents = "template"

    def source(self, properties: Props) -> Any:
        """Return the name of the template among the files of the stack; may be None or `UNKNOWN`."""
        raise NotImplementedError

    def stack_parameters(self, properties: Props) -> Any:
        """Return the values for the parameters of the template, as far as they are known."""
        raise NotImplementedError

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        """Return "": the child stack is never replaced, only its members, each by its own rules."""
        return ""

    def all_outputs(self, thing: Thing) -> dict[str, Any]:
        """Return the value of each output by its name.

        Raises:
            Rejected: An output has an error.
        """
        return {name: output_of(thing, name) for name in (*outputs_of(thing), *_faults(thing))}

    def reference(self, thing: Thing) -> Any:
        """Its output `OS::stack_id` if the template has one, else the ARN of the child stack."""
        return outputs_of(thing).get("OS::stack_id") or thing.seen.properties.get("arn") or thing.handle or thing.name


class TemplateResource(FromTemplate):
    """A template as a type; its name is the key of its text among the files of the stack."""

    description = "A nested stack made from a template."
    open_schema = True

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def source(self, properties: Props) -> Any:
        return self.name

    def stack_parameters(self, properties: Props) -> Any:
        return public_properties(properties)

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        """Return an output of the template, or for `resource.<name>[.<attribute>…]` a value of one of its resources."""
        if name.startswith("resource."):
            member, *deeper = name.removeprefix("resource.").split(".")
            return of_member(thing, member, (*deeper, *path))
        return super().resolve(thing, name, path)

    def attribute(self, thing: Thing, name: str) -> Any:
        return existing_output(thing, name, name)

    def all_attributes(self, thing: Thing) -> dict[str, Any]:
        return self.all_outputs(thing)

    def readable_attributes(self, thing: Thing) -> tuple[dict[str, Any], dict[str, str]]:
        return outputs_of(thing), _placed(thing, _faults(thing))


def _placed(thing: Thing, faults: Mapping[str, str]) -> dict[str, str]:
    return {name: _of_output(thing, name, fault) for name, fault in faults.items()}


def _of_output(thing: Thing, name: str, fault: str) -> str:
    """Return the error of an output of a child stack, in the words that clients of Heat know."""
    return f"Error in {thing.name} output {name}: {fault}"


class TemplateStack(FromTemplate):
    """A nested stack whose template is given by a URL; its text is fetched when the stack is created or updated."""

    name = "AWS::CloudFormation::Stack"
    description = "A nested stack made from the template at a URL. Each output is an attribute `Outputs.<name>`."
    properties = {
        "TemplateURL": text("Where the template is, or its name among the files.", required=True, update=True),
        "TimeoutInMinutes": integer(
            "Minutes that an action of the stack may take.", update=True, constraints=(between(1),)
        ),
        "Parameters": mapping("Values for the parameters of the template.", update=True),
    }

    def source(self, properties: Props) -> Any:
        return properties.get("TemplateURL")

    def stack_parameters(self, properties: Props) -> Any:
        return properties.get("Parameters") or {}

    def timeout_s(self, properties: Props) -> float | None:
        minutes = properties.get("TimeoutInMinutes")
        return minutes * 60.0 if minutes else None

    def attribute(self, thing: Thing, name: str) -> Any:
        return existing_output(thing, name.removeprefix(OUTPUTS), name)

    def all_attributes(self, thing: Thing) -> dict[str, Any]:
        return {f"{OUTPUTS}{name}": value for name, value in self.all_outputs(thing).items()}

    def readable_attributes(self, thing: Thing) -> tuple[dict[str, Any], dict[str, str]]:
        values = {f"{OUTPUTS}{name}": value for name, value in outputs_of(thing).items()}
        return values, {f"{OUTPUTS}{name}": fault for name, fault in _placed(thing, _faults(thing)).items()}


OUTPUTS = "Outputs."
TYPES = [TemplateStack]
