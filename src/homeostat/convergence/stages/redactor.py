"""Redaction of stored and logged texts of a pass: reasons and errors may quote values of hidden parameters."""

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
"""Reasons without any value, which need no redaction."""


class Redactor:
    """Remover of a stack's hidden values from texts, including the values of earlier revisions."""

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
        # Built only when there is a text to redact: most passes have none.
        if self._redaction is None:
            with self._db.read() as tx:
                self._redaction = self._redactions.over(tx, stack, _quotable(stack, (row.revision for row in rows)))
        return self._redaction.text(text)

    def events(self, events: list[Event]) -> list[Event]:
        """Return events with redacted reasons."""
        return [
            event if event.reason in ROUTINE else replace(event, reason=self.text(event.reason)) for event in events
        ]


def redacted_without_world(db: Database, redactions: Redactions, lease: Lease, error: Exception) -> Exception:
    """Return an error of loading a shard's world without hidden values.

    The cause of the error may keep the hidden values from being read as well: then only its class is shown.
    """
    safe_error: Exception = RuntimeError(type(error).__name__).with_traceback(error.__traceback__)
    # An error raised here may quote hidden values just as well.
    with contextlib.suppress(Exception), db.read() as tx:
        row = stacks.get(tx, lease.stack_id)
        if row is None or row.secret is False:
            return error
        stack = stacks.facts(row)
        numbers = _quotable(stack, shard_state.revisions_of(tx, lease.stack_id, lease.number))
        safe_error = redacted(error, redactions.over(tx, stack, numbers).text)
    return safe_error


def _quotable(stack: StackFacts, acted_on: Iterable[int]) -> set[int | None]:
    """Return the revisions besides the newest whose values an error may quote.

    Args:
        acted_on: Revisions at which the rows were last acted on: the rows still carry their values.
    """
    return {stack.revision - 1, stack.complete_revision, stack.rollback_to, *acted_on}
