"""Moving stacks between services: adopt, export, abandon."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from homeostat.desired.graphs import DesiredGraphs
from homeostat.json_pieces import plain
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected, stack_not_found
from homeostat.services.adoption_preview import AdoptionPreview
from homeostat.services.documents import Document, completed, read_document
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.stacks import StackService
from homeostat.store.database import Database
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import action_begin, locks, stacks
from homeostat.transfer.export import document


class StackTransfer:
    """Moves stacks between services.

    Args:
        stack_service: The write path of desired states; its quotas have the operator's switches.
    """

    def __init__(self, db: Database, stack_service: StackService) -> None:
        self._db = db
        self._stack_service = stack_service

    def adopt(
        self,
        project: str,
        owner: str | None,
        name: str,
        request: StackRequest,
        data: Mapping[str, Any] | str,
        by: Caller | None = None,
    ) -> str:
        """Store a new stack that adopts the things of a document; return its id.

        Args:
            data: The document, or its text.
            by: See `StackService.create`.

        Raises:
            Rejected: As for a creation; names the place in the document.
        """
        quotas = self._stack_service.quotas
        _check_switch("Stack Adopt", on=quotas.adopt)
        adopted = read_document(data, quotas.resources_max, quotas.depth_max)
        return self._stack_service.create(project, owner, name, completed(request, adopted), adopted, by)

    def preview(self, project: str, name: str, request: StackRequest, data: Mapping[str, Any] | str) -> AdoptionPreview:
        """Preview an adoption: nothing is stored, and clouds are only read. For arguments and errors, see `adopt`.

        Obstacles outside the document, such as missing things, are reported in the preview, not raised.
        """
        quotas = self._stack_service.quotas
        _check_switch("Stack Adopt", on=quotas.adopt)
        adopted = read_document(data, quotas.resources_max, quotas.depth_max)
        cloud = self._stack_service.prerequisites.cloud(project)
        return self._stack_service.preview_adoption(project, name, completed(request, adopted), adopted, cloud)

    def export(self, stack_id: str) -> Document:
        """Return the stack as an adoption document, whose resources are read while the document is written.

        Raises:
            Rejected: NotSupported; EntityNotFound.
        """
        _check_switch("Stack Export", on=self._stack_service.quotas.abandon)
        with self._db.read() as tx:
            row = stacks.get(tx, stack_id)
            if row is None or row.deleted_at is not None:
                raise stack_not_found(stack_id)
            return document(tx, row, DesiredGraphs(cache_max=1), self._db.read)

    def abandon(self, stack_id: str, write: Callable[[Document], Any] = plain) -> Any:
        """Stop managing the stack and leave all its things in place; return its last document, as `write` returns it.

        Args:
            write: Writes the document, once before and once under the stack's lock. If it raises, the stack is not
                abandoned.

        Raises:
            Rejected: EntityNotFound; StackLocked; NotSupported if the operator has disabled it, and for a nested
                stack.
        """
        _check_switch("Stack Abandon", on=self._stack_service.quotas.abandon)
        graphs = DesiredGraphs(cache_max=self._stack_service.quotas.resources_max)
        with self._db.read() as tx:  # compiles everything in advance, while no lock is held
            seen = stacks.get(tx, stack_id)
            if seen is not None and seen.deleted_at is None:
                write(document(tx, seen, graphs, lambda: nullcontext(tx)))
        with self._db.write() as tx:
            row = locks.removable(tx, stack_id)
            _check_whole(row)
            # Written again: between the two transactions a pass may have created or deleted things.
            last = write(document(tx, row, graphs, lambda: nullcontext(tx)))
            action_begin.abandon(tx, row, tx.now(), self._stack_service.quotas.timeout_s)
            return last


def _check_whole(stack: StackRow) -> None:
    """Raise Rejected (NotSupported) for a nested stack."""
    if stack.parent_id is not None:
        message = f"Abandoning {stack.name}, which is a part of another stack, is not supported"
        raise Rejected("NotSupported", f"{message}: abandon the whole.")


def _check_switch(feature: str, *, on: bool) -> None:
    """Raise Rejected (NotSupported) for a feature that is switched off."""
    if not on:
        raise Rejected("NotSupported", f"{feature} is not supported: the operator has switched it off.")
