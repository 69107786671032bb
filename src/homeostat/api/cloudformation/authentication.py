"""Who asks, by the signature of a request or by what the access mode knows (cfn-api.md section 2)."""

from dataclasses import dataclass
from typing import Protocol

from homeostat.api.access.auth import STACK_USER, Access, Caller, NoAccess
from homeostat.api.cloudformation.errors import Refused
from homeostat.api.cloudformation.signatures import Claim, SignedRequest, claim_of
from homeostat.builtin.access_keys import KeyHolder, holder_of
from homeostat.clock import Clock
from homeostat.store.database import Database

DEFAULT_PROJECT = "default"
"""Where nobody is asked, and no key names a project."""
SHOWN = ("x-auth-token", "x-auth-user")
"""Headers of requests that show who they are without a signature."""


class Ec2(Protocol):
    """Verifies requests that are signed with keys of an identity service."""

    def caller(self, sent: SignedRequest, access_key: str, signature: str) -> Caller:
        """Whose request it is. Fails: Refused; Transient when the identity service does not answer."""


@dataclass(frozen=True, slots=True)
class Authenticated:
    """Who asks. holder — of the key of ours that the request is signed with, None otherwise; by_link — a link in some
    page or mail, which the caller's browser has followed, may be all that there was to it."""

    caller: Caller
    project: str
    holder: KeyHolder | None = None
    by_link: bool = False


class Authenticator:
    """Keys of the service are verified here; those of an identity service, by it."""

    def __init__(self, db: Database, clock: Clock, access: Access, ec2: Ec2 | None = None) -> None:
        self._db = db
        self._clock = clock
        self._access = access
        self._ec2 = ec2

    def admit(self, sent: SignedRequest) -> Authenticated:
        """Fails: Refused, or Rejected (HTTPUnauthorized)."""
        claim = claim_of(sent)
        if claim is None:
            return self._unsigned(sent)
        with self._db.read() as tx:
            holder = holder_of(tx, claim.access_key)
        if holder is not None:
            self._check(claim, holder)
            caller = Caller(holder.name, holder.owner.project, roles=frozenset({STACK_USER}))
            return Authenticated(caller, holder.owner.project, holder)
        if isinstance(self._access, NoAccess):
            signed = sent.header("authorization").startswith("AWS")
            return Authenticated(Caller(), claim.access_key, by_link=sent.method == "GET" and not signed)
        if self._ec2 is None:
            message = "Only keys that templates have made are known. Others: send user and password (HTTP basic)."
            raise Refused("InvalidClientTokenId", message)
        claim.check_time(self._clock.now())
        return _in_project(self._ec2.caller(sent, claim.access_key, claim.signature))

    def _check(self, claim: Claim, holder: KeyHolder) -> None:
        """The signature first: who has not the secret learns nothing of times."""
        if not claim.fits(holder.secret):
            raise Refused("SignatureDoesNotMatch", "Look at the secret, and at the address that was signed.")
        claim.check_time(self._clock.now())

    def _unsigned(self, sent: SignedRequest) -> Authenticated:
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
