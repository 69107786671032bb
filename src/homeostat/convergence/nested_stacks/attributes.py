"""What resources show of other rows: members and outputs of nested stacks, nodes of clusters, data of signals."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

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
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shard_state
from homeostat.store.stacks import revisions, stacks
from homeostat.templates import Compiled, evaluate
from homeostat.templates.hidden_parameters import HiddenValues
from homeostat.templates.weights import TooHeavy, weight

SHOWN_MAX = 64 * 1024 * 1024
"""Weight of the attributes and outputs that one nested stack, with everything nested in it, may show its parent."""


class WeightBudget:
    """Weight of attributes and outputs that may still be read from nested stacks in one look."""

    def __init__(self) -> None:
        self._left = SHOWN_MAX

    @property
    def taken(self) -> int:
        """Weight of what has been read."""
        return SHOWN_MAX - self._left

    def take(self, value: Any) -> None:
        """Count a value.

        Raises:
            TooHeavy: It is too much, together with everything counted before.
        """
        self._left -= weight(value, self._left)


def show_members(tx: Connection, world: World, names: Collection[str], budget: WeightBudget | None = None) -> int:
    """Add what is kept in other rows to observations, for what reads attributes: members, outputs, data of signals.

    They are not stored with the observation, since a group may have a million members. Where they are too heavy, the
    observation says so instead, and reading an attribute fails with that (see `RowScope`).

    Args:
        tx: A consistent read.
        world: World whose observations are completed, in memory.
        names: Names of the resources that are read.
        budget: Weight left to the look that this is a part of, for nested stacks of nested stacks.

    Returns:
        Weight of what was added; without a `budget` only.

    Raises:
        TooHeavy: With a `budget` only: it is exceeded.
    """
    added = 0
    for row in world.rows.values():
        seen = world.seen.get(row.key)
        read = READ.get(kind_of(row.type))
        if row.name not in names or seen is None or not row.handle or read is None:
            continue
        if budget is not None:
            shown = read(tx, row.handle, budget)
        else:
            own = WeightBudget()
            try:
                shown = read(tx, row.handle, own)
                added += own.taken
            except TooHeavy:
                shown = {UNREADABLE: f"what is inside of it weighs more than {SHOWN_MAX}"}
        if shown:
            properties = {**seen.observation.properties, **shown}
            world.seen[row.key] = Seen(replace(seen.observation, properties=properties), seen.number)
    return added


def _of_stack(tx: Connection, handle: str, budget: WeightBudget) -> dict[str, Any]:
    nested = stacks.get(tx, handle)
    return members_and_outputs(tx, nested, budget) if nested is not None else {}


def _of_cluster(tx: Connection, handle: str, budget: WeightBudget) -> dict[str, Any]:
    """Return the nodes of a cluster, each with its details."""
    rows = node_views.of_cluster(tx, handle)
    details = node_views.details(tx, rows)
    nodes = [{**each, DETAILS: details.get(each["id"], {})} for each in node_views.nodes(tx, rows, {}, tainted=True)]
    budget.take(nodes)
    return {MEMBERS: nodes}


def _of_node(tx: Connection, handle: str, budget: WeightBudget) -> dict[str, Any]:
    details = node_views.details(tx, node_views.of_id(tx, handle)).get(handle, {})
    budget.take(details)
    return {DETAILS: details}


def _of_condition(tx: Connection, handle: str, budget: WeightBudget) -> dict[str, Any]:
    """Return the signals that a wait condition shows as its data: its observation only counts them."""
    condition = records.get(tx, handle, CONDITION)
    if condition is None:
        return {}
    received = records.signals_of(tx, [condition.link]).get(condition.link, [])
    found = [{"id": each.object["id"], "data": each.object.get("data")} for each in received]
    budget.take(found)
    return {"signals": found}


READ: Mapping[str, Callable[[Connection, str, WeightBudget], dict[str, Any]]] = {
    STACK: _of_stack,
    CLUSTER: _of_cluster,
    CONDITION: _of_condition,
    NODE: _of_node,
}
"""Kinds whose attributes are read from other rows -> what reads them, by the handle; raises TooHeavy."""


def members_and_outputs(tx: Connection, nested: StackRow, budget: WeightBudget) -> dict[str, Any]:
    """Return the members and outputs of a nested stack.

    Returns:
        `{"members": {name: {"reference", "attributes", "faults", "failed", "open", "away"}}, "defined":
        …, "outputs": {name: value}, "output_faults": {name: error}}`. Members are those that have been made, whatever
        happens to them now; `faults` tells why attributes cannot be read, `open` whether there may be others, `away`
        whether it is still being made. Only a stack made from a template has outputs; one whose condition does not hold
        is null.

    Raises:
        TooHeavy: They weigh more than `budget` has left.
    """
    facts = stacks.facts(nested)
    desired = revisions.desired_of(tx, nested.id, nested.revision)
    compiled = None
    if desired.kind == "template":
        compiled = compile_desired(desired, Identity(facts.id, facts.name, facts.project))
    members: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    for number in range(nested.shards):
        rows, seen = shard_state.load_rows(tx, nested.id, number)
        world = World(facts, number, {} if compiled is None else compiled.definitions, rows, seen)
        # Attributes of its resources may be those of stacks nested in it: so on down to the last level.
        show_members(tx, world, {row.name for row in rows.values()}, budget)
        members |= members_of(world, budget)
        if compiled is not None and number == 0:
            outputs = outputs_of(compiled, scope_of(world), budget)
    return {"members": members, DEFINED: _defined(desired, compiled), "outputs": {}, **outputs}


def _defined(desired: revisions.Desired, compiled: Compiled | None) -> Any:
    """Return which resources a nested stack has, see `resources.nested.DEFINED`; None where it is being deleted."""
    if compiled is not None:
        return list(compiled.definitions)
    if desired.kind == "group":
        return {name: desired.template[name] for name in ("count", "skip")}
    return [str(place) for place in range(len(desired.template["resources"]))] if desired.kind == "chain" else None


def members_of(world: World, budget: WeightBudget) -> dict[str, Any]:
    """Return the members that one shard has made, see `members_and_outputs`. Raise TooHeavy."""
    found: dict[str, Any] = {}
    # Several rows may have one name while a replacement is under way: the last in this order is what is shown.
    made = sorted((row for row in world.rows.values() if row.handle and not row.deleting), key=_order_of_precedence)
    for row in made:
        kind = type_of(row.type)
        thing = thing_of(world, row, kind)
        attributes, faults = kind.readable_attributes(thing)
        budget.take([attributes, faults])
        found[row.name] = {
            "reference": kind.reference(thing),
            "attributes": attributes,
            "faults": faults,
            "failed": row.status == Status.FAILED,
            "open": _is_open(kind),
            "away": row.busy and row.action == Action.CREATE,
        }
    return found


def _is_open(kind: ResourceType) -> bool:
    """Return whether a member may have other attributes than those that are known; all outputs of a template are."""
    return kind.open_attributes or (kind.open_schema and not isinstance(kind, TemplateResource))


def scope_of(world: World) -> RowScope:
    """Return what resolves references to the resources of one shard."""
    by_name: dict[str, list[Resource]] = {}
    for row in world.rows.values():
        by_name.setdefault(row.name, []).append(row)
    rows = ((name, current_row(alike, world.stack)) for name, alike in by_name.items())
    return RowScope(world, {name: row for name, row in rows if row is not None})


def outputs_of(compiled: Compiled, scope: RowScope, budget: WeightBudget) -> dict[str, Any]:
    """Return `outputs` and `output_faults` of a stack that is made from a template, see `members_and_outputs`.

    Raises:
        TooHeavy: They weigh more than `budget` has left.
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
                # Who reads it names the output, as Heat does, and not where the template has it.
                faults[name] = error.message if error.path and str(error.path[0]).lower() == "outputs" else str(error)
    budget.take([values, faults])
    return {"outputs": values, "output_faults": faults}


def _order_of_precedence(row: Resource) -> tuple[bool, int]:
    """Return a sort key; of several rows of one name the last stands for it: a complete one, then the newest."""
    return row.status == Status.COMPLETE, row.born
