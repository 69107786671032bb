"""Software deployments, and the configs derived for them."""

from collections.abc import Mapping, Sequence
from typing import Any

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
from homeostat.store.database import Transaction


class Deployments(RecordKind):
    """Software deployments. Their link is the server.

    The object of a record has the fields in the API, `spec`: the last requested spec, and `server_known`: whether the
    server was a resource of a stack at the creation of the deployment.
    """

    kind = DEPLOYMENT

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        spec = dict(intent.spec)
        server_known = bool(records.owners_of(session.tx, [spec["server_id"]]))
        object = {"server_known": server_known, "output_values": {}, "config_id": None, "action": "CREATE"}
        new = session.record(self.kind, intent.token, object, link=spec["server_id"], secret=session.secret())
        return [new, *self._deploy(session, new, spec, "CREATE", owner)]

    def restore(self, session: RecordSession, intent: Creation, owner: Owner, document: Fields) -> list[Record]:
        """Restore a completed deployment as completed, with its known outputs."""
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
        """Remove a deployment; with a config for DELETE, after the server has signalled the outputs of the config."""
        owner = self._owner(session, record)
        # Not the current deployment of its resource: remove it at once. Nothing would end the wait for a silent server,
        # and the server's undo would affect the replacement.
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
        """Suspend or resume a deployment, by deploying its config for this action, if any.

        An operation in progress or done is not repeated, a failed operation is.
        """
        action = verb.upper()
        owner = self._owner(session, record)
        if action not in (Action.SUSPEND, Action.RESUME):
            super().operate(session, record, verb)
        if record.object.get("action") == action and record.object.get("status") != FAILED:
            return
        if owner is not None and not self._without_server(session, record):
            self._redeploy(session, record, record.object["spec"], action, owner)
        # `_redeploy` sets the action if there is a config for it. Without a config, the operation is done at once.
        if record.object.get("action") != action:
            record.object |= {"action": action, "status": COMPLETE}
            session.keep(record)

    def _owner(self, session: RecordSession, record: Record) -> Owner | None:
        key = records.key_of(record.token)
        return records.owners(session.tx, [key]).get(key)

    def show(self, tx: Transaction, stored: Sequence[Record]) -> Mapping[str, Fields]:
        return {
            record.id: {name: value for name, value in record.object.items() if name != "spec"} | {"id": record.id}
            for record in stored
        }

    def _without_server(self, session: RecordSession, record: Record) -> bool:
        """Whether the server is gone, so that nothing can signal the outputs; unknown servers count as existing."""
        return bool(record.object.get("server_known")) and not records.owners_of(session.tx, [record.link])

    def _redeploy(self, session: RecordSession, record: Record, spec: Fields, action: str, owner: Owner) -> None:
        """Deploy for another action, store the record, and remove the config derived before."""
        before = _derived_of(record)
        new = self._deploy(session, record, spec, action, owner)
        session.add(new)
        session.keep(record)
        if new:
            records.remove(session.tx, before)

    def _deploy(self, session: RecordSession, record: Record, spec: Fields, action: str, owner: Owner) -> list[Record]:
        """Change the record's object to this action; return the derived config to store, if any."""
        source = self._source(session, spec, must_exist=action != "DELETE")
        record.object |= {"spec": spec, "name": spec["name"], "server_id": spec["server_id"]}
        record.object["declared"] = [output["name"] for output in source.get("outputs") or ()]
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
        deploying = Deploying(action, spec["server_id"], stack, owner.name, spec["transport"], address, verb, login)
        config = deployments.derived(source, spec, deploying)
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
        config = records.get(session.tx, spec["config"], CONFIG, session.project)
        if config is None and must_exist:
            raise Terminal(f"The Software Config ({spec['config']}) could not be found: give the id of a config.")
        return config.object if config is not None else {}


def _login(session: RecordSession, record: Record, transport: str) -> dict[str, str]:
    """Return the login by which the server signals; {} for transports without a login."""
    if transport == Transport.ZAQAR:
        return session.queue_login(record)
    return session.login(record.token) if transport == Transport.HEAT else {}


def _derived_of(record: Record) -> list[str]:
    """Return the id of the config derived for a deployment, if any."""
    return [record.object["config_id"]] if record.object.get("config_id") else []


def _waits_to_go(record: Record) -> bool:
    return record.object.get("action") == "DELETE" and record.object["status"] == IN_PROGRESS


def end_deployment(tx: Transaction, record: Record) -> None:
    """Remove a deployment with its derived config."""
    records.remove(tx, [record.id, *_derived_of(record)])
    if needed(record.object.get("spec") or {}):
        stack_users.mark_departed(tx, record.token)


def deployed(tx: Transaction, project: str, server_id: str) -> list[Record]:
    """Return the configs for a server, in the order of their names."""
    deployments_of_server = [
        record for record in records.linked(tx, [server_id], DEPLOYMENT) if record.project == project
    ]
    ids = {record.object["config_id"] for record in deployments_of_server if record.object.get("config_id")}
    return sorted(records.of_ids(tx, CONFIG, ids).values(), key=lambda record: (record.object["name"], record.id))
