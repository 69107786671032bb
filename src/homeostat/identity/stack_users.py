"""Keystone users for resources whose servers log in.

A user is created before the thing that needs it, and deleted afterwards. Each step is recorded in the database first,
so a crash leaks no user.
"""

import base64
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from homeostat.clock import Entropy
from homeostat.model.errors import HomeostatError, Terminal
from homeostat.resources.families.access import KEY, USER
from homeostat.resources.signals import Transport
from homeostat.store.builtin import records, stack_users
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.builtin.stack_users import DEPARTED_PROJECT, DEPARTED_USER, STACK_USER, USER_PROJECT
from homeostat.store.database import Database, Transaction

if TYPE_CHECKING:  # its packages are installed for access by Keystone only
    from homeostat.clouds.identity.users import DomainUsers

LOG = logging.getLogger(__name__)
TRANSPORTS = (Transport.HEAT, Transport.ZAQAR, "POLL_SERVER_HEAT")
"""Transports of signals and configs for which a server has to log in."""
NEEDED = "this transport needs Keystone, to make users for servers (--access keystone, and a domain for them)"
GONE = "the user of this resource is not there any more"
PASSWORD_BYTES = 24
AGAIN_S = 30.0
"""Time until a failed deletion is retried."""
MANY = 100
"""Users, and projects, deleted per round."""


class StackUsers:
    """Keystone users for resources. Safe to share between threads."""

    def __init__(
        self, db: Database, users: "DomainUsers", entropy: Entropy, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = db
        self._users = users
        self._entropy = entropy
        self._monotonic = monotonic
        self._not_before = 0.0

    # -- making ------------------------------------------------------------------------------------------------------

    def ensure(self, tokens: Sequence[str]) -> None:
        """Create the missing users of resources, given by their tokens.

        Raises:
            Transient, Uncertain, Terminal: A user cannot be created, or not now.
        """
        if not tokens:
            return
        with self._db.read() as tx:
            stored = records.of_tokens(tx, STACK_USER, tokens)
            owners = records.owners(tx, [records.key_of(token) for token in tokens])
        for token in tokens:
            owner = owners.get(records.key_of(token))
            if owner is not None and not (token in stored and stored[token].link):
                self._make(token, owner)

    def _make(self, token: str, owner: Owner) -> None:
        """Create the user of a resource: store name and password, create the user in Keystone, store its id."""
        project = self._project(owner)
        with self._db.write() as tx:
            password = base64.urlsafe_b64encode(self._entropy.read(PASSWORD_BYTES)).decode()
            wanted = Record(
                self._entropy.stack_id(),
                STACK_USER,
                project,
                token,
                {"name": f"{owner.stack_name[:120]}-{owner.name[:80]}-{token}"},
                secret={"password": password},
                created_at=tx.now(),
            )
            stack_users.set_project(tx, owner.stack_id, project)
            if not stack_users.lock_owner(tx, token):  # another worker has deleted it meanwhile
                raise Terminal(GONE)
            records.add(tx, [wanted])
            # Read back: another worker, or an earlier try, may have stored another name and password before.
            record = records.of_tokens(tx, STACK_USER, [token])[token]
        secret = record.secret or {}
        record.link = self._users.user(record.object["name"], secret["password"], project)
        record.object["domain_id"] = self._users.domain_id
        with self._db.write() as tx:
            records.save(tx, record, tx.now())

    def _project(self, owner: Owner) -> str:
        """Return the id of the project for the users of a root stack's tree; create the project on the first call."""
        with self._db.read() as tx:
            stack = stack_users.stack_of(tx, owner.stack_id)
            record = records.of_tokens(tx, USER_PROJECT, [stack.root_id]).get(stack.root_id)
        if record is not None and "id" in record.object:
            return str(record.object["id"])
        with self._db.write() as tx:
            wanted = Record(self._entropy.stack_id(), USER_PROJECT, "", stack.root_id, {}, created_at=tx.now())
            records.add(tx, [wanted])
            record = records.of_tokens(tx, USER_PROJECT, [stack.root_id])[stack.root_id]
        record.object["id"] = self._users.project(stack.root_id, f"Users of the servers of stack {stack.root_id}")
        with self._db.write() as tx:
            stack_users.save_project(tx, record, stack.root_id, tx.now())
        return str(record.object["id"])

    def give_keys(self, tokens: Sequence[str]) -> None:
        """Create these access keys in Keystone, for users that exist there."""
        for record, key in self._keys(tokens):
            self._users.key(record.link, record.project, key.object["access_key"], key.object["secret_key"])

    def take_keys(self, tokens: Sequence[str]) -> None:
        """Delete these access keys in Keystone."""
        for _, key in self._keys(tokens):
            self._users.forget_key(key.object["access_key"])

    def _keys(self, tokens: Sequence[str]) -> list[tuple[Record, Record]]:
        """Return pairs of records, of the Keystone user and of the access key."""
        with self._db.read() as tx:
            keys = list(records.of_tokens(tx, KEY, tokens).values())
            users = records.of_ids(tx, USER, {key.link for key in keys})
            known = records.of_tokens(tx, STACK_USER, {user.token for user in users.values()})
        of = {id: known[user.token] for id, user in users.items() if user.token in known}
        return [(of[key.link], key) for key in keys if key.link in of]

    def login(self, tx: Transaction, token: str, kind: str = STACK_USER) -> dict[str, str]:
        """Return the credentials of a server, as the user of its resource.

        Raises:
            Terminal: The resource has no user (any more).
        """
        record = records.of_tokens(tx, kind, [token]).get(token)
        if record is None or not record.link:
            raise Terminal(GONE)
        return {
            "auth_url": self._users.public_url,
            "username": record.object["name"],
            "user_id": record.link,
            "password": (record.secret or {})["password"],
            "project_id": record.project,
            "domain_id": record.object["domain_id"],
            "region_name": self._users.region,
        }

    # -- tidying up --------------------------------------------------------------------------------------------------

    def tidy(self) -> int:
        """Delete the users and projects of deleted stacks; return their number."""
        if self._monotonic() < self._not_before:
            return 0
        return self._delete("user", DEPARTED_USER) + self._delete("project", DEPARTED_PROJECT)

    def _delete(self, noun: str, kind: str) -> int:
        """Delete departed users or projects: `noun` is "user" or "project", `kind` the kind of the records."""
        with self._db.read() as tx:
            departed = stack_users.departed(tx, kind, MANY)
        for count, record in enumerate(departed):
            try:
                # If a worker died before it stored the answer, the id is unknown: find the user by name.
                known = record.link if noun == "user" else record.object.get("id")
                id = known or self._users.find(noun, _name(record))
                if id:
                    self._users.delete(noun, id)
            except HomeostatError as error:
                LOG.warning("a %s of servers is not deleted yet: %s", noun, error)
                self._not_before = self._monotonic() + AGAIN_S
                return count
            with self._db.write() as tx:
                records.remove(tx, [record.id])
        return len(departed)


def _name(record: Record) -> str:
    return str(record.object.get("name") or record.token)


def needed(spec: Any) -> bool:
    """Return whether a thing with this spec needs a user."""
    return any(spec.get(name) in TRANSPORTS for name in ("transport", "software_config_transport"))
