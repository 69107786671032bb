"""A desired state that has passed the checks."""

from collections.abc import Hashable
from dataclasses import dataclass

from homeostat.resources.secrets import makes_secrets
from homeostat.services.graphs import Graph
from homeostat.services.pipeline.requirements import Requirements
from homeostat.store.database import Database
from homeostat.store.stacks import revisions
from homeostat.store.stacks.revisions import Copied, NewRevision
from homeostat.templates import Compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(Graph):
    """The graph of a desired state that has passed the checks; its content is as it will be stored.

    Attributes:
        needs: External requirements of the tree.
        terms: See `Expansion.terms`.
        expanded: Number of resources in the nested templates of `needs`.
        address: See `contents.address_of`.
    """

    compiled: Compiled
    needs: Requirements
    terms: Hashable = None
    expanded: int = 0
    address: str | None = None

    @property
    def size(self) -> int:
        return 1 + len(self.definitions) + self.expanded

    @property
    def secret(self) -> bool:
        """Whether the tree of stacks holds secrets."""
        return self.needs.secret or makes_secrets(self.needs.types)

    def copied(self, number: int) -> NewRevision:
        """Return the desired state as a copy of the stack's revision of this number, which has the same content."""
        size = len(self.definitions)
        return NewRevision(self.content.kind, Copied(number), self.content.sinks, secret=self.secret, size=size)

    def revision(self, db: Database) -> NewRevision:
        """Return the desired state as a revision of its stack."""
        return revisions.encode(db, self.content, secret=self.secret, size=len(self.compiled.definitions))
