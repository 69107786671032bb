"""Whom a group was asked to remove, by each revision since its stack was complete, also those never begun (ADR 0095).

Updates overtake each other. A number of members counts by its newest value alone; who was named goes, whichever update
named them. Who is named by an id is who had it when the update was accepted.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from homeostat.convergence.nested_stacks.attributes import SHOWN_MAX, WeightBudget, members_and_outputs, scope_of
from homeostat.convergence.nested_stacks.template_stacks import environment_inside, from_template
from homeostat.desired.graphs import compile_graph
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.status import Action
from homeostat.model.world import Resource, StackFacts, World
from homeostat.resources import groups
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.resources.families.resource_groups import ResourceGroup
from homeostat.resources.nested import FromTemplate
from homeostat.resources.registry import type_of
from homeostat.store.shards import shard_state
from homeostat.store.stacks import former_members, revisions, stacks
from homeostat.templates import evaluate
from homeostat.templates.weights import TooHeavy

LOG = logging.getLogger(__name__)
OVERTAKEN_MAX = 100
"""Revisions of one stack, the newest ones, that are read for what they asked."""
GOES_BACK = frozenset({Action.ROLLBACK, Action.RESTORE, Action.DELETE})
"""Actions after which nothing counts that was asked before."""


class Asked(NamedTuple):
    """What one revision asks of a group.

    Attributes:
        at: When it was accepted.
        policies: As the property `removal_policies`.
        mode: As the property `removal_policies_mode`.
    """

    at: float
    policies: Sequence[Mapping[str, Any]]
    mode: str

    @property
    def names(self) -> list[str]:
        """The names, numbers and ids of members."""
        return [str(entry) for policy in self.policies for entry in policy.get("resource_list") or []]


class Asks(NamedTuple):
    """What was asked of a group since its stack was complete.

    Attributes:
        at: When the newest revision was accepted.
        earlier: What those before it asked, the oldest first.
    """

    at: float
    earlier: Sequence[Asked] = ()


class _Wanted(NamedTuple):
    """A revision that was overtaken.

    Attributes:
        at: When it was accepted.
        desired: What it says.
    """

    at: float
    desired: revisions.Desired


def asks_of(tx: Connection, world: World, row: Resource | None, *, next_one: bool = False) -> Asks:
    """Return what was asked of a group before the newest revision.

    Args:
        tx: A consistent read.
        world: World of the shard that the group is in.
        row: Its row; None where it is yet to be made.
        next_one: Whether the world is that of a preview, in which the newest revision that is stored is overtaken.
    """
    at = math.inf if next_one else _accepted_at(tx, world.stack)
    if row is None or not _may_be_asked(row.type):
        return Asks(at)
    found = (_asked(each, world, row) for each in _overtaken(tx, world.stack, world.stack.revision, int(next_one)))
    return Asks(at, [each for each in found if each is not None])


def _may_be_asked(type_name: str) -> bool:
    """Return whether templates may name members to remove; a cluster itself adds up whom it was asked to remove."""
    kind = type_of(type_name)
    return isinstance(kind, ResourceGroup) and not isinstance(kind, NodeGroup)


def _accepted_at(tx: Connection, stack: StackFacts) -> float:
    """Return when the newest revision of the root stack was accepted."""
    found = revisions.page(tx, stack.root_id or stack.id, 1)
    return float(found[0].created_at) if found else 0.0


def _overtaken(tx: Connection, stack: StackFacts, newest: int, more: int) -> list[_Wanted]:
    """Return what a stack was to be since it was complete, the oldest first.

    Args:
        tx: A consistent read.
        stack: The stack.
        newest: The revision by which it is made now.
        more: How many revisions of the stacks around it are yet to be stored.
    """
    if stack.action in GOES_BACK:
        return []
    found = _overtaken_above(tx, stack, more)
    for each in revisions.page(tx, stack.id, OVERTAKEN_MAX, newest):
        if each.number <= (stack.complete_revision or 0) or each.action in GOES_BACK:
            break
        if each.kind == "template":
            found.append(_Wanted(float(each.created_at), revisions.desired_of(tx, stack.id, each.number)))
    return sorted(found, key=lambda wanted: wanted.at)


def _overtaken_above(tx: Connection, stack: StackFacts, more: int) -> list[_Wanted]:
    """Return what a nested stack would have been, had the revisions of its parent been begun that were overtaken."""
    parent = stacks.get(tx, stack.parent_id) if stack.parent_id is not None else None
    if parent is None:
        return []
    above = _overtaken(tx, stacks.facts(parent), parent.revision + more, more)
    if not above:
        return []
    # A stack made from a template has one shard.
    rows, seen = shard_state.load_rows(tx, parent.id, 0)
    row = rows.get(stack.parent_key or "")
    world = World(stacks.facts(parent), 0, {}, rows, seen)
    found = (_inside(each, world, row) for each in above) if row is not None else ()
    return [each for each in found if each is not None]


def _inside(wanted: _Wanted, world: World, row: Resource) -> _Wanted | None:
    """Return what a revision wanted of the nested stack of a resource; None where that is not from a template."""
    try:
        definition, values = _defined(wanted, world, row)
        if definition is None or not isinstance(type_of(definition.type), FromTemplate):
            return None
        inside = environment_inside(wanted.desired, row.name, definition.called or definition.type)
        made = replace(row, type=definition.type, properties=values)
        return _Wanted(wanted.at, from_template(made, wanted.desired, inside))
    except (Rejected, Terminal) as error:
        _ignored(world, row, error)
        return None


def _asked(wanted: _Wanted, world: World, row: Resource) -> Asked | None:
    """Return what a revision asked of a group; None where there was none in it."""
    try:
        definition, values = _defined(wanted, world, row)
    except (Rejected, Terminal) as error:
        _ignored(world, row, error)
        return None
    if definition is None or not _may_be_asked(definition.type):
        return None
    whole = type_of(definition.type).complete(values)
    return Asked(wanted.at, whole["removal_policies"], whole["removal_policies_mode"])


def _ignored(world: World, row: Resource, error: Exception) -> None:
    """Say that a revision asks nothing, since it could not have been brought about."""
    LOG.info("what an overtaken update of stack %s asked of %s is not known: %s", world.stack.id, row.name, error)


def _defined(wanted: _Wanted, world: World, row: Resource) -> tuple[Definition | None, dict[str, Any]]:
    """Return the definition of a resource in a revision, and its properties as they are now.

    Raises:
        Rejected, Terminal: They cannot be worked out.
    """
    stack = world.stack
    definition = compile_graph(wanted.desired, Identity(stack.id, stack.name, stack.project), 0).get(row.name)
    if definition is None:
        return None, {}
    given = definition.properties if definition.static else evaluate(definition.properties, scope_of(world))
    return definition, type_of(definition.type).check(given, ("resources", row.name))


def skip_list(
    tx: Connection, nested: Row[Any] | None, before: groups.Group, values: Mapping[str, Any], asks: Asks
) -> list[str]:
    """Return the names that no member of a group may have any more, oldest first.

    Args:
        tx: A consistent read.
        nested: Row of its stack, None while it is yet to be made.
        before: The group as its newest revision says.
        values: Properties of the group, with defaults.
        asks: What was asked of it besides these.

    Raises:
        Terminal: The members are too heavy to be read.
    """
    newest = Asked(asks.at, values["removal_policies"], values["removal_policies_mode"])
    skipped, left = list(before.get("skip", [])), before.get("left", [])
    listed = {name for each in (*asks.earlier, newest) for name in each.names}
    references: dict[str, Any] = {name: name for name in listed if groups.is_member(name, before)}
    # A removal policy may name a member by its reference (an id of the cloud). Only then are all members read.
    if nested is not None and not {*references, *skipped}.issuperset(listed):
        references |= _references(tx, nested)
    known = {*references, *references.values()}
    for each in (*asks.earlier, newest):
        unknown = [name for name in each.names if name not in known and name not in skipped]
        former = former_members.names(tx, nested.id, unknown, each.at) if nested is not None and unknown else {}
        skipped = groups.skip_list(skipped, each.policies, each.mode, references, left, former)
    return skipped


def _references(tx: Connection, nested: Row[Any]) -> dict[str, Any]:
    """Return the reference of each member of a group by its name.

    Raises:
        Terminal: The members are too heavy to be read.
    """
    try:
        return {
            name: member["reference"]
            for name, member in members_and_outputs(tx, nested, WeightBudget())["members"].items()
        }
    except TooHeavy as error:
        message = f"the attributes of its members weigh more than {SHOWN_MAX}: name those to remove by their numbers"
        raise Terminal(message) from error
