"""Members that several updates asked a group to remove, and so the names withheld from new members (ADR 0095).

Updates overtake each other. Of a group's size only the newest value counts, but a member named by any of the updates is
removed. An id names the member with that id at the time when the update was accepted.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from homeostat.convergence.nested_stacks.attributes import SHOWN_MAX, WeightBudget, members_and_outputs
from homeostat.model.errors import Terminal
from homeostat.model.group import GroupDefinition
from homeostat.resources import groups
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import former_members
from homeostat.templates.weights import TooHeavy


class RemovalRequest(NamedTuple):
    """The removal request of one revision to a group.

    Attributes:
        at: When the revision was accepted.
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


class RemovalRequests(NamedTuple):
    """The removal requests to a group since its stack was complete.

    Attributes:
        at: When the newest revision was accepted.
        earlier: Requests of the revisions before the newest, oldest first.
    """

    at: float
    earlier: Sequence[RemovalRequest] = ()


def skip_list(
    tx: Transaction,
    nested: StackRow | None,
    before: GroupDefinition | None,
    values: Mapping[str, Any],
    requests: RemovalRequests,
) -> list[str]:
    """Return the names that no member of a group may have any more, oldest first.

    Args:
        tx: A consistent read.
        nested: Row of the group's stack; None if it does not exist yet.
        before: The group in its newest revision.
        values: Properties of the group, with defaults.
        requests: Earlier requests, besides these properties.

    Raises:
        Terminal: The members are too heavy to be read.
    """
    newest = RemovalRequest(requests.at, values["removal_policies"], values["removal_policies_mode"])
    skipped, left = (list(before.skip), before.left) if before is not None else ([], ())
    listed = {name for request in (*requests.earlier, newest) for name in request.names}
    references: dict[str, Any] = {name: name for name in listed if groups.is_member(name, before)}
    # A removal policy may name a member by its reference (an id of the cloud). Only then are all members read.
    if nested is not None and not {*references, *skipped}.issuperset(listed):
        references |= _references(tx, nested)
    known = {*references, *references.values()}
    for request in (*requests.earlier, newest):
        unknown = [name for name in request.names if name not in known and name not in skipped]
        former = former_members.names(tx, nested.id, unknown, request.at) if nested is not None and unknown else {}
        skipped = groups.skip_list(skipped, request.policies, request.mode, references, left, former)
    return skipped


def _references(tx: Transaction, nested: StackRow) -> dict[str, Any]:
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
