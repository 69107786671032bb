"""Whom a group was asked to remove by several updates, and so which names its members have no more (ADR 0095).

Updates overtake each other. A number of members counts by its newest value alone; who was named goes, whichever update
named them. Who is named by an id is who had it when the update was accepted.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from homeostat.convergence.nested_stacks.attributes import SHOWN_MAX, WeightBudget, members_and_outputs
from homeostat.model.errors import Terminal
from homeostat.model.group import GroupDefinition
from homeostat.resources import groups
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import former_members
from homeostat.templates.weights import TooHeavy


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


def skip_list(
    tx: Connection, nested: StackRow | None, before: GroupDefinition | None, values: Mapping[str, Any], asks: Asks
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
    skipped, left = (list(before.skip), before.left) if before is not None else ([], ())
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


def _references(tx: Connection, nested: StackRow) -> dict[str, Any]:
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
