"""Base of the kinds of records: creation, changes, restoration, removal and presentation of records."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from homeostat.builtin.sessions import Fields, RecordSession
from homeostat.clouds.port import Creation
from homeostat.identity.stack_users import needed
from homeostat.model.errors import Terminal
from homeostat.resources.families.access import USER
from homeostat.resources.signals import Transport
from homeostat.store.builtin import records, stack_users
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.database import Transaction


class RecordKind:
    """Handling of the records of a kind.

    Attributes:
        kind: Kind of the records, in the words of the cloud port.
        needs_owner: Whether a record can be created only while its resource exists.
    """

    kind: ClassVar[str]
    needs_owner: ClassVar[bool] = True

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        """Return the new record, followed by its further records; the caller stores all.

        Raises:
            Terminal: The record cannot be created.
        """
        return [session.record(self.kind, intent.token, dict(intent.spec))]

    def restore(self, session: RecordSession, intent: Creation, owner: Owner, document: Fields) -> list[Record]:
        """Return the records for a resource adopted from another service; by default created like new records.

        Args:
            session: The transaction; it gives the record its old id and key, if known.
            document: `{id, status, metadata, data}` of the document, see `model.intent.AdoptionData`.

        Raises:
            Terminal: The record cannot be created.
        """
        return self.make(session, intent, owner)

    def restore_signals(self, session: RecordSession, record: Record, document: Fields) -> None:
        """Restore the signals of a restored record, which is stored now."""

    def change(self, session: RecordSession, record: Record, spec: Mapping[str, Any]) -> None:
        """Change a record, which is locked, to a new spec.

        Raises:
            Terminal: The change is impossible.
        """
        record.object = {**record.object, **spec}
        session.keep(record)

    def owner(self, session: RecordSession, record: Record) -> Owner:
        """Return the resource of a record.

        Raises:
            Terminal: The resource is gone.
        """
        key = records.key_of(record.token)
        owner = records.owners(session.tx, [key]).get(key)
        if owner is None:
            raise Terminal(f"the resource of {self.kind.replace('_', ' ')} {record.id} is not there any more")
        return owner

    def operate(self, session: RecordSession, record: Record, verb: str) -> None:
        """Perform an operation on a record, which is locked.

        Raises:
            Terminal: The operation is unknown, or fails.
        """
        raise Terminal(f"A {self.kind} knows no operation {verb!r}")

    def end(self, session: RecordSession, record: Record) -> bool:
        """Remove a record, which is locked; return False if the removal takes longer."""
        records.remove(session.tx, [record.id])
        if self.kind == USER or needed(record.object):
            stack_users.mark_departed(session.tx, record.token)
        return True

    def show(self, tx: Transaction, stored: Sequence[Record]) -> Mapping[str, Fields]:
        """Return id of a record -> its object for observations."""
        return {record.id: {**record.object, "id": record.id} for record in stored}


SIGNED_BY = {Transport.CFN: "POST", Transport.TEMP_URL: "PUT"}
"""Transport -> HTTP method of its signed URL."""
RECORD, SIGNALS = "record", "signals"
"""Keys of a record's data in an exported document: the record itself, and its received signals."""


def _exported_record(document: Fields) -> Fields:
    """Return `{object, secret, link}` of a record exported by another Homeostat; {} for an export of Heat."""
    stored = document["data"].get(RECORD)
    return stored if isinstance(stored, dict) else {}
