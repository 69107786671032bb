"""The resources of a stack in one view: rows, observations, and the newest revision's definitions."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeostat.api.context import RequestContext
from homeostat.api.http.inputs import quoted
from homeostat.api.orchestration.models import resources as models
from homeostat.api.orchestration.models.stacks import Link
from homeostat.api.orchestration.views import Wire, at, link, shown_mark
from homeostat.convergence.nested_stacks.attributes import show_members
from homeostat.desired.redaction import Redaction
from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected
from homeostat.model.observed import Observation
from homeostat.model.status import Action, DeletionPolicy, Status, joined
from homeostat.model.world import Resource, World
from homeostat.planner.actions.check import left_alone
from homeostat.planner.current import current_row
from homeostat.planner.policies.unhealthy import mark_of
from homeostat.planner.report.differences import compared
from homeostat.planner.scope import RowScope, thing_of
from homeostat.resources.base import ResourceType
from homeostat.resources.nested import STACK
from homeostat.resources.registry import shown_id, type_of
from homeostat.services.graphs import Graph
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import stacks, views
from homeostat.templates import UNKNOWN, requires

SHARDS_SHOWN = 1
"""A group with more shards of members than this is large: its members are read only for requested attributes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A resource of a list.

    Attributes:
        row: None for a desired resource that was not started.
        leftovers: Rows of the same name in removal.
    """

    name: str
    type: str
    row: Resource | None
    leftovers: tuple[Resource, ...] = ()
    description: str = ""

    @property
    def action(self) -> str:
        return self.row.action if self.row is not None else Action.INIT

    @property
    def status(self) -> str:
        return self.row.status if self.row is not None else Status.COMPLETE


class Inventory:
    """All or some resources of one stack, loaded once, in the given transaction.

    Attributes:
        weight: Weight of the members and outputs of nested stacks read so far.
    """

    def __init__(self, tx: Transaction, stack: StackRow, graph: Graph, names: Collection[str] | None = None) -> None:
        self.stack = stack
        self.weight = 0
        self._tx = tx
        self._names = names
        self._graph = graph
        rows, seen = views.resources(tx, stack.id, names, graph.shards_of(names) if names is not None else None)
        self._world = World(stacks.facts(stack), 0, graph.definitions, rows, seen)
        self._by_name: dict[str, list[Resource]] = defaultdict(list)
        for row in rows.values():
            self._by_name[row.name].append(row)
        self._current: dict[str, Resource] = {}
        for name, alike in self._by_name.items():
            current = current_row(alike, self._world.stack)
            if current is not None:
                self._current[name] = current
        self._observed: Mapping[str, Mapping[str, tuple[Any, float]]] | None = None
        self._looked: Mapping[int, tuple[float, str]] = {}
        self._redaction = Redaction.over(stack, graph.content, graph.compiled)
        self._redactions: dict[int, Redaction] = {}
        self._completed: set[str] = set()

    def scope(self, names: Collection[str]) -> RowScope:
        """Return a scope that resolves references to these resources, and load missing ones.

        Further data of a resource, such as the outputs of a nested stack, is read only once.
        """
        self._add(names)
        self._complete(names)
        return RowScope(self._world, self._current)

    def _add(self, names: Collection[str]) -> None:
        """Load further resources; they are not among the entries."""
        missing = [] if self._names is None else [name for name in names if name not in self._by_name]
        if not missing:
            return
        rows, seen = views.resources(self._tx, self.stack.id, missing, self._graph.shards_of(missing))
        self._world.rows.update(rows)
        self._world.seen.update(seen)
        for name in missing:
            current = current_row([row for row in rows.values() if row.name == name], self._world.stack)
            if current is not None:
                self._current[name] = current

    def _complete(self, names: Collection[str]) -> None:
        """Read the attributes of these resources that come from other rows, such as outputs of nested stacks."""
        names = set(names) - self._completed
        self.weight += show_members(self._tx, self._world, names)
        self._completed |= names

    def entries(self) -> list[Entry]:
        """Return desired resources in the order of the template, then removed ones by name.

        An inventory of some names has the order of these names.
        """
        wanted = self._graph.definitions
        others = (name for name in sorted(self._by_name) if name not in wanted)
        names = (*wanted, *others) if self._names is None else self._names
        return [self._entry(name) for name in names if name in wanted or name in self._by_name]

    def entry(self, name: str) -> Entry:
        """Return the resource of this name. Raise Rejected (EntityNotFound)."""
        if name not in self._graph.definitions and name not in self._by_name:
            raise Rejected("EntityNotFound", f"The Resource ({name}) could not be found in Stack {self.stack.name}.")
        return self._entry(name)

    def _entry(self, name: str) -> Entry:
        alike = self._by_name.get(name, [])
        row = self._current.get(name) or max(alike, key=lambda other: other.born, default=None)
        definition = self._graph.definitions.get(name)
        kind = row.shown_type if row is not None else _shown(definition)
        leftovers = tuple(other for other in alike if other is not row)
        if definition is not None and row is not None and row.deleting:
            # The old thing is being deleted and its successor has not started: the only row of this name is a leftover.
            row, leftovers, kind = None, tuple(alike), _shown(definition)
        return Entry(name, kind, row, leftovers, definition.description if definition is not None else "")

    def wire(self, context: RequestContext, entry: Entry) -> models.Resource:
        """Build the resource for a list."""
        row, stack = entry.row, self.stack
        begun_at = stack.updated_at or stack.created_at
        view: models.Resource = {
            "resource_name": entry.name,
            "logical_resource_id": entry.name,
            "physical_resource_id": shown_id(row.type, row.handle) if row is not None else "",
            "resource_type": entry.type,
            "resource_status": joined(entry.action, entry.status),
            "resource_status_reason": row.reason if row is not None else "",
            "creation_time": at(row.created_at if row is not None else begun_at),
            "updated_time": at(row.updated_at if row is not None else begun_at),
            "required_by": self._graph.required_by.get(entry.name, []),
            "links": self._links(context, entry),
            "observed": self._seen(row) if row is not None else None,
        }
        if row is not None and row.deletion_policy != DeletionPolicy.DELETE:
            view["deletion_policy"] = row.deletion_policy
        if stack.parent_name is not None:
            view["parent_resource"] = stack.parent_name
        if row is not None and row.converge_requested_at is not None:
            view["asked_at"] = at(row.converge_requested_at)
        mark = mark_of(row) if row is not None else None
        if mark is not None:
            view["unhealthy"] = shown_mark(mark)
        waiting = self._waiting(entry)
        if waiting:
            view["waiting"] = waiting
        if entry.leftovers:
            view["leftovers"] = [_leftover(leftover) for leftover in entry.leftovers]
        return view

    def detail(self, context: RequestContext, entry: Entry, with_attr: Sequence[str] = ()) -> models.Resource:
        """Build the resource with description and attributes. Raise Rejected for an unknown requested attribute."""
        attributes = self._attributes(entry.row, with_attr) if entry.row is not None else {}
        return {**self.wire(context, entry), "description": entry.description, "attributes": attributes}

    def differences(self, context: RequestContext, entry: Entry) -> list[models.Difference]:
        """Return the properties that are not the same in the template, as last applied, and as last observed."""
        row, definition = entry.row, self._graph.definitions.get(entry.name)
        if row is None or definition is None or not row.handle or definition.type != row.type:
            return []
        seen = self._seen(row)
        if seen is None or row.external_id is not None:
            return []
        observed = {} if self._observed is None else self._observed.get(row.key, {})
        drifted = {difference["property"]: difference["since"] for difference in seen["drift"]}
        redaction = self._redaction | self._redaction_of(context, row.revision)
        scope = self.scope(() if definition.static else requires(definition.properties))
        return [
            {
                "property": name,
                "template": redaction.shown(row.name, name, wanted),
                "applied": redaction.shown(row.name, name, applied),
                "observed": redaction.shown(row.name, name, observed[name][0]) if name in observed else None,
                "since": drifted.get(name),
            }
            for name, (wanted, applied) in compared(self._world, scope, row, definition).items()
            if name in drifted or (wanted is not UNKNOWN and wanted != applied)
        ]

    def _redaction_of(self, context: RequestContext, revision: int) -> Redaction:
        """Return the redaction for the secrets of the revision that a row was last acted on for."""
        if self.stack.secret is False or revision == self.stack.revision:
            return Redaction()
        if revision not in self._redactions:
            graph = context.service.graphs.of_revision(self._tx, self.stack, revision)
            self._redactions[revision] = Redaction.over(self.stack, graph.content, graph.compiled)
        return self._redactions[revision]

    def _attributes(self, row: Resource, with_attr: Sequence[str]) -> Wire:
        """Return all attributes: declared ones, overridden by the cloud's, overridden by requested ones.

        Attributes of a large group are read only if requested by name.
        """
        kind = type_of(row.type)
        if kind.kind == STACK and not with_attr and self._is_large(row):
            return {}
        self._complete({row.name})
        thing = thing_of(self._world, row, kind)
        values = {name: kind.attribute(thing, name) for name in kind.attributes if name != "show"}
        if _of_cloud(kind):
            values |= kind.show(thing) or {}
        return values | {name: kind.resolve(thing, name) for name in with_attr}

    def _is_large(self, row: Resource) -> bool:
        child = stacks.get(self._tx, row.handle)
        return child is not None and child.shards > SHARDS_SHOWN

    def _links(self, context: RequestContext, entry: Entry) -> list[Link]:
        stack = self.stack
        url = context.stack_url(stack)
        links = [link("self", f"{url}/resources/{quoted(entry.name)}"), link("stack", url)]
        if entry.row is not None and entry.row.handle and type_of(entry.row.type).kind == STACK:
            child = stacks.get(self._tx, entry.row.handle)
            if child is not None:
                links.append(link("nested", context.stack_url(child)))
        return links

    def _seen(self, row: Resource) -> models.Observed | None:
        """Build the field `observed`: the last observation, compared with the desired state."""
        seen = self._world.seen.get(row.key)
        if seen is None:
            return None
        # Loaded on the first use: most callers read few resources, and one query serves them all.
        if self._observed is None:
            keys = None if self._names is None else self._world.seen.keys()
            self._observed = views.observed_properties(self._tx, self.stack.id, keys)
            self._looked = views.shard_observations(
                self._tx, self.stack.id, {loaded.shard for loaded in self._world.rows.values()}
            )
        look, properties = seen.observation, self._observed.get(row.key, {})
        looked_at, blind = self._looked.get(row.shard, (0.0, ""))
        view: models.Observed = {
            "presence": look.presence.value,
            "seen_at": at(look.seen_at),
            "looked_at": at(max(look.seen_at, looked_at)),
            "reason": self._redaction.text(look.reason),
            "properties": {
                name: self._redaction.shown(row.name, name, value) for name, (value, _) in properties.items()
            },
            "drift": self._drift(row, look, properties),
        }
        alone = left_alone(row)
        if blind:
            view["blind"] = blind
        if alone:
            view["left_alone"] = alone
        return view

    def _drift(self, row: Resource, look: Observation, observed: Mapping[str, tuple[Any, float]]) -> list[models.Drift]:
        """Return each property that differs: desired and observed value, and since when."""
        if not look.present or row.busy or row.deleting or row.external_id is not None:
            return []
        kind = type_of(row.type)
        thing = thing_of(self._world, row, kind)
        return [
            {
                "property": name,
                "desired": self._redaction.shown(row.name, name, thing.properties.get(name)),
                "observed": self._redaction.shown(row.name, name, value),
                "since": at(max(since, row.acted_at or 0.0)),
            }
            for name in kind.changed_outside(thing)
            for value, since in (observed.get(name, (None, look.seen_at)),)
        ]

    def _waiting(self, entry: Entry) -> str:
        """Return a description of the event that the resource waits for; "" if the resource is at rest."""
        if entry.row is not None:
            return entry.row.reason if entry.row.busy else ""
        if self.stack.status == Status.FAILED:
            return "an update of the stack, which has failed"
        if entry.leftovers:
            return f"{entry.leftovers[0].handle or entry.name}, which it replaces, to be gone"
        definition = self._graph.definitions[entry.name]
        undone = [name for name in definition.requires if not self._is_done(name)]
        return f"the resources it requires: {', '.join(undone)}" if undone else "a worker"

    def _is_done(self, name: str) -> bool:
        row = self._current.get(name)
        if row is None and self._names is not None and name not in self._names:
            rows, _ = views.resources(self._tx, self.stack.id, [name])
            row = current_row(rows.values(), self._world.stack)
        return row is not None and row.action != Action.INIT and row.status == Status.COMPLETE


def _shown(definition: Definition | None) -> str:
    """Return the type under the name that the template uses."""
    return "" if definition is None else definition.shown_type


def _leftover(row: Resource) -> models.Leftover:
    return {
        "physical_resource_id": shown_id(row.type, row.handle),
        "resource_type": row.shown_type,
        "resource_status": joined(row.action, row.status),
        "resource_status_reason": row.reason,
        "updated_time": at(row.updated_at),
    }


def _of_cloud(kind: ResourceType) -> bool:
    return kind.kind not in ("", STACK)
