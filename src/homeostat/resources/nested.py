"""Templates as resource types: a type whose name ends in `.yaml` or `.template` is a nested stack made from a file.

Its properties are the parameters of that template, its attributes the template's outputs (environment.md section 5).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.resources.base import Props, ResourceType, StatusWords, Thing
from homeostat.resources.schema import Kind, between, integer, mapping, text
from homeostat.templates.tree import UNKNOWN, holds, traverse

CONTENT = "(content)"
"""Property of ours with the fingerprint of the files that a nested stack is made from, so that an edit is a change.
No parameter can have this name."""
POLICY = "(update policy)"
"""Property of ours with the section `update_policy` of a group, so that a change of it is a change of the group."""
FILES = "(files)"
"""Property of ours with the files that the template of a remote stack names."""
FACADE = "(facade)"
"""Property of ours with the sections of a resource that the template which it stands for may read."""


def as_given(properties: Props) -> dict[str, Any]:
    """Properties of a resource without those of ours."""
    return {name: value for name, value in properties.items() if name not in (CONTENT, POLICY, FILES, FACADE)}


LISTS = ("comma_delimited_list", "CommaDelimitedList")
"""Types of parameters whose values are lists, in either language."""


def parameters_of(properties: Props, declared: Mapping[str, Any]) -> dict[str, Any]:
    """Properties of a template resource as values for the parameters of its template; nulls are not passed, nor is what
    is not known at all. A map or list of which something is not known is passed as it is.

    declared — the parameters, as the template declares them.
    """
    found = {}
    for name, value in as_given(properties).items():
        entry = declared.get(name)
        kind = (entry.get("type") or entry.get("Type")) if isinstance(entry, Mapping) else None
        if value is not None and value is not UNKNOWN:
            joined = kind in LISTS and isinstance(value, list) and not holds(value, UNKNOWN)
            found[name] = _joined(value) if joined else value
    return found


def _joined(items: Sequence[Any]) -> str:
    """A list with commas; maps among its items are told apart by their places."""
    parts: list[str] = []
    for place, item in enumerate(items):
        if isinstance(item, Mapping):
            parts += [f".member.{place}.{key}={value}" for key, value in item.items()]
        else:
            parts.append("" if item is None else str(item))
    return ",".join(parts)


_AS_PARAMETER = {
    Kind.STRING: "string",
    Kind.INTEGER: "number",
    Kind.NUMBER: "number",
    Kind.BOOLEAN: "boolean",
    Kind.LIST: "comma_delimited_list",
    Kind.MAP: "json",
}


def facade_problem(facade: ResourceType, provided: Mapping[str, str], needed: Collection[str]) -> str:
    """Why a template cannot stand for a type that there is; "" where it can.

    provided — type of each parameter of the template; needed — names of those that must be given.
    """
    for name, prop in facade.properties.items():
        wanted = _AS_PARAMETER.get(prop.kind)
        if prop.required and name not in provided:
            return f"Required property {name} for facade {facade.name} missing in provider"
        if name in provided and wanted is not None and provided[name] != wanted:
            names = f"facade {facade.name} ({wanted}) and provider ({provided[name]})"
            return f"Property {name} type mismatch between {names}"
    strange = sorted(set(needed) - facade.properties.keys())
    return f"Provider requires property {strange[0]} unknown in facade {facade.name}" if strange else ""


class NestedStack(ResourceType):
    """What types with a child stack as their reality share: they mend themselves, and fail as their parts do.

    contents — kind of the revisions of the child stack, see `store.schema.revision`. member_property — the property
    that has the definition of each member, where all are alike.
    """

    kind = "stack"
    contents: ClassVar[str] = "group"
    member_property: ClassVar[str] = "resource_def"
    mends_itself = True
    lifecycle = StatusWords(frozenset({"complete"}), frozenset({"in_progress"}), broken={"failed": Remedy.ASK})

    def check(self, given: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        """The fingerprint of what the child stack is made from is no property of the schema."""
        values = super().check({name: value for name, value in given.items() if name != CONTENT}, path)
        return {**values, CONTENT: given[CONTENT]} if CONTENT in given else values

    def complete(self, values: Props) -> dict[str, Any]:
        return {**super().complete(values), CONTENT: values.get(CONTENT)}

    def replaced_by(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        return super().replaced_by(before, after, changed - {CONTENT})

    def timeout_s(self, properties: Props) -> float | None:
        """How long an action of the child stack may take; None: as long as its parent has time."""
        return None

    def fitness(self, thing: Thing, now: float) -> Verdict:
        """What failed in the child stack is told as it is."""
        verdict = super().fitness(thing, now)
        fault = thing.seen.properties.get("fault")
        return replace(verdict, reason=fault) if verdict.condition is Condition.BROKEN and fault else verdict

    def drift(self, thing: Thing) -> tuple[str, ...]:
        """The child stack is converged by itself; only its presence and status count here."""
        return ()


def of_member(member: Mapping[str, Any] | None, path: Sequence[str | int]) -> Any:
    """One resource of the child stack: its reference, or with a path its attribute."""
    if member is None:
        return None
    return traverse(member["attributes"], path) if path else member["reference"]


class FromTemplate(NestedStack):
    """What types share whose child stack is made from one template."""

    contents = "template"

    def source(self, properties: Props) -> Any:
        """Name of the template among the files of the stack, as far as it is known."""
        raise NotImplementedError

    def given(self, properties: Props) -> Any:
        """Values for the parameters of the template, as far as they are known."""
        raise NotImplementedError

    def replaced_by(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        """Never: the members of the child stack decide for themselves."""
        return ""

    def reference(self, thing: Thing) -> Any:
        """The output `OS::stack_id` if the template has one, else the ARN of the child stack."""
        outputs = thing.seen.properties.get("outputs") or {}
        return outputs.get("OS::stack_id") or thing.seen.properties.get("arn") or thing.handle or thing.name


class TemplateResource(FromTemplate):
    """One template as a type. name — the key of its text among the files of the stack."""

    description = "A nested stack made from a template."
    open_schema = True

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def source(self, properties: Props) -> Any:
        return self.name

    def given(self, properties: Props) -> Any:
        return as_given(properties)

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        """An output of the template, or `resource.<name>[.<attribute>…]` of one of its resources."""
        if name.startswith("resource."):
            member, *deeper = name.removeprefix("resource.").split(".")
            return of_member((thing.seen.properties.get("members") or {}).get(member), (*deeper, *path))
        return super().resolve(thing, name, path)

    def attribute(self, thing: Thing, name: str) -> Any:
        return (thing.seen.properties.get("outputs") or {}).get(name)

    def all_attributes(self, thing: Thing) -> dict[str, Any]:
        return dict(thing.seen.properties.get("outputs") or {})


class TemplateStack(FromTemplate):
    """A nested stack whose template is a property: its text is fetched when the stack is asked for."""

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

    def given(self, properties: Props) -> Any:
        return properties.get("Parameters") or {}

    def timeout_s(self, properties: Props) -> float | None:
        minutes = properties.get("TimeoutInMinutes")
        return minutes * 60.0 if minutes else None

    def attribute(self, thing: Thing, name: str) -> Any:
        return (thing.seen.properties.get("outputs") or {}).get(name.removeprefix(OUTPUTS))

    def all_attributes(self, thing: Thing) -> dict[str, Any]:
        return {f"{OUTPUTS}{name}": value for name, value in (thing.seen.properties.get("outputs") or {}).items()}


OUTPUTS = "Outputs."
TYPES = [TemplateStack]
