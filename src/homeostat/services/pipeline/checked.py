"""A desired state that has passed the checks."""

from collections.abc import Hashable
from dataclasses import dataclass

from homeostat.resources.secrets import makes_secrets
from homeostat.services.graphs import Graph
from homeostat.services.pipeline.requirements import Requirements
from homeostat.store.database import Database
from homeostat.store.stacks import revisions
from homeostat.store.stacks.revisions import NewRevision
from homeostat.templates import Compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(Graph):
    """The graph of a desired state that has passed the checks; its content is as it will be stored.

    Attributes:
        needs: External requirements of the tree.
        terms: See `Expansion.terms`.
        expanded: Number of resources in the nested templates of `needs`.
    """

    compiled: Compiled
    needs: Requirements
    terms: Hashable = None
    expanded: int = 0

    @property
    def size(self) -> int:
        return super(Checked, self).size + self.expanded

    @property
    def secret(self) -> bool:
        """Whether the tree of stacks holds secrets."""
        return self.needs.secret or makes_secrets(self.needs.types)

    def revision(self, db: Database) -> NewRevision:
        """Return the desired state as a revision of its stack."""
        return revisions.encode(db, self.content, secret=self.secret, size=len(self.compiled.definitions))
