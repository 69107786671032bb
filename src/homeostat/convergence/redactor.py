"""Redaction of what a pass stores and logs: reasons and errors may quote values of hidden parameters."""

import contextlib
from collections.abc import Iterable
from dataclasses import replace

from homeostat.desired.redaction import Redaction, Redactions, redacted
from homeostat.model.plan import Event
from homeostat.model.world import StackFacts, World
from homeostat.planner import outcome
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.shards.leases import Lease
from homeostat.store.stacks import stacks

ROUTINE = ("", outcome.CHANGED)
"""Reasons that quote no value, and so need no redaction."""


class Redactor:
    """Remover of the hidden values of one stack from texts, those of earlier revisions included."""

    def __init__(self, db: Database, redactions: Redactions, world: World) -> None:
        self._db = db
        self._redactions = redactions
        self._world = world
        self._redaction: Redaction | None = None

    @property
    def needed(self) -> bool:
        """Whether the stack has anything to hide."""
        return self._world.stack.secret is not False

    def text(self, text: str) -> str:
        """Return a reason or an error without hidden values."""
        stack, rows = self._world.stack, self._world.rows.values()
        if not self.needed or text in ROUTINE:
            return text
        # Built only when a text has to be checked: most passes have none.
        if self._redaction is None:
            with self._db.read() as tx:
                self._redaction = self._redactions.over(tx, stack, _quotable(stack, (row.revision for row in rows)))
        return self._redaction.text(text)

    def events(self, events: list[Event]) -> list[Event]:
        """Return events with redacted reasons."""
        return [each if each.reason in ROUTINE else replace(each, reason=self.text(each.reason)) for each in events]


def redacted_without_world(db: Database, redactions: Redactions, lease: Lease, error: Exception) -> Exception:
    """Return an error that came up while the world of a shard was loaded, without hidden values.

    What fails the loading may keep the hidden values from being read as well. Then its class alone is shown.
    """
    shown: Exception = RuntimeError(type(error).__name__).with_traceback(error.__traceback__)
    # Whatever is raised here is as little fit to be shown as the error itself.
    with contextlib.suppress(Exception), db.read() as tx:
        row = stacks.get(tx, lease.stack_id)
        if row is None or row.secret is False:
            return error
        stack = stacks.facts(row)
        numbers = _quotable(stack, shard_state.revisions_of(tx, lease.stack_id, lease.number))
        shown = redacted(error, redactions.over(tx, stack, numbers).text)
    return shown


def _quotable(stack: StackFacts, acted_on: Iterable[int]) -> set[int | None]:
    """Return the revisions besides the newest whose values an error may quote.

    Args:
        stack: The stack.
        acted_on: Revisions at which the rows were last acted on: they still carry the values of these.
    """
    return {stack.revision - 1, stack.complete_revision, stack.rollback_to, *acted_on}
