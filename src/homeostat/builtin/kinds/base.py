"""Base of the kinds of records: how a record is made, changed, restored, removed and shown."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sqlalchemy import Connection

from homeostat.builtin.sessions import Fields, RecordSession
from homeostat.clouds.port import Creation
from homeostat.identity.stack_users import needed
from homeostat.model.errors import Terminal
from homeostat.resources.families.access import USER
from homeostat.resources.signals import Transport
from homeostat.store.builtin import records, stack_users
from homeostat.store.builtin.records import Owner, Record


class RecordKind:
    """Handling of the records of one kind.

    Attributes:
        kind: Kind of the records, in the words of the cloud port.
        needs_owner: Whether a record can only be made while its resource exists.
    """

    kind: ClassVar[str]
    needs_owner: ClassVar[bool] = True

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        """Return the new record, followed by others that belong to it; the caller stores them.

        Raises:
            Terminal: It cannot be made as asked for.
        """
        return [session.record(self.kind, intent.token, dict(intent.spec))]

    def restore(self, session: RecordSession, intent: Creation, owner: Owner, document: Fields) -> list[Record]:
        """Return the records for something that another service kept before; by default made like new ones.

        Args:
            session: The transaction, which gives the record its old id and key where they are known.
            intent: The creation.
            owner: The resource.
            document: `{id, status, metadata, data}` of the document, see `model.intent.AdoptionData`.

        Raises:
            Terminal: It cannot be made as asked for.
        """
        return self.make(session, intent, owner)

    def restore_signals(self, session: RecordSession, record: Record, document: Fields) -> None:
        """Give a restored record, now stored, the signals that it had received before."""

    def change(self, session: RecordSession, record: Record, spec: Mapping[str, Any]) -> None:
        """Bring a record, which is locked, to a new spec.

        Raises:
            Terminal: It cannot be changed like that.
        """
        record.object = {**record.object, **spec}
        session.keep(record)

    def owner(self, session: RecordSession, record: Record) -> Owner:
        """Return the resource of a record.

        Raises:
            Terminal: It is not there any more.
        """
        key = records.key_of(record.token)
        found = records.owners(session.tx, [key]).get(key)
        if found is None:
            raise Terminal(f"the resource of {self.kind.replace('_', ' ')} {record.id} is not there any more")
        return found

    def operate(self, session: RecordSession, record: Record, verb: str) -> None:
        """Carry out an operation on a record, which is locked.

        Raises:
            Terminal: There is no such operation, or it fails.
        """
        raise Terminal(f"A {self.kind} knows no operation {verb!r}")

    def end(self, session: RecordSession, record: Record) -> bool:
        """Remove a record, which is locked; return whether it is gone, or else being removed."""
        records.remove(session.tx, [record.id])
        if self.kind == USER or needed(record.object):
            stack_users.mark_departed(session.tx, record.token)
        return True

    def show(self, tx: Connection, found: Sequence[Record]) -> Mapping[str, Fields]:
        """Return the objects of records by their ids, as observations show them."""
        return {each.id: {**each.object, "id": each.id} for each in found}


SIGNED_BY = {Transport.CFN: "POST", Transport.TEMP_URL: "PUT"}
"""Transport -> HTTP method of its signed address."""
RECORD, SIGNALS = "record", "signals"
"""Keys of a record's data in an exported document: the record itself, and the signals that it has received."""


def _exported_record(document: Fields) -> Fields:
    """Return `{object, secret, link}` of a record that another Homeostat has exported; {} where Heat has."""
    stored = document["data"].get(RECORD)
    return stored if isinstance(stored, dict) else {}
