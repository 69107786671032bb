"""Values that pass between resources of templates and the services of clusters: who asks, and what is kept."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Requester:
    """On whose behalf the service acts.

    Attributes:
        project: The project of the stack.
        user: The user who owns the stack, by name; None where users are not known.
        user_id: The id of the user in the identity service; "" where there is none.
        depth: How deep a stack that is made for the resource is nested, also by way of clusters.
    """

    project: str
    user: str | None = None
    user_id: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """What is kept of a thing beside it.

    Attributes:
        id: Id of the thing.
        stack_id: The root stack that was made for it; "" for none.
        asked: What was last asked for, as far as the thing itself does not tell: the argument `before` of later calls.
    """

    id: str
    stack_id: str = ""
    asked: Fields = field(default_factory=dict)


RecordWriter = Callable[[Connection, ResourceRecord], None]
"""Store this in the transaction that carries out what was asked for. What it raises undoes both."""
