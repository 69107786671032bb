"""Authentication of callers: by the signature of a request, or by the access mode."""

from dataclasses import dataclass
from typing import Protocol

from homeostat.api.access.auth import Access, NoAccess
from homeostat.api.cloudformation.errors import Refused
from homeostat.api.cloudformation.signatures import Claim, SignedRequest, claim_of
from homeostat.builtin.access_keys import KeyHolder, holder_of
from homeostat.clock import Clock
from homeostat.model.caller import STACK_USER, Caller
from homeostat.store.database import Database

DEFAULT_PROJECT = "default"
"""Project in access mode `none` if neither credentials nor a key name a project."""
SHOWN = ("x-auth-token", "x-auth-user")
"""Headers that carry credentials without a signature."""


class Ec2(Protocol):
    """Verifies requests that are signed with keys of an identity service."""

    def caller(self, sent: SignedRequest, access_key: str, signature: str) -> Caller:
        """Verify a request and return its caller.

        Raises:
            Refused: The key or the signature is not valid.
            Transient: The identity service does not answer.
        """


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The caller of a request.

    Attributes:
        holder: Holder of the key of this service that signed the request; None otherwise.
        by_link: The request may come from a link in the caller's browser, so it may not change anything.
    """

    caller: Caller
    project: str
    holder: KeyHolder | None = None
    by_link: bool = False


class Authenticator:
    """Authenticates requests. Keys of this service are verified here, keys of users by the identity service."""

    def __init__(self, db: Database, clock: Clock, access: Access, ec2: Ec2 | None = None) -> None:
        self._db = db
        self._clock = clock
        self._access = access
        self._ec2 = ec2

    def admit(self, sent: SignedRequest) -> Authenticated:
        """Authenticate a request. Raise Refused, or Rejected (HTTPUnauthorized)."""
        claim = claim_of(sent)
        if claim is None:
            return self._unsigned(sent)
        with self._db.read() as tx:
            holder = holder_of(tx, claim.access_key)
        if holder is not None:
            self._check(claim, holder)
            caller = Caller(holder.name, holder.owner.project, roles=frozenset({STACK_USER}))
            return Authenticated(caller, holder.owner.project, holder)
        # Without access control there is nothing to verify: clients must sign, so the access key names the project.
        if isinstance(self._access, NoAccess):
            signed = sent.header("authorization").startswith("AWS")
            return Authenticated(Caller(), claim.access_key, by_link=sent.method == "GET" and not signed)
        if self._ec2 is None:
            message = "Only keys that templates have made are known. Others: send user and password (HTTP basic)."
            raise Refused("InvalidClientTokenId", message)
        claim.check_time(self._clock.now())
        return _in_project(self._ec2.caller(sent, claim.access_key, claim.signature))

    def _check(self, claim: Claim, holder: KeyHolder) -> None:
        """Verify signature and time, in this order: a caller without the secret learns nothing about times."""
        if not claim.fits(holder.secret):
            raise Refused("SignatureDoesNotMatch", "Look at the secret, and at the address that was signed.")
        claim.check_time(self._clock.now())

    def _unsigned(self, sent: SignedRequest) -> Authenticated:
        # Of repeated headers the first one counts.
        headers = dict(reversed(sent.headers))
        known = isinstance(self._access, NoAccess) or headers.get("authorization", "").lower().startswith("basic ")
        if not known and not any(name in headers for name in SHOWN):
            raise Refused("IncompleteSignature", "Sign the request, or send a token or password.")
        by_link = sent.method == "GET" and "x-auth-token" not in headers
        return _in_project(self._access.caller(headers), by_link=by_link)


def _in_project(caller: Caller, *, by_link: bool = False) -> Authenticated:
    if caller.is_anybody:
        return Authenticated(caller, DEFAULT_PROJECT, by_link=by_link)
    if not caller.project:
        raise Refused("AccessDenied", "The token is for no project.")
    return Authenticated(caller, caller.project, by_link=by_link)
