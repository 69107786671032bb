"""Acting for users who have gone home: their trust in the service is asked for with a stack, used, and given back.

Asking is an intent like any other (law 3): it is stored before Keystone hears of it, and what it has made without
anybody knowing is found and deleted.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from homeostat.clock import Entropy
from homeostat.clouds.identity.errors import Denied
from homeostat.model.errors import HomeostatError, Rejected, Transient
from homeostat.store.builtin import records, stored_trusts
from homeostat.store.builtin.stored_trusts import GOOD, StoredTrust
from homeostat.store.database import Database
from homeostat.store.stacks import stacks

if TYPE_CHECKING:  # it needs packages that are there for access `keystone` only
    from homeostat.clouds.identity.trusts import Trusts

LOG = logging.getLogger(__name__)
AGAIN_S = 60.0
"""Time between two tries to delete a trust."""
HOPELESS_S = 3600.0
"""The same where Keystone forbids it: its user has lost every role."""
TRUSTS_MAX = 100
TRIED_MAX = 5
"""Trusts of a project that are tried for a look at all of it."""
Accept = Callable[[Connection], None]
"""To be called in the transaction that stores what the trust was asked for."""


def nobodys(tx: Connection) -> None:
    """Of those who need no trust, or have given it before."""


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks for a stack. trust — that the token comes from, if any."""

    user_id: str
    user: str
    project: str
    roles: frozenset[str]
    token: str = field(repr=False)
    trust: str | None = None


class StackTrusts:
    """Also the credentials (`clouds.credentials`) of adapters. Safe to share between threads. roles — that are asked
    for, empty for all that the asker has."""

    def __init__(self, db: Database, trusts: "Trusts", entropy: Entropy, roles: frozenset[str] = frozenset()) -> None:
        self._db = db
        self._trusts = trusts
        self._entropy = entropy
        self._roles = roles
        self._given: dict[str, str] = {}

    # -- asking ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def entrusted(self, stack_id: str, asker: Requester) -> Iterator[Accept]:
        """Have the trust of who asks for a root stack, for as long as there is the stack; none where the stack goes by
        a good one of theirs already.

        Fails: Rejected (Forbidden) when they cannot give it; Transient when Keystone does not answer.
        """
        with self._db.read() as tx:
            there = stored_trusts.current(tx, stack_id)
        if there is not None and (there.state, there.user_id) == (GOOD, asker.user_id):
            yield nobodys
            return
        asked = self._intend(stack_id, asker)
        try:
            trust_id = self._ask(asked, asker)
            yield lambda tx: stored_trusts.accept(tx, asked, trust_id)
        except BaseException:
            with self._db.write() as tx:
                stored_trusts.give_up(tx, asked.id)
            raise

    def _intend(self, stack_id: str, asker: Requester) -> StoredTrust:
        end = self._trusts.end_of(int.from_bytes(self._entropy.read(8), "big"))
        asked = StoredTrust(
            self._entropy.stack_id(),
            stack_id,
            asker.project,
            asker.user_id,
            stored_trusts.ASKED,
            object={"end": end, "user": asker.user},
        )
        with self._db.write() as tx:
            asked.created_at = self._db.now_of(tx)
            asked.due_at = asked.created_at + stored_trusts.ASKING_S
            stored_trusts.add(tx, asked)
        return asked

    def _ask(self, asked: StoredTrust, asker: Requester) -> str:
        """A stack that was asked for with a trust in the service goes by the same one."""
        if asker.trust is not None and (self._goes_by(asker.trust) or self._trusts.is_ours(asker.trust)):
            return asker.trust
        roles = sorted(self._roles or asker.roles)
        try:
            return self._trusts.make(asker.user_id, asker.project, roles, asker.token, asked.object["end"])
        except Transient:
            raise
        except HomeostatError as error:
            message = (
                f"The service cannot act for {asker.user} when it is alone: {error}. Ask with a token of a password, "
                f"or of an application credential that is unrestricted; the roles that are needed: {', '.join(roles)}."
            )
            raise Rejected("Forbidden", message) from error

    def _goes_by(self, trust_id: str) -> bool:
        """Does a stack of this service? Then nobody has to be asked whose it is."""
        with self._db.read() as tx:
            return stored_trusts.is_good(tx, trust_id)

    # -- acting ------------------------------------------------------------------------------------------------------

    def token(self, project: str, of: str = "") -> str:
        with self._db.read() as tx:
            mine = self._of(tx, of) if of else None
            tried = [mine] if mine is not None else stored_trusts.of_project(tx, project, TRIED_MAX)
        for each in tried:
            if each.state != GOOD:
                continue
            try:
                token = self._trusts.token(each.trust_id)
            except Denied as error:
                self._lose(each, str(error))
                continue
            self._given[each.trust_id] = token
            return token
        raise Denied(_nobody(project, tried))

    def _of(self, tx: Connection, of: str) -> StoredTrust | None:
        """The one of the stack that a creation or a thing belongs to."""
        key = records.key_of(of)
        owners = list(records.owners(tx, [key]).values()) if key else records.owners_of(tx, [of])
        row = stacks.get(tx, owners[0].stack_id) if owners else None
        return stored_trusts.current(tx, row.root_id) if row is not None else None

    def _lose(self, lost: StoredTrust, reason: str) -> None:
        LOG.warning("stack %s: the trust of %s is gone: %s", lost.stack_id, lost.object.get("user"), reason)
        with self._db.write() as tx:
            stored_trusts.lose(tx, lost, reason)

    def refused(self, token: str) -> None:
        for trust_id in [each for each, given in self._given.items() if given == token]:
            self._trusts.refused(trust_id)

    # -- tidying up --------------------------------------------------------------------------------------------------

    def tidy(self) -> int:
        """Delete the trusts that nobody needs any more. Gives how many rows are done with."""
        with self._db.read() as tx:
            if not stored_trusts.any_due(tx, self._db.now_of(tx)):
                return 0
        with self._db.write() as tx:
            due = stored_trusts.take_due(tx, self._db.now_of(tx), AGAIN_S, TRUSTS_MAX)
        return sum(self._end(each) for each in due)

    def _end(self, each: StoredTrust) -> bool:
        """Gives whether it is done."""
        try:
            found = [each.trust_id] if each.trust_id else self._trusts.find(each.object["end"])
            with self._db.read() as tx:
                needed = stored_trusts.known(tx, found, but=each.id)
            for trust_id in set(found) - needed:
                self._trusts.delete(trust_id)
        except Denied as error:
            LOG.warning("a trust of %s cannot be deleted: %s", each.object.get("user"), error)
            with self._db.write() as tx:
                stored_trusts.put_off(tx, [each.id], self._db.now_of(tx) + HOPELESS_S)
            return False
        except HomeostatError as error:
            LOG.warning("a trust of %s is not deleted yet: %s", each.object.get("user"), error)
            return False
        with self._db.write() as tx:
            stored_trusts.remove(tx, each.id)
        return True


def _nobody(project: str, tried: list[StoredTrust]) -> str:
    told = "; ".join(f"{each.object.get('user')}: {each.object['reason']}" for each in tried if "reason" in each.object)
    reason = f" ({told})" if told else ""
    return (
        f"the service has nobody's trust any more to act in project {project}{reason}; whoever has a role there "
        "updates the stack, and it goes on"
    )
