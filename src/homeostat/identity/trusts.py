"""Acting for users after their tokens have expired, by Keystone trusts (ADR 0034).

A trust is created with its stack, used while the stack exists, and deleted afterwards. The creation is stored as an
intent before the request to Keystone, so a trust whose creation was never confirmed is found and deleted.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from homeostat.clock import Entropy
from homeostat.clouds.identity.errors import Denied
from homeostat.identity.descent import LEVELS_MAX, maker_of
from homeostat.model.errors import HomeostatError, Rejected, Transient
from homeostat.store.builtin import records, stored_trusts
from homeostat.store.builtin.stored_trusts import GOOD, StoredTrust
from homeostat.store.database import Database, Transaction
from homeostat.store.stacks import stacks

if TYPE_CHECKING:  # its packages are installed for access by Keystone only
    from homeostat.clouds.identity.trusts import Trusts

LOG = logging.getLogger(__name__)
AGAIN_S = 60.0
"""Time between two tries to delete a trust."""
HOPELESS_S = 3600.0
"""The same if Keystone forbids the deletion, since the user has lost every role."""
TRUSTS_MAX = 100
"""Trusts deleted per round."""
TRIED_MAX = 5
"""Trusts of a project tried for calls that concern no single stack."""
Accept = Callable[[Transaction], None]
"""Links the trust to its stack, in the transaction that stores the stack."""


def accept_nothing(tx: Transaction) -> None:
    """Do nothing, since the request needs no new trust."""


@dataclass(frozen=True, slots=True)
class Requester:
    """The user who requests a stack.

    Attributes:
        user_id: Id in Keystone.
        user: Name.
        project: Project of the token.
        roles: Names of the roles in the project.
        token: Token of the request.
        trust: Id of the trust behind the token, if any.
    """

    user_id: str
    user: str
    project: str
    roles: frozenset[str]
    token: str = field(repr=False)
    trust: str | None = None


class StackTrusts:
    """The trusts of stacks, as credentials (`clouds.credentials`) for adapters.

    Safe to share between threads.
    """

    def __init__(self, db: Database, trusts: "Trusts", entropy: Entropy, roles: frozenset[str] = frozenset()) -> None:
        """Store the parts.

        Args:
            entropy: Randomness for ids, and for the expiry times of trusts.
            roles: Roles of a trust; empty for all roles of the requester.
        """
        self._db = db
        self._trusts = trusts
        self._entropy = entropy
        self._roles = roles
        self._tokens: dict[str, str] = {}

    # -- getting trusts ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def entrusted(self, stack_id: str, requester: Requester) -> Iterator[Accept]:
        """Create a trust of the requester of a root stack, unless the stack has a valid trust of this user.

        If the block raises, the trust is deleted later.

        Yields:
            A function to link the trust to the stack, in the transaction that stores the stack.

        Raises:
            Rejected: Forbidden, if the user cannot create a trust.
            Transient: Keystone does not answer.
        """
        with self._db.read() as tx:
            current = stored_trusts.current(tx, stack_id)
        if current is not None and (current.state, current.user_id) == (GOOD, requester.user_id):
            yield accept_nothing
            return
        requested = self._intend(stack_id, requester)
        try:
            trust_id = self._create(requested, requester)
            yield lambda tx: stored_trusts.accept(tx, requested, trust_id)
        except BaseException:  # also a cancellation of the request
            with self._db.write() as tx:
                stored_trusts.discard(tx, requested.id)
            raise

    def _intend(self, stack_id: str, requester: Requester) -> StoredTrust:
        """Store the intent to create a trust, with a random expiry time by which the trust can be found again."""
        end = self._trusts.end_of(int.from_bytes(self._entropy.read(8), "big"))
        requested = StoredTrust(
            self._entropy.stack_id(),
            stack_id,
            requester.project,
            requester.user_id,
            stored_trusts.REQUESTED,
            object={"end": end, "user": requester.user},
        )
        with self._db.write() as tx:
            requested.created_at = tx.now()
            requested.due_at = requested.created_at + stored_trusts.REQUEST_S
            stored_trusts.add(tx, requested)
        return requested

    def _create(self, requested: StoredTrust, requester: Requester) -> str:
        """Return the id of a new trust; a request made with one of the service's trusts keeps using the latter."""
        if requester.trust is not None and (self._is_used(requester.trust) or self._trusts.is_ours(requester.trust)):
            return requester.trust
        roles = sorted(self._roles or requester.roles)
        try:
            return self._trusts.make(
                requester.user_id, requester.project, roles, requester.token, requested.object["end"]
            )
        except Transient:
            raise
        except HomeostatError as error:
            message = (
                f"The service could not act for {requester.user} later: {error}. Use a token of a password, "
                f"or of an unrestricted application credential; needed roles: {', '.join(roles)}."
            )
            raise Rejected("Forbidden", message) from error

    def _is_used(self, trust_id: str) -> bool:
        """Return whether a stack of this service uses this trust, which saves a request to Keystone."""
        with self._db.read() as tx:
            return stored_trusts.is_good(tx, trust_id)

    # -- using them ----------------------------------------------------------------------------------------------------

    def token(self, project: str, of: str = "") -> str:
        """Return a token for calls of a cloud.

        Args:
            project: Project of the call.
            of: Token of the creation, or handle of the thing, whose stack's trust is used. "" for calls that concern no
                single stack, which may use any trust of the project.

        Raises:
            Denied: No trust is valid.
        """
        with self._db.read() as tx:
            current_trust = self._of(tx, of) if of else None
            tried = [current_trust] if current_trust is not None else stored_trusts.of_project(tx, project, TRIED_MAX)
        for trust in tried:
            if trust.state != GOOD:
                continue
            try:
                token = self._trusts.token(trust.trust_id)
            except Denied as error:
                self._lose(trust, str(error))
                continue
            self._tokens[trust.trust_id] = token
            return token
        raise Denied(_no_trust(project, tried))

    def _of(self, tx: Transaction, of: str) -> StoredTrust | None:
        """Return the trust of the stack of a thing, by the token of its creation or by its handle."""
        key = records.key_of(of)
        owners = list(records.owners(tx, [key]).values()) if key else records.owners_of(tx, [of])
        owner, last = owners[0] if owners else None, None
        for _ in range(LEVELS_MAX):
            row = stacks.get(tx, owner.stack_id) if owner is not None else None
            root = stacks.get(tx, row.root_id) if row is not None else None
            if root is None:
                break
            current_trust = stored_trusts.current(tx, root.id)
            if current_trust is not None and current_trust.state == GOOD:
                return current_trust
            # The stack of a cluster may use the trust of the stack whose template has the cluster.
            last, owner = last or current_trust, maker_of(tx, root)
        return last

    def _lose(self, lost: StoredTrust, reason: str) -> None:
        """Store that a trust is no longer valid in Keystone."""
        LOG.warning("stack %s: the trust of %s is gone: %s", lost.stack_id, lost.object.get("user"), reason)
        with self._db.write() as tx:
            stored_trusts.mark_gone(tx, lost, reason)

    def refused(self, token: str) -> None:
        """Drop a token refused by a cloud: the next call gets a new token."""
        for trust_id in [trust_id for trust_id, used in self._tokens.items() if used == token]:
            self._trusts.refused(trust_id)

    # -- tidying up ----------------------------------------------------------------------------------------------------

    def tidy(self) -> int:
        """Delete unused trusts; return the number of finished rows."""
        with self._db.read() as tx:
            if not stored_trusts.any_due(tx, tx.now()):
                return 0
        with self._db.write() as tx:
            due = stored_trusts.take_due(tx, tx.now(), AGAIN_S, TRUSTS_MAX)
        return sum(self._end(trust) for trust in due)

    def _end(self, trust: StoredTrust) -> bool:
        """Delete the trust of a row; return whether the row is finished."""
        try:
            ids = [trust.trust_id] if trust.trust_id else self._trusts.find(trust.object["end"])
            # Several stacks may share a trust: it is deleted with the last stack.
            with self._db.read() as tx:
                needed = stored_trusts.known(tx, ids, but=trust.id)
            for trust_id in set(ids) - needed:
                self._trusts.delete(trust_id)
        except Denied as error:
            LOG.warning("a trust of %s cannot be deleted: %s", trust.object.get("user"), error)
            with self._db.write() as tx:
                stored_trusts.postpone(tx, [trust.id], tx.now() + HOPELESS_S)
            return False
        except HomeostatError as error:
            LOG.warning("a trust of %s is not deleted yet: %s", trust.object.get("user"), error)
            return False
        with self._db.write() as tx:
            stored_trusts.remove(tx, trust.id)
        return True


def _no_trust(project: str, tried: list[StoredTrust]) -> str:
    refusals = "; ".join(
        f"{trust.object.get('user')}: {trust.object['reason']}" for trust in tried if "reason" in trust.object
    )
    reason = f" ({refusals})" if refusals else ""
    return (
        f"the service has no valid trust to act in project {project}{reason}: let a user with a role there update "
        "the stack, then it goes on"
    )
