"""Input of actions: the request, its caller, and stacks by name."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from homeostat.api.cloudformation.parameters import Parameters
from homeostat.api.context import RequestContext
from homeostat.builtin.access_keys import KeyHolder
from homeostat.builtin.addresses import stack_arn
from homeostat.model.errors import stack_not_found
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow

_ARN = re.compile(r"arn:openstack:heat::([^:]*):stacks/([^/]+)/([^/]+)\Z")


@dataclass(frozen=True, slots=True)
class ActionContext:
    """A request.

    Attributes:
        holder: Holder of the key of this service that signed the request; None otherwise.
    """

    context: RequestContext
    parameters: Parameters
    holder: KeyHolder | None = None

    def stack(self, tx: Transaction, name: str | None = None) -> StackRow:
        """Return the stack of this name, id or ARN (default: parameter StackName); a deleted stack only by id or ARN.

        Raises:
            Refused: MissingParameter.
            Rejected: EntityNotFound.
        """
        wanted = name or self.parameters.needed("StackName")
        match = _ARN.match(wanted)
        row = self.context.find(tx, match[3] if match else wanted)
        if row is None or (match and (match[1], match[2], match[3]) != (row.project, row.name, row.id)):
            raise stack_not_found(wanted)
        return row

    def live_stack(self, tx: Transaction) -> StackRow:
        row = self.stack(tx)
        if row.deleted_at is not None:
            raise stack_not_found(self.parameters.needed("StackName"))
        return row


Action = Callable[[ActionContext], Any]
"""Carry out an action; return maps and lists of plain values, or a text."""


def arn_of(stack: Any) -> str:
    """Return the ARN of a stack.

    Args:
        stack: Any object with project, name and id.
    """
    return stack_arn(stack.project, stack.name, stack.id)
