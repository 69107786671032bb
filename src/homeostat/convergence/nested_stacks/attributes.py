"""Attributes that are read from other rows: members and outputs of nested stacks, cluster nodes, signals."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from homeostat.clustering.store import node_views
from homeostat.desired.compiling import compile_desired
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, Seen, World
from homeostat.planner.current import current_row
from homeostat.planner.scope import UNREADABLE, RowScope, thing_of
from homeostat.resources.base import ResourceType
from homeostat.resources.families.senlin import CLUSTER, DETAILS, MEMBERS, NODE
from homeostat.resources.families.wait_conditions import CONDITION
from homeostat.resources.nested import DEFINED, STACK, TemplateResource
from homeostat.resources.registry import kind_of, type_of
from homeostat.store.builtin import records
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shard_state
from homeostat.store.stacks import revisions, stacks
from homeostat.store.stacks.contents import Content
from homeostat.templates import Compiled, evaluate
from homeostat.templates.hidden_parameters import HiddenValues
from homeostat.templates.weights import TooHeavy, weight

SHOWN_MAX = 64 * 1024 * 1024
"""Weight of the attributes and outputs that a nested stack, including its own nested stacks, may show its parent."""


class WeightBudget:
    """Remaining weight of attributes and outputs that one look may read from nested stacks."""

    def __init__(self) -> None:
        self._left = SHOWN_MAX

    @property
    def taken(self) -> int:
        """Weight of everything read so far."""
        return SHOWN_MAX - self._left

    def take(self, value: Any) -> None:
        """Count a value.

        Raises:
            TooHeavy: The value exceeds the remaining weight.
        """
        self._left -= weight(value, self._left)


def show_members(tx: Transaction, world: World, names: Collection[str], budget: WeightBudget | None = None) -> int:
    """Add the attributes that are kept in other rows to observations: members, outputs, data of signals.

    They are not stored with the observation, since a group may have a million members. If they are too heavy, the
    observation says so instead, and reading an attribute fails with that reason (see `RowScope`).

    Args:
        tx: A consistent read.
        world: World whose observations are completed, in memory.
        names: Names of the resources that are read.
        budget: Remaining weight of the enclosing look, for nested stacks of nested stacks.

    Returns:
        Weight of the added attributes; 0 if a `budget` counts them.

    Raises:
        TooHeavy: The `budget`, if given, is exceeded.
    """
    added = 0
    for row in world.rows.values():
        seen = world.seen.get(row.key)
        read = READ.get(kind_of(row.type))
        if row.name not in names or seen is None or not row.handle or read is None:
            continue
        if budget is not None:
            attributes = read(tx, row.handle, budget)
        else:
            own = WeightBudget()
            try:
                attributes = read(tx, row.handle, own)
                added += own.taken
            except TooHeavy:
                attributes = {UNREADABLE: f"what is inside of it weighs more than {SHOWN_MAX}"}
        if attributes:
            properties = {**seen.observation.properties, **attributes}
            world.seen[row.key] = Seen(replace(seen.observation, properties=properties), seen.number)
    return added


def _of_stack(tx: Transaction, handle: str, budget: WeightBudget) -> dict[str, Any]:
    nested = stacks.get(tx, handle)
    return members_and_outputs(tx, nested, budget) if nested is not None else {}


def _of_cluster(tx: Transaction, handle: str, budget: WeightBudget) -> dict[str, Any]:
    """Return the nodes of a cluster, each with its details."""
    rows = node_views.of_cluster(tx, handle)
    details = node_views.details(tx, rows)
    nodes = [{**node, DETAILS: details.get(node["id"], {})} for node in node_views.nodes(tx, rows, {}, tainted=True)]
    budget.take(nodes)
    return {MEMBERS: nodes}


def _of_node(tx: Transaction, handle: str, budget: WeightBudget) -> dict[str, Any]:
    details = node_views.details(tx, node_views.of_id(tx, handle)).get(handle, {})
    budget.take(details)
    return {DETAILS: details}


def _of_condition(tx: Transaction, handle: str, budget: WeightBudget) -> dict[str, Any]:
    """Return the signals that a wait condition shows as its data; its observation only counts the signals."""
    condition = records.get(tx, handle, CONDITION)
    if condition is None:
        return {}
    received = records.signals_of(tx, [condition.link]).get(condition.link, [])
    signals = [{"id": signal.object["id"], "data": signal.object.get("data")} for signal in received]
    budget.take(signals)
    return {"signals": signals}


READ: Mapping[str, Callable[[Transaction, str, WeightBudget], dict[str, Any]]] = {
    STACK: _of_stack,
    CLUSTER: _of_cluster,
    CONDITION: _of_condition,
    NODE: _of_node,
}
"""Kinds whose attributes are read from other rows -> reader by handle, which raises TooHeavy."""


def members_and_outputs(tx: Transaction, nested: StackRow, budget: WeightBudget) -> dict[str, Any]:
    """Return the members and outputs of a nested stack.

    Returns:
        `{"members": {name: {"reference", "attributes", "faults", "failed", "open", "away"}}, "defined":
        …, "outputs": {name: value}, "output_faults": {name: error}}`. Members are listed once created, whatever
        happens to them now; `faults` says why attributes cannot be read, `open` whether a member may have further
        attributes, `away` whether the member is still being created. Only a stack made from a template has outputs; an
        output whose condition does not hold is null.

    Raises:
        TooHeavy: The members and outputs weigh more than `budget` has left.
    """
    facts = stacks.facts(nested)
    content = revisions.content_of(tx, nested.id, nested.revision)
    compiled = None
    if content.kind == "template":
        compiled = compile_desired(content, Identity(facts.id, facts.name, facts.project))
    members: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    for number in range(nested.shards):
        rows, seen = shard_state.load_rows(tx, nested.id, number)
        world = World(facts, number, {} if compiled is None else compiled.definitions, rows, seen)
        # The attributes of these resources may be those of nested stacks, so recurse down to the last level.
        show_members(tx, world, {row.name for row in rows.values()}, budget)
        members |= members_of(world, budget)
        if compiled is not None and number == 0:
            outputs = outputs_of(compiled, scope_of(world), budget)
    return {"members": members, DEFINED: _defined(content, compiled), "outputs": {}, **outputs}


def _defined(content: Content, compiled: Compiled | None) -> Any:
    """Return the resources of a nested stack, see `resources.nested.DEFINED`; None if the stack is being deleted."""
    if compiled is not None:
        return list(compiled.definitions)
    if content.kind == "group":
        return {name: content.template[name] for name in ("count", "skip")}
    return [str(place) for place in range(len(content.template["resources"]))] if content.kind == "chain" else None


def members_of(world: World, budget: WeightBudget) -> dict[str, Any]:
    """Return the members that one shard has created, see `members_and_outputs`. Raise TooHeavy."""
    members: dict[str, Any] = {}
    # During a replacement several rows have one name: the last in this order is shown.
    rows = sorted((row for row in world.rows.values() if row.handle and not row.deleting), key=_order_of_precedence)
    for row in rows:
        kind = type_of(row.type)
        thing = thing_of(world, row, kind)
        attributes, faults = kind.readable_attributes(thing)
        budget.take([attributes, faults])
        members[row.name] = {
            "reference": kind.reference(thing),
            "attributes": attributes,
            "faults": faults,
            "failed": row.status == Status.FAILED,
            "open": _is_open(kind),
            "away": row.busy and row.action == Action.CREATE,
        }
    return members


def _is_open(kind: ResourceType) -> bool:
    """Return whether a member may have further attributes; the outputs of a template are all known."""
    return kind.open_attributes or (kind.open_schema and not isinstance(kind, TemplateResource))


def scope_of(world: World) -> RowScope:
    """Return the scope that resolves references to the resources of one shard."""
    by_name: dict[str, list[Resource]] = {}
    for row in world.rows.values():
        by_name.setdefault(row.name, []).append(row)
    rows = ((name, current_row(alike, world.stack)) for name, alike in by_name.items())
    return RowScope(world, {name: row for name, row in rows if row is not None})


def outputs_of(compiled: Compiled, scope: RowScope, budget: WeightBudget) -> dict[str, Any]:
    """Return `outputs` and `output_faults` of a stack made from a template, see `members_and_outputs`.

    Raises:
        TooHeavy: The outputs weigh more than `budget` has left.
    """
    values: dict[str, Any] = {}
    faults: dict[str, str] = {}
    hidden = HiddenValues.of(compiled.parameters)
    for name, output in compiled.outputs.items():
        values[name] = None
        if output.active:
            try:
                with hidden.refusals():
                    values[name] = evaluate(output.value, scope)
            except Rejected as error:
                del values[name]
                # As in Heat, the error that a reader gets names the output, not the output's place in the template.
                faults[name] = error.message if error.path and str(error.path[0]).lower() == "outputs" else str(error)
    budget.take([values, faults])
    return {"outputs": values, "output_faults": faults}


def _order_of_precedence(row: Resource) -> tuple[bool, int]:
    """Return a sort key; the last of several rows of a name stands for it: a complete row, then the newest."""
    return row.status == Status.COMPLETE, row.born
