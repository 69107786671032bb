"""Values passed between the cloud adapter and the operations on objects: the requester and the stored record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.store.database import Transaction

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Requester:
    """The user on whose behalf the service acts.

    Attributes:
        project: The project of the stack.
        user: Name of the owner of the stack; None without authentication.
        user_id: Id of the owner in Keystone; "" if unknown.
        depth: Nesting depth of a stack created for the resource, including nesting by clusters.
    """

    project: str
    user: str | None = None
    user_id: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """The stored record of an object.

    Attributes:
        id: Id of the object.
        stack_id: The root stack created for the object; "" for none.
        asked: The last requested values that the object itself does not show: the argument `before` of later calls.
    """

    id: str
    stack_id: str = ""
    asked: Fields = field(default_factory=dict)


RecordWriter = Callable[[Transaction, ResourceRecord], None]
"""Store a record in the transaction of the operation; an error rolls back both."""
