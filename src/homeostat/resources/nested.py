"""Templates as resource types: a type whose name ends in `.yaml` or `.template` is a nested stack made from a file.

Its properties are the parameters of that template, its attributes the template's outputs (environment.md section 5).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.resources.base import Lifecycle, Props, ResourceType, Thing
from homeostat.templates.tree import traverse

ENDINGS = (".yaml", ".template")
CONTENT = "(content)"
"""Property of ours with the fingerprint of the files that a nested stack is made from, so that an edit is a change.
No parameter can have this name."""
POLICY = "(update policy)"
"""Property of ours with the section `update_policy` of a group, so that a change of it is a change of the group."""
FILES = "(files)"
"""Property of ours with the files that the template of a remote stack names."""


def as_given(properties: Props) -> dict[str, Any]:
    """Properties of a resource without those of ours."""
    return {name: value for name, value in properties.items() if name not in (CONTENT, POLICY, FILES)}


def is_template(type_name: str) -> bool:
    """Does this type name stand for a template?"""
    return type_name.endswith(ENDINGS)


class NestedStack(ResourceType):
    """What types with a child stack as their reality share: they mend themselves, and fail as their parts do.

    contents — kind of the revisions of the child stack, see `store.schema.revision`.
    """

    kind = "stack"
    contents: ClassVar[str] = "group"
    mends_itself = True
    lifecycle = Lifecycle(frozenset({"complete"}), frozenset({"in_progress"}), broken={"failed": Remedy.ASK})

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


class TemplateResource(NestedStack):
    """One template as a type. name — the key of its text among the files of the stack."""

    description = "A nested stack made from a template."
    contents = "template"
    open_schema = True

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def replaced_by(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        """Never: the members of the child stack decide for themselves."""
        return ""

    def reference(self, thing: Thing) -> Any:
        """The output `OS::stack_id` if the template has one, else the ARN of the child stack."""
        outputs = thing.seen.properties.get("outputs") or {}
        return outputs.get("OS::stack_id") or thing.seen.properties.get("arn") or thing.handle or thing.name

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
