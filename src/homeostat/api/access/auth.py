"""Authentication: the access modes, which identify the caller. For authorization, see `enforcer`.

- `none`: no credentials; access is limited to local processes, by the user ids that the kernel reports (ADR 0041)
- `basic`: users and bcrypt hashes in a file
- `keystone`: tokens (see `api.access.keystone`)

Another mode is another class with the methods of `Access`.
"""

import base64
import binascii
import hashlib
import hmac
import logging
import os
import re
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import bcrypt
from cachetools import TTLCache

from homeostat.api.http.addresses import host_named, is_loopback
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected

LOG = logging.getLogger(__name__)
REMEMBERED_S = 60.0
"""Time for which a verified password is trusted without computing its (slow) hash again."""
REMEMBERED_MAX = 10_000
"""Verified passwords kept in memory."""
COST = 12
"""Cost of the dummy hash if the file has no accounts to take the cost from."""
IMPLIED: Mapping[str, Collection[str]] = {"admin": ("member", "reader"), "member": ("reader",)}
"""Roles that a role includes, as Keystone's default implied roles."""


class Access(Protocol):
    """One access mode."""

    challenge: str
    """Value of `WWW-Authenticate` in a 401; "" for none."""

    @property
    def needs_peer(self) -> bool:
        """Whether each request needs the user id of the process that sent it."""

    def check_host(self, host: str) -> None:
        """Raise ValueError if serving on this address would be unsafe."""

    def check_way(self, headers: Mapping[str, str], peer: int | None) -> None:
        """Check that a request was intended by its apparent sender.

        Args:
            peer: User id of the sending process; None if unknown.

        Raises:
            Rejected: Forbidden for a request that a web page, or another local user, may have caused.
        """

    def known(self, headers: Mapping[str, str]) -> Caller | None:
        """Return the caller if known without blocking, else None. Called on the event loop."""

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        """Authenticate the caller by the request's headers. May block.

        Args:
            headers: With lower-case names.

        Raises:
            Rejected: HTTPUnauthorized.
            Transient: The identity service does not answer.
        """


class NoAccess:
    """Access mode without authentication, for this machine only: every caller may do everything in any project.

    Args:
        users: User ids whose processes are let in; None for every local user.
    """

    challenge = ""

    def __init__(self, users: Collection[int] | None = None) -> None:
        self._users = users

    @property
    def needs_peer(self) -> bool:
        return self._users is not None

    def check_host(self, host: str) -> None:
        if not is_loopback(host):
            raise ValueError(
                f"without access control the API serves loopback addresses only, not {host}: "
                "listen on 127.0.0.1, or use access mode basic"
            )

    def check_way(self, headers: Mapping[str, str], peer: int | None) -> None:
        host = headers.get("host", "")
        # A foreign host name that resolves to 127.0.0.1 would let a web page reach the service as its own origin (DNS
        # rebinding).
        named = host_named(host)
        if named is None or not is_loopback(named):
            raise Rejected(
                "Forbidden",
                f"Without access control the service answers at addresses such as 127.0.0.1, not at {host!r}: "
                "use that in the endpoint, or another access mode.",
            )
        check_page(headers)
        if self._users is not None and peer not in self._users:
            who = "It cannot be told which user asks" if peer is None else f"The user with the id {peer} is another one"
            raise Rejected(
                "Forbidden",
                f"{who}, and without access control the service is for the user alone who runs it: it lets others in "
                "with --access basic, or, all users of this machine, with --all-local-users.",
            )

    def known(self, headers: Mapping[str, str]) -> Caller:
        return Caller()

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        return Caller()


def check_page(headers: Mapping[str, str]) -> None:
    """Refuse requests that a browser sends on behalf of a web page of another origin.

    For access modes in which a browser may authenticate its user without asking.

    Raises:
        Rejected: Forbidden, by the headers Origin and Sec-Fetch-Site.
    """
    site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
    host = headers.get("host", "").lower()
    own = origin is None or origin.lower() in (f"http://{host}", f"https://{host}")
    if site not in ("none", "same-origin") or not own:
        raise Rejected("Forbidden", "Web pages of others may not ask here (see the headers Origin and Sec-Fetch-Site).")


_HASH = re.compile(r"\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}\Z")


@dataclass(frozen=True, slots=True)
class Account:
    """One line of the password file.

    Attributes:
        hash: bcrypt hash, in ASCII.
        roles: With the roles that they imply.
    """

    hash: bytes
    project: str
    roles: frozenset[str]


class BasicAccess:
    """HTTP basic authentication against a file of lines `user:bcrypt-hash[:project[:roles]]`.

    Without a project in the file, the user's name is the project. Roles are separated by commas; a user without roles
    is a member. The file is read again when it changes. If it becomes invalid later, that is logged and the last valid
    content stays in effect.

    Raises:
        ValueError: The file is invalid at the start; names the line.
    """

    challenge = 'Basic realm="homeostat", charset="UTF-8"'
    needs_peer = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp = _stamp(path)
        self._accounts = read_accounts(path)
        self._secret = os.urandom(32)
        self._believed: TTLCache[bytes, bool] = TTLCache(REMEMBERED_MAX, REMEMBERED_S)

    def check_host(self, host: str) -> None:
        """Accept any address."""

    def check_way(self, headers: Mapping[str, str], peer: int | None) -> None:
        """Refuse requests caused by web pages: browsers remember passwords and send them with such requests."""
        check_page(headers)

    def known(self, headers: Mapping[str, str]) -> Caller | None:
        """Return the caller if the password was verified recently and the file has not changed since.

        So known callers do not wait for the hashes of wrong passwords.
        """
        credentials = _credentials(headers.get("authorization", ""))
        account = None if credentials is None else self._accounts.get(credentials[0])
        if credentials is None or account is None or self._digest(credentials[1], account.hash) not in self._believed:
            return None
        try:
            if _stamp(self._path) != self._stamp:
                return None
        except OSError:
            return None
        return Caller(credentials[0], account.project, roles=account.roles)

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        credentials = _credentials(headers.get("authorization", ""))
        if credentials is None:
            raise Rejected("HTTPUnauthorized", "Authentication is needed: send user and password (HTTP basic).")
        user, password = credentials
        accounts = self._current()
        account = accounts.get(user)
        # A failure must take the same time for unknown and known names, so that attackers cannot find out names.
        if account is None or not self._verified(password, account.hash):
            self._spend(password, None if account is None else _cost(account.hash), accounts)
            raise Rejected("HTTPUnauthorized", "The user is unknown or the password is wrong.")
        return Caller(user, account.project, roles=account.roles)

    def _current(self) -> Mapping[str, Account]:
        with self._lock:
            try:
                stamp = _stamp(self._path)
                if stamp != self._stamp:
                    # Stored before reading: an invalid file is reported once, not with every request.
                    self._stamp = stamp
                    self._accounts = read_accounts(self._path)
            except (OSError, ValueError) as error:
                LOG.error("the password file stays as it was: %s", error)
            return self._accounts

    def _spend(self, password: bytes, spent: int | None, accounts: Mapping[str, Account]) -> None:
        """Compute hashes so that a failure takes as long as the most costly hash of the file, for every name.

        Args:
            spent: Cost of the hash that was computed already; None for none. A hash takes 2 ** cost, so one hash of
                each cost from `spent` up to the largest, exclusive, makes up the difference.
        """
        most = max((_cost(account.hash) for account in accounts.values()), default=COST)
        for cost in [most] if spent is None else range(spent, most):
            bcrypt.hashpw(password[:72], bcrypt.gensalt(cost))

    def _digest(self, password: bytes, hashed: bytes) -> bytes:
        return hmac.digest(self._secret, hashed + b"\0" + password, hashlib.sha256)

    def _verified(self, password: bytes, hashed: bytes) -> bool:
        """Return whether the password matches.

        Matches are remembered for a while, as digests keyed with a secret of this process.
        """
        digest = self._digest(password, hashed)
        with self._lock:
            if digest in self._believed:
                return True
        # bcrypt uses only 72 bytes; longer passwords were truncated when their hash was made.
        fits = bcrypt.checkpw(password[:72], hashed)
        if fits:
            with self._lock:
                self._believed[digest] = True
        return fits


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _cost(hashed: bytes) -> int:
    """Return the cost of a bcrypt hash: 12 for `$2b$12$…`."""
    return int(hashed[4:6])


def read_accounts(path: Path) -> dict[str, Account]:
    """Read the password file.

    Returns:
        User -> account.

    Raises:
        OSError: The file cannot be read.
        ValueError: Names the invalid line.
    """
    accounts = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        user, _, rest = line.strip().partition(":")
        hashed, _, rest = rest.partition(":")
        project, _, roles = rest.partition(":")
        if not user or not _HASH.match(hashed):
            remedy = "each line is user:hash[:project[:roles]] with a bcrypt hash, as `htpasswd -B` makes it"
            raise ValueError(f"{path}, line {number}: {remedy}")
        accounts[user] = Account(hashed.encode(), project or user, with_implied(roles))
    return accounts


def with_implied(roles: str) -> frozenset[str]:
    """Parse roles separated by commas ("" means member), and add the roles that they imply, as Keystone does."""
    named = {role.strip() for role in roles.split(",") if role.strip()} or {"member"}
    return frozenset(named.union(*(IMPLIED.get(role, ()) for role in named)))


def _credentials(header: str) -> tuple[str, bytes] | None:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, UnicodeDecodeError):
        return None
