"""What a resource type is: schemas, and pure translation between properties and the objects of a cloud.

Adding a type is one subclass of `ResourceType` in the file of its family, listed in that file's `TYPES`.
Nothing here does I/O: the convergence loop calls the cloud, types only say what to ask for and what an answer
means.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from homeostat.model.errors import check_name
from homeostat.model.observed import READY, Condition, Observation, Presence, Remedy, Verdict
from homeostat.resources.comparison import Rule
from homeostat.resources.graph import Graph
from homeostat.resources.rules import conflict
from homeostat.resources.schema import Attribute, Kind, Schema, coerce, with_defaults
from homeostat.resources.support import SUPPORTED, Support
from homeostat.templates.tree import traverse

Props = Mapping[str, Any]

SHOW = Attribute("Everything that the cloud says about the resource.", Kind.MAP, live=True)
NAME_LIMIT = 63
"""Characters of a physical name: short enough for host names."""
EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Values that leave it to the cloud: never compared with what is observed."""


@dataclass(frozen=True, slots=True)
class Thing:
    """One resource as its type sees it when asked about attributes, references or fitness.

    key — the row's id, 12 lower-case letters and digits; name — in the template; physical_name — for the
    cloud; properties — resolved ones as last applied, with defaults; seen — the last observation of it;
    acted_at — when the last act on it was carried out, seconds since the epoch; action — CREATE, UPDATE, …;
    treated — SUSPEND and LOCK, where it is suspended or locked for its stack.
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
    treated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MaintenanceMethod:
    """How a thing is suspended, resumed, locked or unlocked, and how that is seen.

    operation — of the cloud port; where it is "", `fields` of the thing's object are set by an update. shown — the
    field that tells whether it is done, by one of the values `done`. gradual — it takes time, and `status` tells when
    it is over.
    """

    operation: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    shown: str = "status"
    done: tuple[Any, ...] = ()
    gradual: bool = True

    def is_done(self, seen: Props) -> bool:
        return seen.get(self.shown) in self.done


def switched(name: str, *, suspended: Any, running: Any) -> dict[str, MaintenanceMethod]:
    """Treatments of a kind that is suspended by a field of its own."""
    return {
        "SUSPEND": MaintenanceMethod(fields={name: suspended}, shown=name, done=(suspended,), gradual=False),
        "RESUME": MaintenanceMethod(fields={name: running}, shown=name, done=(running,), gradual=False),
    }


def passed_on(*actions: str) -> dict[str, MaintenanceMethod]:
    """Treatments of a kind that takes these actions as they are, and tells the last one in its field `action`."""
    return {action: MaintenanceMethod(action.lower(), shown="action", done=(action,)) for action in actions}


@dataclass(frozen=True, slots=True)
class StatusWords:
    """How to read the `status` words of a kind.

    ready — as it should be; busy — it will change by itself; broken — word -> what helps; operations — word
    -> the operation of the cloud port that brings it back; suspended — as it should be while it is suspended. Any
    other word is broken and asks for help.
    """

    ready: frozenset[str] = frozenset()
    busy: frozenset[str] = frozenset()
    broken: Mapping[str, Remedy] = field(default_factory=dict)
    operations: Mapping[str, str] = field(default_factory=dict)
    suspended: frozenset[str] = frozenset()


class ResourceType:
    """Base of all resource types. Subclasses set the class attributes and override what differs.

    kind — kind of the cloud port; "" for types that live in the service alone (their object is what `embody`
    gives). update_policy — schema of that section. can_snapshot — deletion policy Snapshot is possible.
    renewed — each update of the stack replaces it. secretive — its things are secrets, or come with some: passwords,
    keys, signed addresses; secret_reference — its reference is one.
    mends_itself — has parts that are converged by themselves: never replaced for a failed action of its own.
    told_once — fields that the cloud tells only in its answer to the creation. open_schema — accepts any property
    and attribute. open_attributes — has attributes besides those declared. support — how far it is supported.
    lifecycle — reading of `status`. treatments — action (SUSPEND, RESUME, LOCK, UNLOCK) -> how it is done; an action
    without one leaves the thing alone. renamed — property -> field of the cloud's object, where the two differ. twins —
    deprecated property -> the one in its place. name_limit — characters of its physical name at most. renamed_to — name
    of the type that this one is called by now: a resource changes from one to the other, and back, as it is.
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
    told_once: ClassVar[tuple[str, ...]] = ()
    mends_itself: ClassVar[bool] = False
    can_snapshot: ClassVar[bool] = False
    renewed: ClassVar[bool] = False
    open_schema: ClassVar[bool] = False
    open_attributes: ClassVar[bool] = False
    support: ClassVar[Support] = SUPPORTED
    lifecycle: ClassVar[StatusWords] = StatusWords()
    treatments: ClassVar[Mapping[str, MaintenanceMethod]] = {}
    renamed: ClassVar[Mapping[str, str]] = {}
    name_limit: ClassVar[int] = NAME_LIMIT
    twins: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.attributes = {**cls.attributes, "show": SHOW}
        cls._canonical = {name: prop for name, prop in cls.properties.items() if name not in cls.twins}
        cls._defaults = with_defaults(cls._canonical, {})
        cls._compared = tuple(
            (name, cls.renamed.get(name, name), prop.same)
            for name, prop in cls._canonical.items()
            if prop.update and prop.drift
        )
        # No legal value of a constrained text is empty: "" comes from an explicit null.
        cls._left_out = frozenset(
            name for name, prop in cls.properties.items() if prop.kind is Kind.STRING and prop.constraints
        )

    _canonical: ClassVar[Schema] = {}
    _defaults: ClassVar[Mapping[str, Any]] = {}
    _compared: ClassVar[tuple[tuple[str, str, Rule], ...]] = ()
    _left_out: ClassVar[frozenset[str]] = frozenset()

    # -- before anything exists ------------------------------------------------------------------------------

    def check(self, given: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        """Coerced properties, only those given; values may be `schema.UNKNOWN`.

        Fails: Rejected naming the path.
        """
        if self.open_schema:
            return dict(given)
        values = coerce(self._canonical, self._without_twins(given, path) if self.twins else given, path)
        check_name(values.get("name"), (*path, "name"))
        self.validate(values, path)
        return values

    def _without_twins(self, given: Props, path: tuple[str | int, ...]) -> Props:
        values = dict(given)
        for twin, name in self.twins.items():
            value = values.pop(twin, None)
            if value is None:
                continue
            if values.get(name) is not None:
                raise conflict(path, name, twin)
            values[name] = value
        return values

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        """Rules across properties; raise `errors.invalid(message, *path)`. Values may be `schema.UNKNOWN`."""

    def complete(self, values: Props) -> dict[str, Any]:
        """`values` with the defaults of the schema; deprecated twins do not appear."""
        return dict(values) if self.open_schema else with_defaults(self._canonical, values, self._defaults)

    def validate_among(self, properties: Props, graph: Graph, path: tuple[str | int, ...]) -> None:
        """Rules about the other resources of the template; raise `errors.invalid(message, *path)`.

        properties — this resource's own raw tree, as in the graph (see `resources.graph`).
        """

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Names of resources in the same template that must come first though nothing refers to them.

        properties — this resource's own raw tree, as in the graph (see `resources.graph`).
        """
        return set()

    # -- acting ----------------------------------------------------------------------------------------------

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        """The cloud object wanted, from properties completed with defaults, without what is left to it."""
        spec = {
            self.renamed.get(name, name): value
            for name, value in values.items()
            if value is not None and not (value == "" and name in self._left_out)
        }
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

    def is_restless(self, values: Props) -> bool:
        """Does each update of the stack update it in place, also where nothing of it differs?"""
        return False

    def kept_as(self, values: Props) -> str:
        """The property that takes the id of a snapshot, so that the thing has its data; "" where there is none. With
        defaults."""
        return ""

    def outgrown(self, thing: Thing, after: Props) -> str:
        """Why what is there, by what was seen of it, cannot become this; "" where it can. after — with defaults."""
        return ""

    def shown_id(self, handle: str) -> str:
        """The physical id as users know it."""
        return handle

    def adopted_handle(self, id: str, values: Props) -> str:
        """The handle of a thing that another service knew by this id. values — with defaults."""
        return id

    # -- looking ---------------------------------------------------------------------------------------------

    def judge(self, thing: Thing, now: float) -> Verdict:
        """Does what was seen fit what should be? Call only when something was seen since the last act."""
        if thing.seen.presence is Presence.ABSENT:
            return Verdict(Condition.ABSENT, thing.seen.reason or "it is gone", Remedy.RECREATE)
        if thing.seen.presence is Presence.UNKNOWN:
            return Verdict(Condition.UNKNOWN, thing.seen.reason)
        return self.fitness(thing, now)

    def missed(self, thing: Thing) -> tuple[str, ...]:
        """Fields that the cloud told once, in an answer that was lost, and without which the thing is of no use."""
        return tuple(name for name in self.told_once if name not in thing.seen.properties)

    def fitness(self, thing: Thing, now: float) -> Verdict:
        """`judge` for a thing that is present: read its status, then compare the properties that are set."""
        unsettled = settling(thing, self.lifecycle)
        if unsettled is not None:
            return unsettled
        drifted = self.drift(thing)
        if drifted:
            return Verdict(Condition.DRIFTED, f"{', '.join(drifted)} changed outside", Remedy.UPDATE, drifted=drifted)
        return READY

    def treatment(self, thing: Thing, action: str) -> MaintenanceMethod | None:
        """How an action of its stack is carried out on it; None: it is left alone."""
        return self.treatments.get(action)

    def drift(self, thing: Thing) -> tuple[str, ...]:
        """Names of set, updatable properties whose observed value surely differs from the desired one."""
        if not self.kind:
            return ()
        meant = self._fields_treated(thing) if thing.treated else ()
        wanted = self.spec(thing.properties, thing.physical_name)
        seen = thing.seen.properties
        return tuple(
            name
            for name, field_name, same in self._compared
            if field_name in seen
            and field_name not in meant
            and thing.properties.get(name) not in EMPTY
            and wanted.get(field_name) not in EMPTY
            and not same(wanted[field_name], seen[field_name])
        )

    def _fields_treated(self, thing: Thing) -> set[str]:
        """Fields that differ for a while, as its stack is suspended or locked."""
        found = (self.treatment(thing, action) for action in thing.treated)
        return {name for each in found if each is not None for name in each.fields}

    def observed_properties(self, thing: Thing) -> dict[str, Any]:
        """Observed values of the properties that are set, for `resource_properties_observed` (CV1)."""
        seen = thing.seen.properties
        fields = {name: self.renamed.get(name, name) for name in self._canonical}
        return {
            name: seen[field_name]
            for name, field_name in fields.items()
            if field_name in seen and thing.properties.get(name) is not None
        }

    # -- answering -------------------------------------------------------------------------------------------

    def reference(self, thing: Thing) -> Any:
        """Value of `get_resource`."""
        return thing.handle or thing.name

    def attribute(self, thing: Thing, name: str) -> Any:
        """Value of `get_attr: [resource, name]` before any further path; None when it cannot be known."""
        if name == "show":
            return self.show(thing)
        declared = self.attributes.get(name)
        return thing.seen.properties.get(declared.field or name if declared is not None else name)

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        """Value of `get_attr: [resource, name, path…]`; None where the path leads nowhere."""
        return traverse(self.show(thing) if name == "show" else self.attribute(thing, name), path)

    def all_attributes(self, thing: Thing) -> dict[str, Any]:
        """Value of each attribute but `show`, by name."""
        return {name: self.attribute(thing, name) for name in self.attributes if name != "show"}

    def show(self, thing: Thing) -> Any:
        """Value of the attribute `show`: everything the cloud says."""
        return dict(thing.seen.properties)


def shortened(physical_name: str, limit: int) -> str:
    """Over the limit: the first two characters, a dash, and the end, which tells one from another."""
    if len(physical_name) <= limit:
        return physical_name
    return f"{physical_name[:2]}-{physical_name[3 - limit :]}"


def said(tree: Any, **names: str) -> Any:
    """A tree for the cloud: keys under other names, and no nulls or empty texts in maps."""
    if isinstance(tree, Mapping):
        return {names.get(k, k): said(v, **names) for k, v in tree.items() if v is not None and v != ""}
    return [said(item, **names) for item in tree] if isinstance(tree, list) else tree


DELETING = "deleting"
"""Status of a thing of any kind that is on its way out."""


def settling(thing: Thing, lifecycle: StatusWords) -> Verdict | None:
    """Reading of `status`: a verdict for busy, broken and unknown words, None when ready or without one."""
    status = thing.seen.properties.get("status")
    if status is None:
        return None
    word = str(status).lower()
    suspended = bool(lifecycle.suspended) and "SUSPEND" in thing.treated
    if word in (lifecycle.suspended if suspended else lifecycle.ready):
        return None
    if word in lifecycle.busy or word == DELETING:
        return Verdict(Condition.PENDING, f"its status is {word}")
    if suspended and word in lifecycle.ready:
        return Verdict(Condition.BROKEN, f"its status is {word}, though it is suspended", Remedy.OPERATE, "suspend")
    fault = thing.seen.properties.get("fault") or "Unknown"
    operation = lifecycle.operations.get(word)
    reason = f'Went to status {word.upper()} due to "{fault}"'
    if operation is not None:
        return Verdict(Condition.BROKEN, reason, Remedy.OPERATE, operation)
    remedy = lifecycle.broken.get(word)
    if remedy is not None:
        return Verdict(Condition.BROKEN, reason, remedy)
    return Verdict(Condition.BROKEN, f'Unknown status {word.upper()} due to "{fault}"', Remedy.ASK)
