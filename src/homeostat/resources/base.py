"""Base of resource types: schemas, and pure translation between properties and the objects of a cloud.

To add a type, write a subclass of `ResourceType` in the file of its family, and list it in that file's `TYPES`. Types
do no I/O: the convergence loop calls the cloud; a type builds requests and interprets responses.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from homeostat.kinds.base import Statuses
from homeostat.kinds.registry import CLOUD_KINDS, KINDS
from homeostat.model.errors import check_name
from homeostat.model.health_policy import Preserved
from homeostat.model.observed import READY, Condition, Observation, Presence, Remedy, Verdict
from homeostat.model.record import record
from homeostat.resources.comparison import Rule, fingerprint
from homeostat.resources.graph import Graph
from homeostat.resources.rules import conflict
from homeostat.resources.schema import Attribute, Schema, ValueType, coerce, with_defaults
from homeostat.resources.support import SUPPORTED, Support
from homeostat.templates.tree import part_of

Props = Mapping[str, Any]

SHOW = Attribute("Everything that the cloud reports about the resource.", ValueType.MAP, live=True)
NAME_LIMIT = 63
"""Longest physical name, in characters: short enough for host names."""
WORDS = frozenset({"name", "description", "Description"})
"""Properties for people, which may be empty."""
EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Values that leave the choice to the cloud; they are never compared with observed values."""


@record
class Thing:
    """A resource with its last observation: the input of methods that judge it or return its attributes.

    Attributes:
        key: Id of the row, 12 lower-case letters and digits.
        name: Name in the template.
        physical_name: Name in the cloud.
        properties: Resolved properties as last applied, with defaults.
        seen: The last observation.
        handle: The cloud's id; "" while unknown.
        acted_at: Time of the last act, in seconds since the epoch.
        action: CREATE, UPDATE, …
        maintained: SUSPEND and LOCK, if suspended or locked with its stack.
        kept: See `model.marks.Marks`.
        accepted: See `model.marks.Marks`.
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
    maintained: tuple[str, ...] = ()
    kept: str = ""
    accepted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdoptionTag:
    """Tag that an adoption writes on a companion object in the cloud, to name the adopted object.

    Attributes:
        kind: Kind of the tagged object.
        handle: Id of the tagged object.
        of: Id of the adopted object, which the tag names.
    """

    kind: str
    handle: str
    of: str


@dataclass(frozen=True, slots=True)
class MaintenanceMethod:
    """How to suspend, resume, lock or unlock a resource, and to observe the result.

    Attributes:
        operation: Operation of the cloud port; "" for an update of `fields`.
        fields: Fields to update, with their values.
        observed_field: Observed field with the result.
        done: Values of the observed field that mean done.
        gradual: Whether the action takes time; its end then shows in `status`.
    """

    operation: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    observed_field: str = "status"
    done: tuple[Any, ...] = ()
    gradual: bool = True

    def is_done(self, seen: Props) -> bool:
        return seen.get(self.observed_field) in self.done


def switched(name: str, *, suspended: Any, running: Any) -> dict[str, MaintenanceMethod]:
    """Return methods that suspend and resume an object by setting a field."""
    return {
        "SUSPEND": MaintenanceMethod(fields={name: suspended}, observed_field=name, done=(suspended,), gradual=False),
        "RESUME": MaintenanceMethod(fields={name: running}, observed_field=name, done=(running,), gradual=False),
    }


def passed_on(*actions: str) -> dict[str, MaintenanceMethod]:
    """Return methods for actions that are operations of the cloud; the field `action` reports the last one."""
    return {action: MaintenanceMethod(action.lower(), observed_field="action", done=(action,)) for action in actions}


class ResourceType:
    """Base of all resource types. Subclasses set the class attributes and override methods.

    Attributes:
        name: Name in templates.
        renamed_to: Present name of the type if `name` is a former one, else "". A resource can change between both
            names without a change in the cloud.
        kind: Kind of the cloud port; "" for types without a cloud object, whose object is the result of `build_object`.
        attributes: Attributes by name; `show` is added to all types.
        update_policy: Schema of the section `update_policy`.
        secretive: Whether its objects are or contain secrets: passwords, keys, signed URLs.
        secret_reference: Whether its reference is a secret.
        creation_only_fields: Fields that the cloud returns only in its response to the creation; default: of its kind.
        heals_itself: Whether its parts are converged by themselves: a failed action then never causes a replacement.
        can_snapshot: Whether the deletion policy Snapshot is possible.
        renewed: Whether each update of the stack replaces the resource.
        open_schema: Whether any property and attribute is accepted.
        open_attributes: Whether there are attributes besides the declared ones.
        statuses: Meaning of status words; default: of its kind.
        maintenance_methods: Action (SUSPEND, RESUME, LOCK, UNLOCK) -> its method; other actions have no effect.
        renamed: Property -> field of the cloud's object, if the two names differ.
        unsent: Properties that are no fields of the cloud's object: `spec` puts them into others, or leaves them out.
        name_limit: Longest physical name, in characters.
        deprecated_properties: Deprecated property -> its replacement.
    """

    name: ClassVar[str]
    renamed_to: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    description: ClassVar[str] = ""
    properties: ClassVar[Schema] = {}
    attributes: ClassVar[Mapping[str, Attribute]] = {}
    update_policy: ClassVar[Schema] = {}
    secretive: ClassVar[bool] = False
    secret_reference: ClassVar[bool] = False
    creation_only_fields: ClassVar[tuple[str, ...]] = ()
    heals_itself: ClassVar[bool] = False
    can_snapshot: ClassVar[bool] = False
    renewed: ClassVar[bool] = False
    open_schema: ClassVar[bool] = False
    open_attributes: ClassVar[bool] = False
    support: ClassVar[Support] = SUPPORTED
    statuses: ClassVar[Statuses] = Statuses()
    maintenance_methods: ClassVar[Mapping[str, MaintenanceMethod]] = {}
    renamed: ClassVar[Mapping[str, str]] = {}
    unsent: ClassVar[Collection[str]] = ()
    name_limit: ClassVar[int] = NAME_LIMIT
    deprecated_properties: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.attributes = {**cls.attributes, "show": SHOW}
        if cls.kind in KINDS and "statuses" not in cls.__dict__:
            cls.statuses = KINDS[cls.kind].statuses
        if cls.kind in KINDS and "creation_only_fields" not in cls.__dict__:
            cls.creation_only_fields = KINDS[cls.kind].creation_only
        cls._canonical = {name: prop for name, prop in cls.properties.items() if name not in cls.deprecated_properties}
        cls._defaults = with_defaults(cls._canonical, {})
        cls._compared = tuple(
            (name, cls.renamed.get(name, name), prop.same)
            for name, prop in cls._canonical.items()
            if prop.update and prop.drift
        )
        cls._observable = tuple((name, cls.renamed.get(name, name)) for name in cls._canonical)
        # A null becomes an empty text; and templates write "" to leave a property out, which services would refuse.
        texts = {name: prop for name, prop in cls.properties.items() if prop.kind is ValueType.STRING}
        cls._left_out = frozenset(
            name
            for name, prop in texts.items()
            if prop.constraints or (cls.kind in CLOUD_KINDS and not prop.blank and name not in WORDS)
        )

    _canonical: ClassVar[Schema] = {}
    _defaults: ClassVar[Mapping[str, Any]] = {}
    _observable: ClassVar[tuple[tuple[str, str], ...]] = ()
    _compared: ClassVar[tuple[tuple[str, str, Rule], ...]] = ()
    _left_out: ClassVar[frozenset[str]] = frozenset()

    # -- before anything exists ------------------------------------------------------------------------------

    def check(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        """Check the given properties, convert them to the types of the schema, and return them without defaults.

        Args:
            provided: Properties as resolved so far; values may be `schema.UNKNOWN`.

        Raises:
            Rejected: A property is wrong; the error has its path.
        """
        if self.open_schema:
            return dict(provided)
        values = coerce(
            self._canonical, self._without_deprecated(provided, path) if self.deprecated_properties else provided, path
        )
        check_name(values.get("name"), (*path, "name"))
        self.validate(values, path)
        return values

    def _without_deprecated(self, provided: Props, path: tuple[str | int, ...]) -> Props:
        values = dict(provided)
        for old, name in self.deprecated_properties.items():
            value = values.pop(old, None)
            if value is None:
                continue
            if values.get(name) is not None:
                raise conflict(path, name, old)
            values[name] = value
        return values

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        """Check rules across properties; raise `errors.invalid(message, *path)`. Values may be `schema.UNKNOWN`."""

    def complete(self, values: Props) -> dict[str, Any]:
        """Return `values` with the defaults of the schema, without deprecated properties."""
        return dict(values) if self.open_schema else with_defaults(self._canonical, values, self._defaults)

    def validate_among(self, properties: Props, graph: Graph, path: tuple[str | int, ...]) -> None:
        """Check rules across the resources of the template; raise `errors.invalid(message, *path)`.

        Args:
            properties: This resource's own raw property tree, as in the graph (see `resources.graph`).
            graph: All resources of the template.
        """

    def has_own(self, method: str) -> bool:
        """Return whether the type has a method of its own instead of the common one."""
        return getattr(type(self), method) is not getattr(ResourceType, method)

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the names of resources in the same template that must come first although nothing refers to them.

        Args:
            properties: This resource's own raw property tree, as in the graph (see `resources.graph`).
            graph: All resources of the template.
        """
        return set()

    # -- acting ----------------------------------------------------------------------------------------------

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        """Return the desired object of the cloud, without the fields whose choice is left to the cloud.

        Args:
            values: Properties, with defaults.
            physical_name: Name of the object if the properties have none.
        """
        renamed = self.renamed
        spec = {
            renamed.get(name, name): value
            for name, value in values.items()
            # Most values are no empty text: asked here, since a call for each property costs a percent of a creation.
            if value is not None and (value != "" or not self.means_none(name, value))
        }
        if "name" in self.properties and not spec.get("name"):
            spec["name"] = physical_name
        return spec

    def fields_of(self, name: str, values: Props) -> tuple[str, ...]:
        """Return the fields of the cloud's object that a property sets."""
        return (self.renamed.get(name, name),)

    def means_none(self, name: str, value: Any) -> bool:
        """Return whether a value of a property is an empty text that means null."""
        return value == "" and name in self._left_out

    def build_object(self, values: Props, token: str, entropy: Callable[[int], bytes]) -> dict[str, Any]:
        """Return the object of a type that exists in the service alone.

        Args:
            values: Properties, with defaults.
            token: Token of the creation; the same in each retry.
            entropy: Returns that many random bytes.
        """
        return {}

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        """Return why this change needs a replacement; "" if it can be made in place.

        Args:
            before: Properties as last applied, with defaults.
            after: Desired properties, with defaults.
            changed: Names of the properties that differ.
        """
        fixed = sorted(name for name in changed if name not in self.properties or not self.properties[name].update)
        return f"{', '.join(fixed)} cannot change in place" if fixed else ""

    def always_updates(self, values: Props) -> bool:
        """Return whether each update of the stack updates the resource in place, even without any difference."""
        return False

    def snapshot_property(self, values: Props) -> str:
        """Return the property that takes a snapshot's id to restore; "" if none does. `values` include defaults."""
        return ""

    def observed_replacement_reason(self, thing: Thing, after: Props) -> str:
        """Return why the observed object cannot be changed in place to `after` (with defaults); "" if it can."""
        return ""

    def identity(
        self, values: Props, seen: Props, preserved: Collection[Preserved], managed: Collection[str]
    ) -> dict[str, Any]:
        """Return the properties that carry the identity of a resource over to its replacement.

        Args:
            values: Properties of the old resource, with defaults.
            seen: Fields of the old resource as last seen.
            preserved: Aspects of the identity to keep.
            managed: Ids of volumes that the stack attaches by separate resources.
        """
        return {}

    def shown_id(self, handle: str) -> str:
        """Return the physical id as users know it."""
        return handle

    def adopted_handle(self, id: str, values: Props) -> str:
        """Return the handle of an adopted resource that the former service knew by `id`; `values` include defaults."""
        return id

    def adoption(self, data: Props) -> dict[str, Any] | None:
        """Return the arguments of the cloud's operation `adopt`; None if an observation is enough.

        `data` is the `resource_data` that the former service has stored.
        """
        return None

    def adoption_tags(self, thing: Thing, arguments: Props) -> list[AdoptionTag]:
        """Return the tags that the cloud's operation `adopt` writes for an existing object; see `adoption`."""
        return []

    def once_tagged(self, seen: Props, of: Sequence[str]) -> Props:
        """Return the observation of an object after it got the tags of these adopted objects."""
        return seen

    # -- looking ---------------------------------------------------------------------------------------------

    def judge(self, thing: Thing, now: float) -> Verdict:
        """Compare the observed state with the desired state. Call only after an observation since the last act."""
        if thing.seen.presence is Presence.ABSENT:
            return Verdict(Condition.ABSENT, thing.seen.reason or "it is gone", Remedy.RECREATE)
        if thing.seen.presence is Presence.UNKNOWN:
            return Verdict(Condition.UNKNOWN, thing.seen.reason)
        return self.fitness(thing, now)

    def lost_fields(self, thing: Thing) -> tuple[str, ...]:
        """Return the `creation_only_fields` that were lost with a response; without them the object is useless."""
        return tuple(name for name in self.creation_only_fields if name not in thing.seen.properties)

    def fitness(self, thing: Thing, now: float) -> Verdict:
        """Judge an existing object: read its status first, then compare the properties that are set."""
        unsettled = settling(thing, self.statuses)
        if unsettled is not None:
            return unsettled
        drifted = self.changed_outside(thing)
        if drifted:
            return Verdict(Condition.DRIFTED, f"{', '.join(drifted)} changed outside", Remedy.UPDATE, drifted=drifted)
        return READY

    def maintenance_method(self, thing: Thing, action: str) -> MaintenanceMethod | None:
        """Return how an action of the stack is carried out on the resource; None if there is nothing to do."""
        return self.maintenance_methods.get(action)

    def changed_outside(self, thing: Thing) -> tuple[str, ...]:
        """Return the names of drifted properties, without values that the cloud itself normalized from ours."""
        drifted = self.drift(thing)
        accepted = thing.accepted
        if not drifted or not accepted:
            return drifted
        return tuple(
            name
            for name in drifted
            if name not in accepted or accepted[name] != fingerprint(*self.sent_and_seen(thing, name))
        )

    def sent_and_seen(self, thing: Thing, name: str) -> tuple[Any, Any]:
        """Return the wanted and the observed value of a property."""
        seen = self.observed_properties(thing)
        return thing.properties.get(name), seen.get(name, thing.seen.properties.get(name))

    def drift(self, thing: Thing) -> tuple[str, ...]:
        """Return the names of set, updatable properties whose observed value certainly differs from the desired one."""
        if not self.kind:
            return ()
        excused = self._maintained_fields(thing) if thing.maintained else ()
        wanted = self.spec(thing.properties, thing.physical_name)
        seen = thing.seen.properties
        # A field that the cloud does not report, or whose value is left to the cloud, cannot have drifted.
        return tuple(
            name
            for name, field_name, same in self._compared
            if field_name in seen
            and field_name not in excused
            and thing.properties.get(name) not in EMPTY
            and wanted.get(field_name) not in EMPTY
            and not same(wanted[field_name], seen[field_name])
        )

    def _maintained_fields(self, thing: Thing) -> set[str]:
        """Return the fields that differ on purpose while the stack is suspended or locked."""
        methods = (self.maintenance_method(thing, action) for action in thing.maintained)
        return {name for method in methods if method is not None for name in method.fields}

    def observed_properties(self, thing: Thing) -> dict[str, Any]:
        """Return the observed values of the properties that are set, for `resource_properties_observed` (CV1)."""
        seen, wanted = thing.seen.properties, thing.properties
        return {
            name: seen[field_name]
            for name, field_name in self._observable
            if field_name in seen and wanted.get(name) is not None
        }

    # -- answering -------------------------------------------------------------------------------------------

    # The reference documentation quotes the first line of an overriding `reference` after "`get_resource` gives".
    def reference(self, thing: Thing) -> Any:
        """Return the value of `get_resource`."""
        return thing.handle or thing.name

    def attribute(self, thing: Thing, name: str) -> Any:
        """Return the value of `get_attr: [resource, name]` before any further path; None if unknown."""
        if name == "show":
            return self.show(thing)
        declared = self.attributes.get(name)
        return thing.seen.properties.get(declared.field or name if declared is not None else name)

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        """Return the value of `get_attr: [resource, name, path…]`. Raise Absent if the path does not exist."""
        return part_of(self.show(thing) if name == "show" else self.attribute(thing, name), path, thing.name, name)

    def all_attributes(self, thing: Thing) -> dict[str, Any]:
        """Return the value of each attribute but `show`, by name."""
        return {name: self.attribute(thing, name) for name in self.attributes if name != "show"}

    def readable_attributes(self, thing: Thing) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the value of each readable attribute, and for each unreadable attribute the error with its place."""
        return self.all_attributes(thing), {}

    def show(self, thing: Thing) -> Any:
        """Return the value of the attribute `show`: everything that the cloud reports."""
        return dict(thing.seen.properties)


def shortened(physical_name: str, limit: int) -> str:
    """Shorten a name to `limit` characters: its first two, a dash, and its end, which makes it unique."""
    if len(physical_name) <= limit:
        return physical_name
    return f"{physical_name[:2]}-{physical_name[3 - limit :]}"


def payload(tree: Any, **names: str) -> Any:
    """Return a tree as the cloud expects it: keys renamed by `names`, no nulls or empty texts in maps."""
    if isinstance(tree, Mapping):
        return {names.get(k, k): payload(v, **names) for k, v in tree.items() if v is not None and v != ""}
    return [payload(item, **names) for item in tree] if isinstance(tree, list) else tree


DELETING = "deleting"
"""Status of an object of any kind that the cloud is deleting."""


def settling(thing: Thing, statuses: Statuses) -> Verdict | None:
    """Judge a resource by its `status`: a verdict for busy, broken and unknown words, None if it is ready."""
    status = thing.seen.properties.get("status")
    if status is None:
        return None
    word = str(status).lower()
    suspended = bool(statuses.suspended) and "SUSPEND" in thing.maintained
    if word in (statuses.suspended if suspended else statuses.ready) or word == thing.kept:
        return None
    if word in statuses.busy or word == DELETING:
        fault = thing.seen.properties.get("fault")
        return Verdict(Condition.PENDING, f"its status is {word}" + (f": {fault}" if fault else ""))
    # Resumed outside while its stack is suspended: suspend it again.
    if suspended and word in statuses.ready:
        return Verdict(Condition.BROKEN, f"its status is {word}, though it is suspended", Remedy.OPERATE, "suspend")
    fault = thing.seen.properties.get("fault") or "Unknown"
    operation = statuses.operations.get(word)
    reason = f'Went to status {word.upper()} due to "{fault}"'
    if operation is not None:
        return Verdict(Condition.BROKEN, reason, Remedy.OPERATE, operation)
    if word in statuses.broken:
        return Verdict(Condition.BROKEN, reason, statuses.broken[word])
    return Verdict(Condition.BROKEN, f'Unknown status {word.upper()} due to "{fault}"', Remedy.MANUAL)
