"""The service as a cloud of its own: software configs, deployments, wait conditions and other records.

It is joined to the cloud of each project, so that these resources converge like all others: an intent is stored before
a record is made, a record is found again by its token, and observers look at it (ADR 0029).
"""

import base64
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote, urlsplit

from sqlalchemy import Connection

from homeostat.clock import Entropy
from homeostat.clouds.port import Answer, Change, ChangeNotice, Creation, Operation
from homeostat.identity.stack_users import NEEDED, TRANSPORTS, StackUsers, needed
from homeostat.model.errors import HomeostatError, Terminal
from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Action
from homeostat.planner.lifecycle.adopt import ADOPT
from homeostat.resources import signals, signing, user_data
from homeostat.resources.families import configs, deployments
from homeostat.resources.families.access import DEPLOYED, KEY, USER, User
from homeostat.resources.families.configs import CONFIG
from homeostat.resources.families.deployments import COMPLETE, DEPLOYMENT, FAILED, IN_PROGRESS, Deploying
from homeostat.resources.families.scaling import POLICY_KIND
from homeostat.resources.families.wait_conditions import CONDITION, HANDLE
from homeostat.resources.signals import Transport
from homeostat.store.builtin import records, stack_users
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.database import Database
from homeostat.templates.weights import weight

CHUNK = 500
"""Records read from the database at once."""
LOAD_MAX = 256 * 1024
"""Weight (`templates.weights`) of the records encoded in one write transaction; a heavier one has one to itself."""
SECRET_BYTES = 24
"""Random bytes of a key."""
Fields = dict[str, Any]
Item = TypeVar("Item")


class WriteLoad:
    """Weight of what one write transaction has encoded. On SQLite every other writer waits meanwhile, so it is bounded.

    What is left over is done in another transaction.
    """

    def __init__(self) -> None:
        self._weight = 0

    @property
    def full(self) -> bool:
        return self._weight >= LOAD_MAX

    def put(self, written: Sequence[Record]) -> None:
        """Count records that are encoded in this transaction."""
        try:
            self._weight += weight([each.object for each in written], LOAD_MAX)
        except ValueError:
            self._weight = LOAD_MAX


@dataclass(frozen=True, slots=True)
class RecordTransaction:
    """One transaction on the records of a project.

    Attributes:
        db: The database.
        tx: The transaction itself.
        project: Project of the records.
        now: Time of the transaction, seconds since the epoch.
        url: Where servers reach the API, without its version.
        entropy: Randomness for ids and keys.
        users: Users of the identity service for servers; None where there can be none.
        load: What the transaction has encoded.
    """

    db: Database
    tx: Connection
    project: str
    now: float
    url: str
    entropy: Entropy
    users: StackUsers | None = None
    load: WriteLoad = field(default_factory=WriteLoad)

    def add(self, made: Sequence[Record]) -> None:
        """Store new records; one whose kind and token exist already is left out."""
        records.add(self.db, self.tx, made)
        self.load.put(made)

    def keep(self, changed: Record) -> None:
        """Store the new content of a record, which is locked."""
        records.save(self.tx, changed, self.now)
        self.load.put([changed])

    def id(self) -> str:
        """Return a new id."""
        return self.entropy.stack_id()

    def secret(self) -> Fields:
        """Return `{"key", "host"}`: a new key that signs the addresses of a record, and the host that they are for."""
        key = base64.urlsafe_b64encode(self.entropy.read(SECRET_BYTES)).decode()
        return {"key": key, "host": urlsplit(self.url).netloc}

    def record(self, kind: str, token: str, object: Fields, **options: Any) -> Record:
        """Return a new record, not stored yet; `options` are further fields of it."""
        return Record(
            options.pop("id", None) or self.id(), kind, self.project, token, object, created_at=self.now, **options
        )

    def observed(self, kind: str, ids: Sequence[str]) -> list[Observation]:
        return observed(self.tx, self.project, kind, ids, self.now)

    def signed(self, record_id: str, secret: Fields, verb: str, owner: Owner, part: str = "") -> str:
        """Return a signed address of a resource.

        Args:
            record_id: Record whose key signs the address.
            secret: Secret of that record.
            verb: HTTP method for which it is signed, a key of `VERBS`.
            owner: The resource.
            part: Access key form of a derived config: signals for an earlier one are recognised as late by it.
        """
        path = f"/v1/{VERBS[verb]}/{arn(owner)}"
        return signing.signed_url(self.url, path, verb, access_key(record_id), secret["key"], part)

    def collect_config(self, agent: Record, owner: Owner, transport: str, *, in_cloud: bool) -> Fields:
        """Return the settings of a server's agent (os-collect-config).

        Args:
            agent: Record with the key of the server.
            owner: Resource of the server.
            transport: Way in which the agent gets its configs.
            in_cloud: Whether the server is one of a cloud, which gets its settings at first boot.
        """
        secret = agent.secret or {}
        here = {
            "metadata_url": self.signed(agent.id, secret, "GET", owner),
            "api_url": f"{self.url}/v1/",
            "access_key": access_key(agent.id),
            "secret": secret["key"],
            "stack_name": owner.stack_name,
            "resource": owner.name,
        }
        if transport in TRANSPORTS:
            here |= self.login(agent.token) | {"stack_id": f"{owner.stack_name}/{owner.stack_id}"}
        return user_data.collect_config(transport, here, in_cloud=in_cloud)

    def login(self, token: str) -> dict[str, str]:
        """Return what a server needs to log in as the user of its resource, found by the resource's token.

        Raises:
            Terminal: There can be no users, or there is none for this resource.
        """
        if self.users is None:
            raise Terminal(NEEDED)
        return self.users.login(self.tx, token)

    def endpoint(self, owner: Owner, project: str = "") -> str:
        """Return the address that takes authenticated signals for a resource.

        `project` is the project of the users that signal, where that is not the stack's.
        """
        stack = (project or owner.project, "stacks", owner.stack_name, owner.stack_id)
        parts = (*stack, "resources", owner.name, "signal")
        return "/".join([f"{self.url}/v1", *(quote(part, safe="") for part in parts)])


VERBS = {"PUT": "waitcondition", "POST": "signal", "GET": "metadata"}
"""HTTP method of a signed address -> the beginning of its path."""


def arn(owner: Owner) -> str:
    """Return the ARN of a resource."""
    return f"{stack_arn(owner.project, owner.stack_name, owner.stack_id)}/resources/{owner.name}"


def stack_arn(project: str, name: str, stack_id: str) -> str:
    """Return the ARN of a stack."""
    return f"arn:openstack:heat::{project}:stacks/{name}/{stack_id}"


def access_key(record_id: str) -> str:
    """Return the access key of a record: its id without dashes."""
    return record_id.replace("-", "")


def id_of(access_key: str) -> str:
    """Return the id of the record that an access key belongs to; "" for a text that is no such key."""
    if len(access_key) != 32 or not access_key.isalnum():
        return ""
    places = (0, 8, 12, 16, 20, 32)
    return "-".join(access_key[start:end] for start, end in pairwise(places))


@dataclass(frozen=True, slots=True)
class AdoptingTransaction(RecordTransaction):
    """A transaction that gives the first new record its old id and key, so that addresses handed out before still fit.

    Attributes:
        old: `{"id", "key"}`, as far as they are known and not used yet.
    """

    old: dict[str, str] = field(default_factory=dict)

    def id(self) -> str:
        return self.old.pop("id", "") or RecordTransaction.id(self)

    def secret(self) -> Fields:
        key = self.old.pop("key", "")
        fresh = RecordTransaction.secret(self)
        return {**fresh, "key": key} if key else fresh


class RecordKind:
    """Handling of the records of one kind. The transaction that every method is given is called its desk.

    Attributes:
        kind: Kind of the records, in the words of the cloud port.
        needs_owner: Whether a record can only be made while its resource exists.
    """

    kind: ClassVar[str]
    needs_owner: ClassVar[bool] = True

    def make(self, desk: RecordTransaction, intent: Creation, owner: Owner) -> list[Record]:
        """Return the new record, followed by others that belong to it; the caller stores them.

        Raises:
            Terminal: It cannot be made as asked for.
        """
        return [desk.record(self.kind, intent.token, dict(intent.spec))]

    def restore(self, desk: RecordTransaction, intent: Creation, owner: Owner, told: Fields) -> list[Record]:
        """Return the records for something that another service kept before; by default made like new ones.

        Args:
            desk: The transaction, which gives the record its old id and key where they are known.
            intent: The creation.
            owner: The resource.
            told: `{id, status, metadata, data}` of the document, see `planner.lifecycle.adoption_data`.

        Raises:
            Terminal: It cannot be made as asked for.
        """
        return self.make(desk, intent, owner)

    def recall(self, desk: RecordTransaction, record: Record, told: Fields) -> None:
        """Give a restored record, now stored, the signals that it had received before."""

    def change(self, desk: RecordTransaction, record: Record, spec: Mapping[str, Any]) -> None:
        """Bring a record, which is locked, to a new spec.

        Raises:
            Terminal: It cannot be changed like that.
        """
        record.object = {**record.object, **spec}
        desk.keep(record)

    def operate(self, desk: RecordTransaction, record: Record, verb: str) -> None:
        """Carry out an operation on a record, which is locked.

        Raises:
            Terminal: There is no such operation, or it fails.
        """
        raise Terminal(f"A {self.kind} knows no operation {verb!r}")

    def end(self, desk: RecordTransaction, record: Record) -> bool:
        """Remove a record, which is locked; return whether it is gone, or else being removed."""
        records.remove(desk.tx, [record.id])
        if self.kind == USER or needed(record.object):
            stack_users.mark_departed(desk.tx, record.token)
        return True

    def show(self, tx: Connection, found: Sequence[Record]) -> Mapping[str, Fields]:
        """Return the objects of records by their ids, as observations show them."""
        return {each.id: {**each.object, "id": each.id} for each in found}


class Configs(RecordKind):
    """Software configs, including those that are assembled from others (`OS::Heat::MultipartMime`, …)."""

    kind = CONFIG
    needs_owner = False

    def make(self, desk: RecordTransaction, intent: Creation, owner: Owner) -> list[Record]:
        spec = dict(intent.spec)
        parts = spec.pop("parts", None)
        if parts is not None:
            named = {each["config"] for each in parts}
            stored = records.of_ids(desk.tx, CONFIG, named)
            contents = {id: each.object["config"] for id, each in stored.items() if each.project == desk.project}
            spec["config"] = configs.assembled(parts, contents)
        return [desk.record(self.kind, intent.token, spec)]


class Handles(RecordKind):
    """Handles of wait conditions: they take signals, by the address or login of their transport."""

    kind = HANDLE

    def make(self, desk: RecordTransaction, intent: Creation, owner: Owner) -> list[Record]:
        secret = desk.secret()
        made = desk.record(self.kind, intent.token, dict(intent.spec), secret=secret)
        transport = intent.spec["transport"]
        if transport == Transport.TOKEN:
            made.object |= {"token": f"{access_key(made.id)}.{secret['key']}", "endpoint": desk.endpoint(owner)}
        elif transport == Transport.HEAT:
            login = desk.login(intent.token)
            made.object["login"] = {"alarm_url": desk.endpoint(owner, login["project_id"]), **login}
        elif transport in SIGNED_BY:
            made.object["url"] = desk.signed(made.id, secret, SIGNED_BY[transport], owner)
        return [made]

    def recall(self, desk: RecordTransaction, record: Record, told: Fields) -> None:
        """Restore its signals: those in the document's data, or those that Heat shows as the handle's metadata."""
        kept = told["data"].get(SIGNALS) or signals.of_metadata(record.object["form"], told["metadata"])
        for each in kept:
            signal = {name: each.get(name) for name in ("id", "status", "reason", "data")}
            records.add_signal(desk.tx, record.id, records.Signal(signal, float(each.get("at") or desk.now)))


class Policies(RecordKind):
    """Scaling policies: so far only their addresses."""

    kind = POLICY_KIND

    def make(self, desk: RecordTransaction, intent: Creation, owner: Owner) -> list[Record]:
        secret = desk.secret()
        made = desk.record(self.kind, intent.token, dict(intent.spec), secret=secret)
        url = desk.signed(made.id, secret, SIGNED_BY[Transport.CFN], owner)
        made.object |= {"url": url, "endpoint": desk.endpoint(owner)}
        return [made]


SIGNED_BY = {Transport.CFN: "POST", Transport.TEMP_URL: "PUT"}
"""Transport -> HTTP method of its signed address."""


class Conditions(RecordKind):
    """Wait conditions. Their link is the handle whose signals they wait for."""

    kind = CONDITION

    def make(self, desk: RecordTransaction, intent: Creation, owner: Owner) -> list[Record]:
        handle = str(intent.spec["handle"])
        handle_id = id_of(signing.access_key_of(handle)) or handle
        if records.get(desk.tx, handle_id, HANDLE, desk.project) is None:
            raise Terminal(f"{handle} is no handle of this project: give the reference of a wait condition handle")
        return [desk.record(self.kind, intent.token, dict(intent.spec), link=handle_id)]

    def restore(self, desk: RecordTransaction, intent: Creation, owner: Owner, told: Fields) -> list[Record]:
        """Keep a condition that was met as met: no server will signal again."""
        made = self.make(desk, intent, owner)
        if told["status"] == COMPLETE:
            made[0].object["met"] = True
        return made

    def end(self, desk: RecordTransaction, record: Record) -> bool:
        """Remove a condition, and the signals of its handle unless another condition waits for them."""
        if len(records.linked(desk.tx, [record.link], CONDITION)) == 1:
            records.delete_signals(desk.tx, record.link)
        return super().end(desk, record)

    def show(self, tx: Connection, found: Sequence[Record]) -> Mapping[str, Fields]:
        told = records.signals_of(tx, {each.link for each in found})
        shown = {}
        for each in found:
            came = [{**signal.object, "at": signal.at} for signal in told.get(each.link, ())]
            met = {"met": True} if each.object.get("met") else {}
            shown[each.id] = {"id": each.id, "handle": each.link, "signals": came, **met}
        return shown


class Deployments(RecordKind):
    """Software deployments. Their link is the server.

    The object of a record is what the API shows, and `spec`, what was last asked for, and `server_known`, whether the
    server was a resource of a stack when the deployment was made.
    """

    kind = DEPLOYMENT

    def make(self, desk: RecordTransaction, intent: Creation, owner: Owner) -> list[Record]:
        spec = dict(intent.spec)
        server_known = bool(records.owners_of(desk.tx, [spec["server_id"]]))
        object = {"server_known": server_known, "output_values": {}, "config_id": None, "action": "CREATE"}
        made = desk.record(self.kind, intent.token, object, link=spec["server_id"], secret=desk.secret())
        return [made, *self._deploy(desk, made, spec, "CREATE", owner)]

    def restore(self, desk: RecordTransaction, intent: Creation, owner: Owner, told: Fields) -> list[Record]:
        """Keep a deployment that was applied as applied, with its outputs as far as they are known."""
        if told["status"] != COMPLETE:
            return self.make(desk, intent, owner)
        spec = dict(intent.spec)
        object = {"server_known": bool(records.owners_of(desk.tx, [spec["server_id"]])), "spec": spec}
        object |= {name: spec[name] for name in ("name", "server_id", "input_values")}
        kept = _kept(told).get("object") or {}
        object |= {"output_values": kept.get("output_values") or {}, "config_id": None}
        object |= {"action": kept.get("action") or "CREATE", "status": COMPLETE, "status_reason": "adopted"}
        return [desk.record(self.kind, intent.token, object, link=spec["server_id"], secret=desk.secret())]

    def change(self, desk: RecordTransaction, record: Record, spec: Mapping[str, Any]) -> None:
        """Deploy a new spec; the same spec is not deployed again, since a server must not apply it twice."""
        if record.object.get("spec") == spec:
            return
        owner = self._owner(desk, record)
        if owner is None:
            raise Terminal(f"the resource of deployment {record.id} is not there any more")
        self._redeploy(desk, record, dict(spec), "UPDATE", owner)

    def end(self, desk: RecordTransaction, record: Record) -> bool:
        """Remove a deployment; one with a config for DELETE is gone once the server has signalled its outputs."""
        owner = self._owner(desk, record)
        if owner is not None and not self._without_server(desk, record):
            if not _waits_to_go(record):
                self._redeploy(desk, record, record.object["spec"], "DELETE", owner)
            if _waits_to_go(record):
                return False
        end_deployment(desk.tx, record)
        return True

    def operate(self, desk: RecordTransaction, record: Record, verb: str) -> None:
        """Suspend or resume a deployment, by deploying its config for that, if it has one.

        An operation that is under way or done is not repeated; one that failed is.
        """
        action = verb.upper()
        owner = self._owner(desk, record)
        if action not in (Action.SUSPEND, Action.RESUME):
            super().operate(desk, record, verb)
        if record.object.get("action") == action and record.object.get("status") != FAILED:
            return
        if owner is not None and not self._without_server(desk, record):
            self._redeploy(desk, record, record.object["spec"], action, owner)
        # `_redeploy` has set the action where there is a config for it. Without one, the operation is done at once.
        if record.object.get("action") != action:
            record.object |= {"action": action, "status": COMPLETE}
            desk.keep(record)

    def _owner(self, desk: RecordTransaction, record: Record) -> Owner | None:
        key = records.key_of(record.token)
        return records.owners(desk.tx, [key]).get(key)

    def show(self, tx: Connection, found: Sequence[Record]) -> Mapping[str, Fields]:
        return {
            each.id: {name: value for name, value in each.object.items() if name != "spec"} | {"id": each.id}
            for each in found
        }

    def _without_server(self, desk: RecordTransaction, record: Record) -> bool:
        """Whether the server is gone, so that nothing can signal the outputs. Unknown servers count as there."""
        return bool(record.object.get("server_known")) and not records.owners_of(desk.tx, [record.link])

    def _redeploy(self, desk: RecordTransaction, record: Record, spec: Fields, action: str, owner: Owner) -> None:
        """Deploy for another action, and store that; the config derived before is removed."""
        before = _derived_of(record)
        made = self._deploy(desk, record, spec, action, owner)
        desk.add(made)
        desk.keep(record)
        if made:
            records.remove(desk.tx, before)

    def _deploy(self, desk: RecordTransaction, record: Record, spec: Fields, action: str, owner: Owner) -> list[Record]:
        """Change the record's object to this action; return the derived config to be stored, if there is one."""
        source = self._source(desk, spec, must_exist=action != "DELETE")
        record.object |= {"spec": spec, "name": spec["name"], "server_id": spec["server_id"]}
        record.object["input_values"] = spec["input_values"]
        if not deployments.applies(source, spec, action):
            record.object.setdefault("status", COMPLETE)
            record.object.setdefault("status_reason", "")
            return []
        derived_id = desk.id()
        verb = SIGNED_BY.get(spec["transport"], "")
        address = desk.signed(record.id, record.secret or {}, verb, owner, access_key(derived_id)) if verb else ""
        stack = f"{owner.stack_name}/{owner.stack_id}"
        login = desk.login(record.token) if spec["transport"] == Transport.HEAT else {}
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
        return [desk.record(CONFIG, derived_id, config, id=derived_id)]

    def _source(self, desk: RecordTransaction, spec: Fields, *, must_exist: bool) -> Mapping[str, Any]:
        if not spec["config"]:
            return {}
        found = records.get(desk.tx, spec["config"], CONFIG, desk.project)
        if found is None and must_exist:
            raise Terminal(f"The Software Config ({spec['config']}) could not be found: give the id of a config.")
        return found.object if found is not None else {}


class Users(RecordKind):
    """Users of type `AWS::IAM::User`."""

    kind = USER
    needs_owner = False


class AccessKeys(RecordKind):
    """Access keys of users. Their link is the user, where that is one of the same stack."""

    kind = KEY
    needs_owner = False

    def make(self, desk: RecordTransaction, intent: Creation, owner: Owner) -> list[Record]:
        handles = [each.handle for each in records.owners_in(desk.tx, owner.stack_id, User.name)]
        users = {each.object["name"]: each.id for each in records.of_ids(desk.tx, USER, handles).values()}
        link = users.get(intent.spec["user"], "")
        made = desk.record(self.kind, intent.token, dict(intent.spec), link=link, secret=desk.secret())
        made.object |= {"access_key": access_key(made.id), "secret_key": (made.secret or {})["key"]}
        return [made]


class DeployedServers(RecordKind):
    """Servers that exist already (`OS::Heat::DeployedServer`); each record is its own agent."""

    kind = DEPLOYED

    def make(self, desk: RecordTransaction, intent: Creation, owner: Owner) -> list[Record]:
        made = desk.record(self.kind, intent.token, dict(intent.spec), secret=desk.secret())
        made.object["collect"] = desk.collect_config(made, owner, made.object["transport"], in_cloud=False)
        return [made]

    def change(self, desk: RecordTransaction, record: Record, spec: Mapping[str, Any]) -> None:
        key = records.key_of(record.token)
        owner = records.owners(desk.tx, [key]).get(key)
        if owner is None:
            raise Terminal(f"the resource of server {record.id} is not there any more")
        collect = desk.collect_config(record, owner, spec["transport"], in_cloud=False)
        super().change(desk, record, {**spec, "collect": collect})

    def show(self, tx: Connection, found: Sequence[Record]) -> Mapping[str, Fields]:
        return {
            each.id: {
                "id": each.id,
                "name": each.object["name"],
                "os_collect_config": {"os-collect-config": each.object["collect"]},
            }
            for each in found
        }


RECORD, SIGNALS = "record", "signals"
"""Keys of a record's data in an exported document: the record itself, and the signals that it has received."""


def _kept(told: Fields) -> Fields:
    """Return `{object, secret, link}` of a record that another Homeostat has exported; {} where Heat has."""
    kept = told["data"].get(RECORD)
    return kept if isinstance(kept, dict) else {}


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


# -- the port ----------------------------------------------------------------------------------------------------------

ALL = (Configs(), Handles(), Conditions(), Deployments(), Users(), AccessKeys(), DeployedServers(), Policies())
KEEPERS: Mapping[str, RecordKind] = {each.kind: each for each in ALL}


class RecordCloud:
    """The records of one project, behind the port of a cloud (`clouds.port.Cloud`)."""

    name = "own"
    kinds = frozenset(KEEPERS)
    listing_lag_s = 0.0

    def __init__(self, own: "Records", db: Database, project: str) -> None:
        self._own = own
        self._db = db
        self._project = project

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        with self._db.read() as tx:
            desk = self._transaction(tx)
            return [look for chunk in _chunks(handles) for look in desk.observed(kind, chunk)]

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        self._give_keys(kind, tokens)
        with self._db.read() as tx:
            desk = self._transaction(tx)
            found = {token: each for chunk in _chunks(tokens) for token, each in _carrying(desk, kind, chunk)}
        return [found.get(token) or Observation(Presence.ABSENT, seen_at=desk.now) for token in tokens]

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        """Return the names that are ids of records in this project; None in place of others."""
        with self._db.read() as tx:
            found = {id: each for chunk in _chunks(names) for id, each in records.of_ids(tx, kind, chunk).items()}
        return [name if name in found and found[name].project == self._project else None for name in names]

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        self._own.ensure_users([intent.token for intent in intents if kind == USER or needed(intent.spec)])
        answers: list[Answer] = []
        while len(answers) < len(intents):
            answers += self._create(kind, intents[len(answers) :][:CHUNK])
        self._give_keys(kind, [intent.token for intent in intents])
        return answers

    def _give_keys(self, kind: str, tokens: Sequence[str]) -> None:
        """Store access keys in the identity service, too, before their creation is answered."""
        if kind == KEY and self._own.users is not None:
            self._own.users.give_keys(tokens)

    def _create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        """Create as many of these records as fit into one write transaction; return their answers."""
        keeper = KEEPERS[kind]
        refused: dict[str, HomeostatError] = {}
        made: list[Record] = []
        with self._db.write() as tx:
            desk = self._transaction(tx)
            tokens = [intent.token for intent in intents]
            there = records.of_tokens(tx, kind, tokens)
            owners = records.owners(tx, [records.key_of(token) for token in tokens])
            for number, intent in enumerate(intents):
                owner = owners.get(records.key_of(intent.token))
                if intent.token in there:
                    continue
                if desk.load.full:  # the rest is left to the next call
                    tokens = tokens[:number]
                    break
                try:
                    more = keeper.make(desk, intent, _owned(keeper, owner))
                except Terminal as error:
                    refused[intent.token] = error
                    continue
                made += more
                desk.load.put(more)
            records.add(self._db, tx, made)
            seen = dict(_carrying(desk, kind, tokens))
        return [refused[token] if token in refused else seen[token] for token in tokens]

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        keeper = KEEPERS[kind]
        self._ensure_users(kind, [one.handle for one in changes if needed(one.spec)])

        def change(desk: RecordTransaction, record: Record, one: Change) -> bool:
            keeper.change(desk, record, one.spec)
            return False

        return self._each(kind, [(one.handle, one) for one in changes], change)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        keeper = KEEPERS[kind]
        if kind == KEY and self._own.users is not None:
            with self._db.read() as tx:
                tokens = [each.token for each in records.of_ids(tx, KEY, handles).values()]
            self._own.users.take_keys(tokens)
        return self._each(
            kind, [(handle, None) for handle in handles], lambda desk, record, _: keeper.end(desk, record)
        )

    def _ensure_users(self, kind: str, handles: Sequence[str]) -> None:
        if handles:
            with self._db.read() as tx:
                tokens = [each.token for each in records.of_ids(tx, kind, handles).values()]
            self._own.ensure_users(tokens)

    def _each(
        self, kind: str, items: Sequence[tuple[str, Any]], act: Callable[[RecordTransaction, Record, Any], bool]
    ) -> list[Answer]:
        """Act on records, each locked, and return an answer for each.

        They are locked in the order of their handles, so that two batches do not wait for each other in a circle.

        Args:
            kind: Kind of the records.
            items: Handles, each with what `act` needs.
            act: Acts on a record; returns whether it is gone.
        """
        answers: dict[str, Answer] = {}
        waiting = deque(sorted(items, key=lambda each: each[0]))
        while waiting:
            self._act(kind, waiting, act, answers)
        return [answers[handle] for handle, _ in items]

    def _act(
        self,
        kind: str,
        waiting: deque[tuple[str, Any]],
        act: Callable[[RecordTransaction, Record, Any], bool],
        answers: dict[str, Answer],
    ) -> None:
        """Act on as many of the waiting records as fit into one write transaction."""
        with self._db.write() as tx:
            desk = self._transaction(tx)
            while waiting and not desk.load.full:
                handle, item = waiting.popleft()
                record = records.for_update(self._db, tx, handle)
                if record is None or record.kind != kind or record.project != self._project:
                    answers[handle] = Observation(Presence.ABSENT, handle, seen_at=desk.now)
                    continue
                try:
                    gone = act(desk, record, item)
                except Terminal as error:
                    answers[handle] = error
                    continue
                answers[handle] = (
                    Observation(Presence.ABSENT, handle, seen_at=desk.now) if gone else desk.observed(kind, [handle])[0]
                )

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        return [
            self._adopt(kind, each.arguments) if each.verb == ADOPT else self._operate(kind, each)
            for each in operations
        ]

    def _operate(self, kind: str, operation: Operation) -> Answer:
        keeper = KEEPERS[kind]

        def act(desk: RecordTransaction, record: Record, one: Operation) -> bool:
            keeper.operate(desk, record, one.verb)
            return False

        return self._each(kind, [(operation.handle, operation)], act)[0]

    def _adopt(self, kind: str, told: Mapping[str, Any]) -> Answer:
        """Adopt the record of that id, or make it anew from the document; idempotent by the token."""
        token = told["token"]
        with self._db.write() as tx:
            desk = self._transaction(tx)
            if token not in records.of_tokens(tx, kind, [token]):
                try:
                    self._take(desk, kind, dict(told))
                except Terminal as error:
                    return error
            return dict(_carrying(desk, kind, [token]))[token]

    def _take(self, desk: RecordTransaction, kind: str, told: Fields) -> None:
        """Adopt a record, or make it anew.

        Raises:
            Terminal: A resource has the record already, or it cannot be made.
        """
        id = str(told["id"] or "")
        there = records.for_update(self._db, desk.tx, id) if id else None
        if there is not None and (there.kind, there.project) == (kind, self._project):
            owners = records.owners(desk.tx, [records.key_of(there.token)])
            for other in owners.values():
                place = f"{id} is {other.name} of stack {other.stack_name}"
                raise Terminal(f"resource_id: {place} already: abandon that first, or take it out of the document")
            records.hand_over(desk.tx, id, told["token"])
            return
        keeper, kept = KEEPERS[kind], _kept(told)
        old = {"key": (kept.get("secret") or {}).get("key", "")}
        # The old id is kept only where it is free here, and where it could have been given by such a service.
        if kept and there is None and id_of(access_key(id)) == id:
            old["id"] = id
        same = {each.name: getattr(desk, each.name) for each in fields(desk)}
        owner = records.owners(desk.tx, [records.key_of(told["token"])]).get(records.key_of(told["token"]))
        intent = Creation(told["token"], told["spec"])
        made = keeper.restore(AdoptingTransaction(**same, old=old), intent, _owned(keeper, owner), told)
        desk.add(made)
        keeper.recall(desk, made[0], told)

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """Return no notices: a signal wakes the shards concerned in the transaction that stores it."""
        return iter(())

    def close(self) -> None:
        """Do nothing: the database is closed by its owner."""

    def _transaction(self, tx: Connection) -> RecordTransaction:
        return self._own.desk(tx, self._project)


def _chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def _owned(keeper: RecordKind, owner: Owner | None) -> Owner:
    """Return the resource of a new record, or an empty one where the kind needs none.

    Raises:
        Terminal: The resource is gone: its creation was given up.
    """
    if owner is None and keeper.needs_owner:
        raise Terminal("the resource that this was asked for is not there any more")
    return owner or Owner("", "", "", "", "", "", "", None, 0, "", "", "")


def observed(tx: Connection, project: str, kind: str, ids: Sequence[str], now: float) -> list[Observation]:
    """Return an observation of the record of each id, in order."""
    found = {id: each for id, each in records.of_ids(tx, kind, ids).items() if each.project == project}
    shown = KEEPERS[kind].show(tx, list(found.values()))
    return [
        Observation(Presence.PRESENT, id, shown[id], now)
        if id in shown
        else Observation(Presence.ABSENT, id, seen_at=now, reason="it is not kept any more")
        for id in ids
    ]


def _carrying(desk: RecordTransaction, kind: str, tokens: Sequence[str]) -> list[tuple[str, Observation]]:
    """Return the tokens that records carry, each with an observation of its record."""
    found = {
        token: each.id
        for token, each in records.of_tokens(desk.tx, kind, tokens).items()
        if each.project == desk.project
    }
    looks = desk.observed(kind, list(found.values()))
    return list(zip(found, looks, strict=True))


def deployed(tx: Connection, project: str, server_id: str) -> list[Record]:
    """Return the configs that a server has to apply, in the order of their names."""
    found = [each for each in records.linked(tx, [server_id], DEPLOYMENT) if each.project == project]
    ids = {each.object["config_id"] for each in found if each.object.get("config_id")}
    return sorted(records.of_ids(tx, CONFIG, ids).values(), key=lambda each: (each.object["name"], each.id))


class Records:
    """The records of all projects."""

    def __init__(self, db: Database, entropy: Entropy, url: str, users: StackUsers | None = None) -> None:
        """Remember where records are kept.

        Args:
            db: The database.
            entropy: Randomness for ids and keys.
            url: Where servers reach the API, without its version, like `http://10.0.0.1:8004`.
            users: Users of the identity service for servers; None where there can be none.
        """
        self._db = db
        self._entropy = entropy
        self.users = users
        self._url = url.rstrip("/")

    def of(self, project: str) -> RecordCloud:
        """Return the records of one project as a cloud."""
        return RecordCloud(self, self._db, project)

    def desk(self, tx: Connection, project: str) -> RecordTransaction:
        """Return a transaction on the records of one project."""
        return RecordTransaction(self._db, tx, project, self._db.now_of(tx), self._url, self._entropy, self.users)

    def ensure_users(self, tokens: Sequence[str]) -> None:
        """Make sure that the resources of these tokens have users, where there can be any.

        Raises:
            HomeostatError: As `StackUsers.ensure`.
        """
        if self.users is not None:
            self.users.ensure(tokens)
