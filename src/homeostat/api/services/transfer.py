"""Stacks that come from another service, and go to one: adopted, exported, abandoned."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row

from homeostat.api.access.auth import Caller
from homeostat.api.services.documents import Document, completed, read_document
from homeostat.api.services.stacks import StackRequest, StackService
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.errors import Rejected, stack_not_found
from homeostat.store.database import Database
from homeostat.store.stacks import locks, stacks
from homeostat.transfer.export import document


class StackTransfer:
    """Takes: intake — the write path of what users want; its quotas say what the operator has switched off."""

    def __init__(self, db: Database, intake: StackService) -> None:
        self._db = db
        self._intake = intake

    def adopt(
        self,
        project: str,
        owner: str | None,
        name: str,
        intent: StackRequest,
        given: Mapping[str, Any] | str,
        by: Caller | None = None,
    ) -> str:
        """Store a new stack that takes over what a document names. Gives its id.

        given — the document, or its text; by — see `StackService.create`.
        Fails: Rejected, like a creation, naming the place in the document.
        """
        quotas = self._intake.quotas
        _check_switch("Stack Adopt", on=quotas.adopt)
        told = read_document(given, quotas.resources_max, quotas.depth_max)
        return self._intake.create(project, owner, name, completed(intent, told), told, by)

    def export(self, stack_id: str) -> Document:
        """The stack as a document from which it can be adopted. Fails: Rejected (NotSupported, EntityNotFound)."""
        _check_switch("Stack Export", on=self._intake.quotas.abandon)
        with self._db.read() as tx:
            row = stacks.get(tx, stack_id)
            if row is None or row.deleted_at is not None:
                raise stack_not_found(stack_id)
            return document(tx, row, DesiredGraphs())

    def abandon(self, stack_id: str) -> Document:
        """Let go of the stack, and touch nothing that it has. Gives it as a document, as it is at this moment.

        Fails: Rejected — EntityNotFound, StackLocked; NotSupported where it is switched off, and for a part of another
        stack.
        """
        _check_switch("Stack Abandon", on=self._intake.quotas.abandon)
        graphs = DesiredGraphs(kept_max=self._intake.quotas.resources_max)
        with self._db.read() as tx:  # compiles all that is needed, without keeping anybody waiting
            seen = stacks.get(tx, stack_id)
            if seen is not None and seen.deleted_at is None:
                document(tx, seen, graphs)
        with self._db.write() as tx:
            row = locks.removable(self._db, tx, stack_id)
            _check_whole(row)
            last = document(tx, row, graphs)
            stacks.abandon(self._db, tx, row, self._db.now_of(tx), self._intake.quotas.timeout_s)
            return last


def _check_whole(stack: Row[Any]) -> None:
    """Fails: Rejected (NotSupported) for a nested stack."""
    if stack.parent_id is not None:
        message = f"Abandoning {stack.name}, which is a part of another stack, is not supported"
        raise Rejected("NotSupported", f"{message}: abandon the whole.")


def _check_switch(feature: str, *, on: bool) -> None:
    """Fails: Rejected (NotSupported)."""
    if not on:
        raise Rejected("NotSupported", f"{feature} is not supported: the operator has switched it off.")
