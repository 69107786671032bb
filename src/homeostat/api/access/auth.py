"""Who may ask: the access modes. Each says who the caller is; whether a caller may do something is decided elsewhere.

`none` — whose processes the kernel says they are; `basic` — users and bcrypt hashes in a file; `keystone` — tokens (see
`api.access.keystone`). Another mode is another class with the methods of `Access`.
"""

import base64
import binascii
import hashlib
import hmac
import ipaddress
import logging
import os
import re
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import bcrypt
from cachetools import TTLCache

from homeostat.model.errors import Rejected

LOG = logging.getLogger(__name__)
REMEMBERED_S = 60.0
"""How long a verified password is believed without computing its (slow) hash again."""
REMEMBERED_MAX = 10_000
COST = 12
"""Of a hash, where there is none to compare with."""
STACK_USER = "heat_stack_user"
"""Role of the users that the service makes for servers and handles."""
PEOPLE = frozenset({"admin", "member", "reader"})
"""Roles of which those users have none."""
IMPLIED: Mapping[str, Collection[str]] = {"admin": ("member", "reader"), "member": ("reader",)}


@dataclass(frozen=True, slots=True)
class Caller:
    """user — name of who asks, None when nobody is asked; project — the only one it may act in, but for an admin;
    user_id, domain — as the identity service tells, None without one; roles — in the project, or in the whole cloud
    where it is of_system; of_admin_project — nothing says that its project is none for admins; is_admin — of the whole
    cloud, as the policy says; token — that the caller has sent; trust — id of the trust that this comes from, if any;
    only_here — it has proved that it may make this one request."""

    user: str | None = None
    project: str | None = None
    user_id: str | None = None
    domain: str | None = None
    roles: frozenset[str] = frozenset()
    of_system: bool = False
    of_admin_project: bool = True
    is_admin: bool = False
    token: str | None = field(default=None, repr=False)
    trust: str | None = None
    only_here: bool = False

    @property
    def is_anybody(self) -> bool:
        """Nobody was asked who it is: it may do everything."""
        return self.project is None and self.user is None and self.user_id is None

    @property
    def is_stack_user(self) -> bool:
        """One that was made for a server or handle, and reaches what is meant for it alone."""
        return STACK_USER in self.roles and not self.roles & PEOPLE and not self.only_here

    def check_project(self, project: str) -> None:
        """Fails: Rejected (InvalidTenant) for a project of others, but for admins."""
        if self.project != project and not self.is_admin and not self.is_anybody:
            message = f"The project {project} is not yours; use {self.project} in the endpoint instead."
            raise Rejected("InvalidTenant", message)


class Access(Protocol):
    """One access mode."""

    challenge: str
    """Value of WWW-Authenticate in a 401."""

    @property
    def asks_for_peers(self) -> bool:
        """Does it have to be found out whose process each request comes from?"""

    def check_host(self, host: str) -> None:
        """Fails: ValueError when serving on this address would be unsafe."""

    def check_way(self, headers: Mapping[str, str], peer: int | None) -> None:
        """peer — user id of the process that has sent it, None when that cannot be told.

        Fails: Rejected (Forbidden) for a request that may have been sent without the will of whom it seems to be from.
        """

    def known(self, headers: Mapping[str, str]) -> Caller | None:
        """Who asks, where it can be told without waiting, which an event loop cannot; else None."""

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        """Who asks, by the headers of a request (lower-case names). May take its time.

        Fails: Rejected (HTTPUnauthorized); Transient when nobody can tell now.
        """


class NoAccess:
    """Everybody who gets here may do everything in any project: for this machine alone.

    users — ids of those whose processes get here, None for any local user.
    """

    challenge = ""

    def __init__(self, users: Collection[int] | None = None) -> None:
        self._users = users

    @property
    def asks_for_peers(self) -> bool:
        return self._users is not None

    def check_host(self, host: str) -> None:
        if not _is_loopback(host):
            raise ValueError(
                f"without access control the API serves loopback addresses only, not {host}: "
                "listen on 127.0.0.1, or use access mode basic"
            )

    def check_way(self, headers: Mapping[str, str], peer: int | None) -> None:
        host = headers.get("host", "")
        named = _AUTHORITY.match(host)
        if named is None or not _is_loopback(named[1] or named[2]):
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


_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::\d+)?\Z")
"""Address of version 6, or another address or name; and a port."""


def check_page(headers: Mapping[str, str]) -> None:
    """Where a browser may show who asks by itself, no page of others may have it ask.

    Fails: Rejected (Forbidden) for what a browser says to come from a page that is not this service's own.
    """
    site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
    host = headers.get("host", "").lower()
    own = origin is None or origin.lower() in (f"http://{host}", f"https://{host}")
    if site not in ("none", "same-origin") or not own:
        raise Rejected("Forbidden", "Web pages of others may not ask here (see the headers Origin and Sec-Fetch-Site).")


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_HASH = re.compile(r"\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}\Z")


@dataclass(frozen=True, slots=True)
class Account:
    """One line of the password file. hash — bcrypt's, in ASCII; roles — with those that they imply."""

    hash: bytes
    project: str
    roles: frozenset[str]


class BasicAccess:
    """HTTP basic authentication against a file of lines `user:bcrypt-hash[:project[:roles]]`, read again on changes.

    The project of a user is of the user's name unless the file names another; roles are separated by commas, and a user
    without any is a member. Fails: ValueError naming the line, when
    the file is wrong at the start; a file that becomes wrong later is not taken over (and that is logged).
    """

    challenge = 'Basic realm="homeostat", charset="UTF-8"'
    asks_for_peers = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp = _stamp(path)
        self._accounts = read_accounts(path)
        self._secret = os.urandom(32)
        self._believed: TTLCache[bytes, bool] = TTLCache(REMEMBERED_MAX, REMEMBERED_S)

    def check_host(self, host: str) -> None:
        """Any address will do."""

    def check_way(self, headers: Mapping[str, str], peer: int | None) -> None:
        """Browsers remember passwords, and send them with what any page has them ask."""
        check_page(headers)

    def known(self, headers: Mapping[str, str]) -> None:
        """A hash has to be computed, or a file to be looked at."""

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        given = _credentials(headers.get("authorization", ""))
        if given is None:
            raise Rejected("HTTPUnauthorized", "Authentication is needed: send user and password (HTTP basic).")
        user, password = given
        accounts = self._current()
        account = accounts.get(user)
        if account is None or not self._verified(password, account.hash):
            self._spend(password, None if account is None else _cost(account.hash), accounts)
            raise Rejected("HTTPUnauthorized", "The user is unknown or the password is wrong.")
        return Caller(user, account.project, roles=account.roles)

    def _current(self) -> Mapping[str, Account]:
        with self._lock:
            try:
                stamp = _stamp(self._path)
                if stamp != self._stamp:
                    self._stamp = stamp
                    self._accounts = read_accounts(self._path)
            except (OSError, ValueError) as error:
                LOG.error("the password file stays as it was: %s", error)
            return self._accounts

    def _spend(self, password: bytes, spent: int | None, accounts: Mapping[str, Account]) -> None:
        """What has failed takes as long for every name, known or not: as long as the most costly hash of the file.

        spent — cost of the hash that was computed, if any. A hash takes 2 ** cost, so one of that cost, and one of each
        above it but the largest, make up for the difference.
        """
        most = max((_cost(each.hash) for each in accounts.values()), default=COST)
        for cost in [most] if spent is None else range(spent, most):
            bcrypt.hashpw(password[:72], bcrypt.gensalt(cost))

    def _verified(self, password: bytes, hashed: bytes) -> bool:
        """Does the password fit? Right ones are remembered for a while, as digests that only this process can make."""
        digest = hmac.digest(self._secret, hashed + b"\0" + password, hashlib.sha256)
        with self._lock:
            if digest in self._believed:
                return True
        # bcrypt reads 72 bytes; longer passwords were cut when they were stored.
        fits = bcrypt.checkpw(password[:72], hashed)
        if fits:
            with self._lock:
                self._believed[digest] = True
        return fits


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _cost(hashed: bytes) -> int:
    """`$2b$12$…` has the cost 12."""
    return int(hashed[4:6])


def read_accounts(path: Path) -> dict[str, Account]:
    """User -> account. Fails: OSError; ValueError naming the line that is wrong."""
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
    """Roles of a list separated by commas (none: member), and those that they imply, as an identity service has it."""
    named = {each.strip() for each in roles.split(",") if each.strip()} or {"member"}
    return frozenset(named.union(*(IMPLIED.get(each, ()) for each in named)))


def _credentials(header: str) -> tuple[str, bytes] | None:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, UnicodeDecodeError):
        return None
