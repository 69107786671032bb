"""Acting for users after their tokens have expired, by Keystone trusts (ADR 0034).

A trust is requested with the stack that needs it, used while the stack exists, and deleted after it. The request is an
intent like any other: it is stored before Keystone hears of it, and a trust whose creation was never confirmed is found
and deleted.
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

if TYPE_CHECKING:  # its packages are installed for access by Keystone only
    from homeostat.clouds.identity.trusts import Trusts

LOG = logging.getLogger(__name__)
AGAIN_S = 60.0
"""Time between two tries to delete a trust."""
HOPELESS_S = 3600.0
"""The same where Keystone forbids the deletion, since its user has lost every role."""
TRUSTS_MAX = 100
"""Trusts deleted in one round."""
TRIED_MAX = 5
"""Trusts of a project that are tried for calls that concern no single stack."""
Accept = Callable[[Connection], None]
"""To be called in the transaction that stores the stack for which the trust was requested."""


def nobodys(tx: Connection) -> None:
    """Accept nothing: for requests that need no trust, or have one already."""


@dataclass(frozen=True, slots=True)
class Requester:
    """The user who requests a stack.

    Attributes:
        user_id: Id in Keystone.
        user: Name.
        project: Project of the token.
        roles: Names of the roles in that project.
        token: Token of the request.
        trust: Id of the trust that the token comes from, if any.
    """

    user_id: str
    user: str
    project: str
    roles: frozenset[str]
    token: str = field(repr=False)
    trust: str | None = None


class StackTrusts:
    """The trusts of stacks, and with them the credentials (`clouds.credentials`) of adapters.

    Safe to share between threads.
    """

    def __init__(self, db: Database, trusts: "Trusts", entropy: Entropy, roles: frozenset[str] = frozenset()) -> None:
        """Remember where trusts are kept.

        Args:
            db: The database.
            trusts: Trusts in Keystone.
            entropy: Randomness for ids, and for the ends of trusts.
            roles: Roles that a trust delegates; empty for all roles of the user who requests the stack.
        """
        self._db = db
        self._trusts = trusts
        self._entropy = entropy
        self._roles = roles
        self._given: dict[str, str] = {}

    # -- asking ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def entrusted(self, stack_id: str, asker: Requester) -> Iterator[Accept]:
        """Get a trust of the user who requests a root stack, unless the stack has a good one of this user already.

        If the block raises, the trust is given up and deleted later.

        Yields:
            A function to be called in the transaction that stores the stack: it makes the trust the stack's own.

        Raises:
            Rejected: Forbidden, when the user cannot delegate.
            Transient: Keystone does not answer.
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
        except BaseException:  # also where the request is cancelled
            with self._db.write() as tx:
                stored_trusts.give_up(tx, asked.id)
            raise

    def _intend(self, stack_id: str, asker: Requester) -> StoredTrust:
        """Store that a trust will be requested, with the random end by which it can be found again."""
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
        """Return the id of the trust to use; a request that was itself made with a trust in the service keeps that."""
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
        """Whether a stack of this service uses this trust: then Keystone need not be asked whom it trusts."""
        with self._db.read() as tx:
            return stored_trusts.is_good(tx, trust_id)

    # -- acting ------------------------------------------------------------------------------------------------------

    def token(self, project: str, of: str = "") -> str:
        """Return a token for calls of a cloud.

        Args:
            project: Project in which the call is made.
            of: Token of the creation, or handle of the thing, that the call is about: the trust of its stack is used.
                "" for calls about no single stack, which may use any trust of the project.

        Raises:
            Denied: No trust is good any more.
        """
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
        """Return the trust of the stack that a creation (by its token) or a thing (by its handle) belongs to."""
        key = records.key_of(of)
        owners = list(records.owners(tx, [key]).values()) if key else records.owners_of(tx, [of])
        row = stacks.get(tx, owners[0].stack_id) if owners else None
        return stored_trusts.current(tx, row.root_id) if row is not None else None

    def _lose(self, lost: StoredTrust, reason: str) -> None:
        """Store that Keystone does not honour a trust any more."""
        LOG.warning("stack %s: the trust of %s is gone: %s", lost.stack_id, lost.object.get("user"), reason)
        with self._db.write() as tx:
            stored_trusts.lose(tx, lost, reason)

    def refused(self, token: str) -> None:
        """Note that a cloud has refused a token, so that the next call gets a new one."""
        for trust_id in [each for each, given in self._given.items() if given == token]:
            self._trusts.refused(trust_id)

    # -- tidying up --------------------------------------------------------------------------------------------------

    def tidy(self) -> int:
        """Delete trusts that are not needed any more; return how many rows are done with."""
        with self._db.read() as tx:
            if not stored_trusts.any_due(tx, self._db.now_of(tx)):
                return 0
        with self._db.write() as tx:
            due = stored_trusts.take_due(tx, self._db.now_of(tx), AGAIN_S, TRUSTS_MAX)
        return sum(self._end(each) for each in due)

    def _end(self, each: StoredTrust) -> bool:
        """Delete the trust of a row; return whether the row is done with."""
        try:
            found = [each.trust_id] if each.trust_id else self._trusts.find(each.object["end"])
            # Several stacks may use one trust: it is deleted with the last of them.
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
