"""What actions are given: the request, who asks, and stacks by their names."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.api.cloudformation.parameters import Parameters
from homeostat.api.http.context import RequestContext
from homeostat.builtin.access_keys import KeyHolder
from homeostat.builtin.cloud import stack_arn
from homeostat.model.errors import stack_not_found

_ARN = re.compile(r"arn:openstack:heat::([^:]*):stacks/([^/]+)/([^/]+)\Z")


@dataclass(frozen=True, slots=True)
class ActionContext:
    """One request. holder — of the key of ours that it is signed with."""

    ask: RequestContext
    parameters: Parameters
    holder: KeyHolder | None = None

    def stack(self, tx: Connection, name: str | None = None) -> Row[Any]:
        """The stack of that name, id or ARN, by default of the parameter; a deleted one not by its name.

        Fails: Refused (MissingParameter); Rejected (EntityNotFound).
        """
        wanted = name or self.parameters.needed("StackName")
        match = _ARN.match(wanted)
        row = self.ask.find(tx, match[3] if match else wanted)
        if row is None or (match and (match[1], match[2], match[3]) != (row.project, row.name, row.id)):
            raise stack_not_found(wanted)
        return row

    def live_stack(self, tx: Connection) -> Row[Any]:
        row = self.stack(tx)
        if row.deleted_at is not None:
            raise stack_not_found(self.parameters.needed("StackName"))
        return row


Action = Callable[[ActionContext], Any]
"""Gives the result: maps and lists of plain values, or a text."""


def arn_of(stack: Any) -> str:
    """stack — anything with project, name and id."""
    return stack_arn(stack.project, stack.name, stack.id)
