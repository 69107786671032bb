"""The port to the Clustering API: what it does for resources of templates, by `api.clustering.things`.

Each method acts on behalf of a requester, as a request of that user would, and is refused what such a request is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

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


class ClusteringApi(Protocol):
    """The Clustering API. Errors of all methods: Rejected, Transient."""

    def look(self, kind: str, project: str, ids: Sequence[str]) -> Mapping[str, Fields]:
        """Return the objects of those of these things that exist, by id."""

    def find(self, kind: str, project: str, name: str) -> str | None:
        """Return the id of the thing, or of the type, that a user calls so; None if there is none.

        Raises:
            Rejected: MultipleChoices.
        """

    def make(self, kind: str, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        """Make a thing."""

    def change(self, kind: str, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        """Bring a thing to a spec. It may be called again with the same spec: what is done is not done again."""

    def take_over(self, kind: str, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None:
        """Let a thing that is there be that of a resource, as it is."""

    def operate(self, kind: str, by: Requester, id: str, verb: str, before: Fields) -> None:
        """Carry out an operation on a thing. Raise Rejected: NotSupported for one that its kind does not have."""

    def remove(self, kind: str, by: Requester, id: str, before: Fields, forget: Callable[[Connection], None]) -> None:
        """Delete a thing, or begin to, and call `forget` in the transaction that does so."""
