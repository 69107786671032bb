"""Wait conditions, and the handles whose signals they wait for."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

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


class Handles(RecordKind):
    """Handles of wait conditions: they take signals, by the address or login of their transport."""

    kind = HANDLE

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        secret = session.secret()
        made = session.record(self.kind, intent.token, dict(intent.spec), secret=secret)
        transport = intent.spec["transport"]
        if transport == Transport.TOKEN:
            made.object |= {"token": f"{access_key(made.id)}.{secret['key']}", "endpoint": session.endpoint(owner)}
        elif transport == Transport.HEAT:
            login = session.login(intent.token)
            made.object["login"] = {"alarm_url": session.endpoint(owner, login["project_id"]), **login}
        elif transport == Transport.ZAQAR:
            made.object["login"] = session.queue_login(made)
        elif transport in SIGNED_BY:
            made.object["url"] = session.signed(made.id, secret, SIGNED_BY[transport], owner)
        return [made]

    def restore_signals(self, session: RecordSession, record: Record, document: Fields) -> None:
        """Restore its signals: those in the document's data, or those that Heat shows as the handle's metadata."""
        stored = document["data"].get(SIGNALS) or signals.of_metadata(record.object["form"], document["metadata"])
        for each in stored:
            signal = {name: each.get(name) for name in ("id", "status", "reason", "data")}
            records.add_signal(session.tx, record.id, records.Signal(signal, float(each.get("at") or session.now)))
        signal_tallies.count(session.tx, record.id)


class Conditions(RecordKind):
    """Wait conditions. Their link is the handle whose signals they wait for."""

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
        """Keep a condition that was met as met: no server will signal again."""
        made = self.make(session, intent, owner)
        if document["status"] == COMPLETE:
            made[0].object["met"] = True
        return made

    def end(self, session: RecordSession, record: Record) -> bool:
        """Remove a condition, and the signals of its handle unless another condition waits for them."""
        if len(records.linked(session.tx, [record.link], CONDITION)) == 1:
            signal_tallies.delete_signals(session.tx, record.link)
        return super().end(session, record)

    def show(self, tx: Connection, found: Sequence[Record]) -> Mapping[str, Fields]:
        wanted = {each.id: (each.link, int(each.object.get("count") or 1)) for each in found}
        heard = signal_tallies.condition_views(tx, set(wanted.values()))
        shown = {}
        for each in found:
            met = {"met": True} if each.object.get("met") else {}
            shown[each.id] = {"id": each.id, "handle": each.link, "heard": heard[wanted[each.id]], **met}
        return shown
