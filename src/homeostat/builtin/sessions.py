"""Transactions on the records of a project: ids, keys, signed URLs, and a limit on the written data."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from homeostat.builtin.addresses import VERBS, access_key, arn
from homeostat.clock import Entropy
from homeostat.identity.stack_users import NEEDED, TRANSPORTS, StackUsers
from homeostat.model.errors import Terminal
from homeostat.resources import signing, user_data
from homeostat.store.builtin import records, stack_users
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.builtin.stack_users import QUEUE
from homeostat.store.database import Transaction
from homeostat.templates.weights import weight

Fields = dict[str, Any]

LOAD_MAX = 256 * 1024
"""Weight (`templates.weights`) of the records in a write transaction; a heavier record gets its own transaction."""
SECRET_BYTES = 24
"""Random bytes of a key."""


class WriteLoad:
    """Weight of the records encoded in a write transaction.

    It is limited, since on SQLite all other writers wait meanwhile; remaining records get another transaction.
    """

    def __init__(self) -> None:
        self._weight = 0

    @property
    def full(self) -> bool:
        return self._weight >= LOAD_MAX

    def put(self, written: Sequence[Record]) -> None:
        """Count records that are encoded in this transaction."""
        try:
            self._weight += weight([record.object for record in written], LOAD_MAX)
        except ValueError:
            self._weight = LOAD_MAX


@dataclass(frozen=True, slots=True)
class RecordSession:
    """One transaction on the records of a project.

    Attributes:
        tx: The transaction itself.
        project: Project of the records.
        now: Time of the transaction, seconds since the epoch.
        url: URL of the API for servers, without its version.
        entropy: Randomness for ids and keys.
        users: Keystone users for servers; None if the service cannot create users.
        health_interval_min: Shortest interval of health checks, in seconds.
        load: Weight of the records encoded so far.
    """

    tx: Transaction
    project: str
    now: float
    url: str
    entropy: Entropy
    users: StackUsers | None = None
    health_interval_min: int = 60
    load: WriteLoad = field(default_factory=WriteLoad)

    def add(self, new: Sequence[Record]) -> None:
        """Store new records; a record whose kind and token exist already is left out."""
        records.add(self.tx, new)
        self.load.put(new)

    def keep(self, changed: Record) -> None:
        """Store the new content of a record, which is locked."""
        records.save(self.tx, changed, self.now)
        self.load.put([changed])

    def id(self) -> str:
        """Return a new id."""
        return self.entropy.stack_id()

    def secret(self) -> Fields:
        """Return `{"key", "host"}`: a new key for signed URLs of a record, and the host in these URLs."""
        key = base64.urlsafe_b64encode(self.entropy.read(SECRET_BYTES)).decode()
        return {"key": key, "host": urlsplit(self.url).netloc}

    def record(self, kind: str, token: str, object: Fields, **options: Any) -> Record:
        """Return a new record, not stored yet; `options` are its further fields."""
        return Record(
            options.pop("id", None) or self.id(), kind, self.project, token, object, created_at=self.now, **options
        )

    def signed(self, record_id: str, secret: Fields, verb: str, owner: Owner, part: str = "") -> str:
        """Return a signed URL of a resource.

        Args:
            record_id: Record whose key signs the URL.
            secret: Secret of the record.
            verb: HTTP method of the URL, a key of `VERBS`.
            owner: The resource.
            part: Access key form of a derived config, by which late signals for a former config are recognised.
        """
        path = f"/v1/{VERBS[verb]}/{arn(owner)}"
        return signing.signed_url(self.url, path, verb, access_key(record_id), secret["key"], part)

    def collect_config(self, agent: Record, owner: Owner, transport: str, *, in_cloud: bool) -> Fields:
        """Return the settings of a server's agent (os-collect-config).

        Args:
            agent: Record with the key of the server.
            owner: Resource of the server.
            transport: Transport of configs to the agent.
            in_cloud: Whether the server belongs to a cloud, and gets its settings at first boot.
        """
        secret = agent.secret or {}
        settings = {
            "metadata_url": self.signed(agent.id, secret, "GET", owner),
            "api_url": f"{self.url}/v1/",
            "access_key": access_key(agent.id),
            "secret": secret["key"],
            "stack_name": owner.stack_name,
            "resource": owner.name,
        }
        if transport in TRANSPORTS:
            settings |= self.login(agent.token) | {"stack_id": f"{owner.stack_name}/{owner.stack_id}"}
        return user_data.collect_config(transport, settings, in_cloud=in_cloud)

    def login(self, token: str) -> dict[str, str]:
        """Return the login of the user of a server's resource, found by the resource's token.

        Raises:
            Terminal: The service cannot create users, or the resource has no user.
        """
        if self.users is None:
            raise Terminal(NEEDED)
        return self.users.login(self.tx, token)

    def queue_login(self, record: Record) -> dict[str, str]:
        """Return the login and the queue by which a server signals a record; from now on the queue is read often.

        Raises:
            Terminal: As for `login`.
        """
        login = self.login(record.token)
        queue = Record(self.entropy.stack_id(), QUEUE, login["project_id"], record.token, {}, link=record.id)
        queue.created_at = self.now
        self.add([queue])
        stack_users.read_soon(self.tx, [record.id])
        return {"queue_id": records.of_tokens(self.tx, QUEUE, [record.token])[record.token].id, **login}

    def endpoint(self, owner: Owner, project: str = "") -> str:
        """Return the URL for authenticated signals to a resource.

        `project` is the project of the signalling users, if different from the stack's.
        """
        stack = (project or owner.project, "stacks", owner.stack_name, owner.stack_id)
        parts = (*stack, "resources", owner.name, "signal")
        return "/".join([f"{self.url}/v1", *(quote(part, safe="") for part in parts)])


@dataclass(frozen=True, slots=True)
class AdoptingSession(RecordSession):
    """A transaction that gives the first new record its old id and key, so that existing signed URLs stay valid.

    Attributes:
        old: `{"id", "key"}`, as far as known and not used yet.
    """

    old: dict[str, str] = field(default_factory=dict)

    def id(self) -> str:
        return self.old.pop("id", "") or RecordSession.id(self)

    def secret(self) -> Fields:
        key = self.old.pop("key", "")
        fresh = RecordSession.secret(self)
        return {**fresh, "key": key} if key else fresh
