"""What a resource type is: schemas, and pure translation between properties and the objects of a cloud.

Adding a type is one subclass of `ResourceType` in the file of its family, listed in that file's `TYPES`.
Nothing here does I/O: the convergence loop calls the cloud, types only say what to ask for and what the answer means.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from homeostat.model.observed import READY, Condition, Observation, Presence, Remedy, Verdict
from homeostat.resources.schema import Attribute, Schema, coerce, with_defaults

Props = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Thing:
    """One resource as its type sees it when asked about attributes, references or fitness.

    key — the row's id, 12 lower-case letters and digits; name — in the template; physical_name — for the cloud;
    properties — resolved ones as last applied, with defaults; seen — the last observation of it;
    acted_at — when the last act on it was carried out, seconds since the epoch; action — CREATE, UPDATE, ….
    """

    key: str
    name: str
    physical_name: str
    properties: Props
    seen: Observation
    handle: str = ""
    acted_at: float = 0.0
    action: str = "CREATE"
    metadata: Mapping[str, Any] = field(default_factory=dict)


class ResourceType:
    """Base of all resource types. Subclasses set the class attributes and override what differs.

    kind — kind of the cloud port; "" for types that live in the service alone (their object is what `embody` gives).
    entity — what a person calls it, for messages. update_policy — schema of that section. status — support status.
    """

    name: ClassVar[str]
    kind: ClassVar[str] = ""
    description: ClassVar[str] = ""
    properties: ClassVar[Schema] = {}
    attributes: ClassVar[Mapping[str, Attribute]] = {}
    update_policy: ClassVar[Schema] = {}
    can_snapshot: ClassVar[bool] = False
    open_schema: ClassVar[bool] = False

    # -- before anything exists ------------------------------------------------------------------------------------

    def check(self, given: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        """Coerced properties, only those given. Values may be `schema.UNKNOWN`. Fails: Rejected naming the path."""
        if self.open_schema:
            return dict(given)
        values = coerce(self.properties, given, path)
        self.validate(values, path)
        return values

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        """Rules across properties; raise `errors.invalid(message, *path)`. Values may be `schema.UNKNOWN`."""

    def complete(self, values: Props) -> dict[str, Any]:
        """`values` with the defaults of the schema."""
        return dict(values) if self.open_schema else with_defaults(self.properties, values)

    def implied_requires(self, values: Props, graph: Mapping[str, tuple[str, Props]]) -> set[str]:
        """Names of resources in the same template that must come first though nothing refers to them.

        graph — name -> (type name, properties with `schema.Reference` where another resource is named).
        """
        return set()

    # -- acting ------------------------------------------------------------------------------------------------------

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        """The cloud object wanted, from properties completed with defaults. Omit what the user leaves to the cloud."""
        spec = {name: value for name, value in values.items() if value is not None}
        if "name" in self.properties and not spec.get("name"):
            spec["name"] = physical_name
        return spec

    def embody(self, values: Props, token: str, entropy: Callable[[int], bytes]) -> dict[str, Any]:
        """For types without a cloud: the object itself. entropy(n) gives n random bytes."""
        return {}

    def replaced_by(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        """Why this change needs a replacement, or "" where it can be done in place. Both with defaults."""
        fixed = sorted(name for name in changed if name not in self.properties or not self.properties[name].update)
        return f"{', '.join(fixed)} cannot change in place" if fixed else ""

    # -- looking -----------------------------------------------------------------------------------------------------

    def judge(self, thing: Thing, now: float) -> Verdict:
        """Does what was seen fit what should be? Call only when something was seen since the last act."""
        if thing.seen.presence is Presence.ABSENT:
            return Verdict(Condition.ABSENT, thing.seen.reason or "it is gone", Remedy.RECREATE)
        if thing.seen.presence is Presence.UNKNOWN:
            return Verdict(Condition.UNKNOWN, thing.seen.reason)
        return self.fitness(thing, now)

    def fitness(self, thing: Thing, now: float) -> Verdict:
        """`judge` for a thing that is present: read its status, then compare the properties that are set."""
        drifted = self.drift(thing)
        if drifted:
            return Verdict(Condition.DRIFTED, f"{', '.join(drifted)} changed outside", Remedy.UPDATE, drifted=drifted)
        return READY

    def drift(self, thing: Thing) -> tuple[str, ...]:
        """Names of set properties whose observed value differs from the desired one (only those a cloud reports)."""
        wanted = self.spec(thing.properties, thing.physical_name)
        seen = thing.seen.properties
        return tuple(
            name
            for name, prop in self.properties.items()
            if prop.drift and prop.update and wanted.get(name) is not None and name in seen and seen[name] != wanted[name]
        )

    def observed_properties(self, thing: Thing) -> dict[str, Any]:
        """Observed values of the properties that the template sets, for `resource_properties_observed` (CV1)."""
        seen = thing.seen.properties
        return {name: seen[name] for name in self.properties if name in seen and thing.properties.get(name) is not None}

    # -- answering ---------------------------------------------------------------------------------------------------

    def reference(self, thing: Thing) -> Any:
        """Value of `get_resource`."""
        return thing.handle or thing.name

    def attribute(self, thing: Thing, name: str) -> Any:
        """Value of `get_attr: [resource, name]` before any further path; None when it cannot be known."""
        return thing.seen.properties.get(name)

    def show(self, thing: Thing) -> Any:
        """Value of the attribute `show`: everything the cloud says."""
        return dict(thing.seen.properties)


def settling(thing: Thing, *, ready: frozenset[str], busy: frozenset[str], broken: frozenset[str]) -> Verdict | None:
    """Common reading of `status`: a verdict for busy, broken and unknown words, None when ready or without status."""
    status = thing.seen.properties.get("status")
    if status is None or status in ready:
        return None
    if status in busy:
        return Verdict(Condition.PENDING, f"its status is {status}")
    if status in broken:
        fault = thing.seen.properties.get("fault") or f'Went to status {status} due to "Unknown"'
        return Verdict(Condition.BROKEN, str(fault), Remedy.RECREATE)
    return Verdict(Condition.BROKEN, f"Unknown status {status}", Remedy.ASK)
