"""Software deployments, and the configs derived for them."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from homeostat.builtin.addresses import access_key
from homeostat.builtin.kinds.base import SIGNED_BY, RecordKind, _exported_record
from homeostat.builtin.sessions import Fields, RecordSession
from homeostat.clouds.port import Creation
from homeostat.identity.stack_users import needed
from homeostat.model.errors import Terminal
from homeostat.model.status import Action
from homeostat.resources.families import deployments
from homeostat.resources.families.configs import CONFIG
from homeostat.resources.families.deployments import COMPLETE, DEPLOYMENT, FAILED, IN_PROGRESS, Deploying
from homeostat.resources.signals import Transport
from homeostat.store.builtin import records, stack_users
from homeostat.store.builtin.records import Owner, Record


class Deployments(RecordKind):
    """Software deployments. Their link is the server.

    The object of a record is what the API shows, and `spec`, what was last asked for, and `server_known`, whether the
    server was a resource of a stack when the deployment was made.
    """

    kind = DEPLOYMENT

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        spec = dict(intent.spec)
        server_known = bool(records.owners_of(session.tx, [spec["server_id"]]))
        object = {"server_known": server_known, "output_values": {}, "config_id": None, "action": "CREATE"}
        made = session.record(self.kind, intent.token, object, link=spec["server_id"], secret=session.secret())
        return [made, *self._deploy(session, made, spec, "CREATE", owner)]

    def restore(self, session: RecordSession, intent: Creation, owner: Owner, document: Fields) -> list[Record]:
        """Keep a deployment that was applied as applied, with its outputs as far as they are known."""
        if document["status"] != COMPLETE:
            return self.make(session, intent, owner)
        spec = dict(intent.spec)
        object = {"server_known": bool(records.owners_of(session.tx, [spec["server_id"]])), "spec": spec}
        object |= {name: spec[name] for name in ("name", "server_id", "input_values")}
        stored = _exported_record(document).get("object") or {}
        object |= {"output_values": stored.get("output_values") or {}, "config_id": None}
        object |= {"action": stored.get("action") or "CREATE", "status": COMPLETE, "status_reason": "adopted"}
        return [session.record(self.kind, intent.token, object, link=spec["server_id"], secret=session.secret())]

    def change(self, session: RecordSession, record: Record, spec: Mapping[str, Any]) -> None:
        """Deploy a new spec; the same spec is not deployed again, since a server must not apply it twice."""
        if record.object.get("spec") == spec:
            return
        self._redeploy(session, record, dict(spec), "UPDATE", self.owner(session, record))

    def end(self, session: RecordSession, record: Record) -> bool:
        """Remove a deployment; one with a config for DELETE is gone once the server has signalled its outputs.

        What its resource does not stand for (any more) is gone at once: nothing would end the wait for a server that is
        silent, and what the server would undo is in use by the deployment that was made instead.
        """
        owner = self._owner(session, record)
        if owner is not None and record.token != owner.token and record.id != owner.handle:
            owner = None
        if owner is not None and not self._without_server(session, record):
            if not _waits_to_go(record):
                self._redeploy(session, record, record.object["spec"], "DELETE", owner)
            if _waits_to_go(record):
                return False
        end_deployment(session.tx, record)
        return True

    def operate(self, session: RecordSession, record: Record, verb: str) -> None:
        """Suspend or resume a deployment, by deploying its config for that, if it has one.

        An operation that is under way or done is not repeated; one that failed is.
        """
        action = verb.upper()
        owner = self._owner(session, record)
        if action not in (Action.SUSPEND, Action.RESUME):
            super().operate(session, record, verb)
        if record.object.get("action") == action and record.object.get("status") != FAILED:
            return
        if owner is not None and not self._without_server(session, record):
            self._redeploy(session, record, record.object["spec"], action, owner)
        # `_redeploy` has set the action where there is a config for it. Without one, the operation is done at once.
        if record.object.get("action") != action:
            record.object |= {"action": action, "status": COMPLETE}
            session.keep(record)

    def _owner(self, session: RecordSession, record: Record) -> Owner | None:
        key = records.key_of(record.token)
        return records.owners(session.tx, [key]).get(key)

    def show(self, tx: Connection, found: Sequence[Record]) -> Mapping[str, Fields]:
        return {
            each.id: {name: value for name, value in each.object.items() if name != "spec"} | {"id": each.id}
            for each in found
        }

    def _without_server(self, session: RecordSession, record: Record) -> bool:
        """Whether the server is gone, so that nothing can signal the outputs. Unknown servers count as there."""
        return bool(record.object.get("server_known")) and not records.owners_of(session.tx, [record.link])

    def _redeploy(self, session: RecordSession, record: Record, spec: Fields, action: str, owner: Owner) -> None:
        """Deploy for another action, and store that; the config derived before is removed."""
        before = _derived_of(record)
        made = self._deploy(session, record, spec, action, owner)
        session.add(made)
        session.keep(record)
        if made:
            records.remove(session.tx, before)

    def _deploy(self, session: RecordSession, record: Record, spec: Fields, action: str, owner: Owner) -> list[Record]:
        """Change the record's object to this action; return the derived config to be stored, if there is one."""
        source = self._source(session, spec, must_exist=action != "DELETE")
        record.object |= {"spec": spec, "name": spec["name"], "server_id": spec["server_id"]}
        record.object["declared"] = [each["name"] for each in source.get("outputs") or ()]
        record.object["input_values"] = spec["input_values"]
        if not deployments.applies(source, spec, action):
            record.object.setdefault("status", COMPLETE)
            record.object.setdefault("status_reason", "")
            return []
        derived_id = session.id()
        verb = SIGNED_BY.get(spec["transport"], "")
        address = session.signed(record.id, record.secret or {}, verb, owner, access_key(derived_id)) if verb else ""
        stack = f"{owner.stack_name}/{owner.stack_id}"
        login = _login(session, record, spec["transport"])
        how = Deploying(action, spec["server_id"], stack, owner.name, spec["transport"], address, verb, login)
        config = deployments.derived(source, spec, how)
        waits = bool(verb or login)
        record.object |= {
            "action": action,
            "config_id": derived_id,
            "status": IN_PROGRESS if waits else COMPLETE,
            "status_reason": "Deploy data available" if waits else "Not waiting for outputs signal",
            "replace_on_change": deployments.replaced_on_change(config),
        }
        return [session.record(CONFIG, derived_id, config, id=derived_id)]

    def _source(self, session: RecordSession, spec: Fields, *, must_exist: bool) -> Mapping[str, Any]:
        if not spec["config"]:
            return {}
        found = records.get(session.tx, spec["config"], CONFIG, session.project)
        if found is None and must_exist:
            raise Terminal(f"The Software Config ({spec['config']}) could not be found: give the id of a config.")
        return found.object if found is not None else {}


def _login(session: RecordSession, record: Record, transport: str) -> dict[str, str]:
    """Return the login by which the server signals; {} where it needs none."""
    if transport == Transport.ZAQAR:
        return session.queue_login(record)
    return session.login(record.token) if transport == Transport.HEAT else {}


def _derived_of(record: Record) -> list[str]:
    """Return the ids of the configs derived for a deployment: one, or none."""
    return [record.object["config_id"]] if record.object.get("config_id") else []


def _waits_to_go(record: Record) -> bool:
    return record.object.get("action") == "DELETE" and record.object["status"] == IN_PROGRESS


def end_deployment(tx: Connection, record: Record) -> None:
    """Remove a deployment with the config that was derived for it."""
    records.remove(tx, [record.id, *_derived_of(record)])
    if needed(record.object.get("spec") or {}):
        stack_users.mark_departed(tx, record.token)


def deployed(tx: Connection, project: str, server_id: str) -> list[Record]:
    """Return the configs that a server has to apply, in the order of their names."""
    found = [each for each in records.linked(tx, [server_id], DEPLOYMENT) if each.project == project]
    ids = {each.object["config_id"] for each in found if each.object.get("config_id")}
    return sorted(records.of_ids(tx, CONFIG, ids).values(), key=lambda each: (each.object["name"], each.id))
