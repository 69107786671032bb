"""Wait conditions and their handles."""

from collections.abc import Mapping, Sequence

from homeostat.builtin.addresses import access_key
from homeostat.builtin.kinds.base import SIGNALS, SIGNED_BY, RecordKind
from homeostat.builtin.sessions import Fields, RecordSession
from homeostat.clouds.port import Creation
from homeostat.model.errors import Terminal
from homeostat.resources import signals
from homeostat.resources.families.deployments import COMPLETE
from homeostat.resources.families.wait_conditions import CONDITION, HANDLE, handle_id
from homeostat.resources.signals import Transport
from homeostat.store.builtin import records, signal_tallies, stack_users
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.database import Transaction


class Handles(RecordKind):
    """Handles of wait conditions: they receive signals by the URL or login of their transport."""

    kind = HANDLE

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        secret = session.secret()
        new = session.record(self.kind, intent.token, dict(intent.spec), secret=secret)
        transport = intent.spec["transport"]
        if transport == Transport.TOKEN:
            new.object |= {"token": f"{access_key(new.id)}.{secret['key']}", "endpoint": session.endpoint(owner)}
        elif transport == Transport.HEAT:
            login = session.login(intent.token)
            new.object["login"] = {"alarm_url": session.endpoint(owner, login["project_id"]), **login}
        elif transport == Transport.ZAQAR:
            new.object["login"] = session.queue_login(new)
        elif transport in SIGNED_BY:
            new.object["url"] = session.signed(new.id, secret, SIGNED_BY[transport], owner)
        return [new]

    def restore_signals(self, session: RecordSession, record: Record, document: Fields) -> None:
        """Restore the signals in the document's data, or, from Heat, in the handle's metadata."""
        stored = document["data"].get(SIGNALS) or signals.of_metadata(record.object["form"], document["metadata"])
        for entry in stored:
            signal = {name: entry.get(name) for name in ("id", "status", "reason", "data")}
            records.add_signal(session.tx, record.id, records.Signal(signal, float(entry.get("at") or session.now)))
        signal_tallies.count(session.tx, record.id)


class Conditions(RecordKind):
    """Wait conditions. Their link is the handle."""

    kind = CONDITION

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        handle = str(intent.spec["handle"])
        id = handle_id(handle)
        waited_for = records.get(session.tx, id, HANDLE, session.project)
        if waited_for is None:
            raise Terminal(f"{handle} is no handle of this project: give the reference of a wait condition handle")
        if waited_for.object["transport"] == Transport.ZAQAR:
            stack_users.read_soon(session.tx, [id])
        return [session.record(self.kind, intent.token, dict(intent.spec), link=id)]

    def restore(self, session: RecordSession, intent: Creation, owner: Owner, document: Fields) -> list[Record]:
        """Restore a met condition as met: servers do not signal again."""
        new = self.make(session, intent, owner)
        if document["status"] == COMPLETE:
            new[0].object["met"] = True
        return new

    def end(self, session: RecordSession, record: Record) -> bool:
        """Remove a condition, and the signals of its handle unless another condition uses the handle."""
        if len(records.linked(session.tx, [record.link], CONDITION)) == 1:
            signal_tallies.delete_signals(session.tx, record.link)
        return super().end(session, record)

    def show(self, tx: Transaction, stored: Sequence[Record]) -> Mapping[str, Fields]:
        awaited = {condition.id: (condition.link, int(condition.object.get("count") or 1)) for condition in stored}
        heard = signal_tallies.condition_views(tx, set(awaited.values()))
        objects = {}
        for condition in stored:
            met = {"met": True} if condition.object.get("met") else {}
            objects[condition.id] = {
                "id": condition.id,
                "handle": condition.link,
                "heard": heard[awaited[condition.id]],
                **met,
            }
        return objects
