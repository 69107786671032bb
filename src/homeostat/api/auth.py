"""Who may ask: the access modes. Each says who the caller is; whether a caller may do something is decided elsewhere.

`none` — anybody on this machine; `basic` — users and bcrypt hashes in a file; `keystone` — tokens (see
`api.keystone`). Another mode is another class with the methods of `Access`.
"""

import base64
import binascii
import hashlib
import hmac
import ipaddress
import logging
import os
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

    def check_host(self, host: str) -> None:
        """Fails: ValueError when serving on this address would be unsafe."""

    def known(self, headers: Mapping[str, str]) -> Caller | None:
        """Who asks, where it can be told without waiting, which an event loop cannot; else None."""

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        """Who asks, by the headers of a request (lower-case names). May take its time.

        Fails: Rejected (HTTPUnauthorized); Transient when nobody can tell now.
        """


class NoAccess:
    """Everybody may do everything in any project: for this machine alone."""

    challenge = ""

    def check_host(self, host: str) -> None:
        if not _is_loopback(host):
            raise ValueError(
                f"without access control the API serves loopback addresses only, not {host}: "
                "listen on 127.0.0.1, or use access mode basic"
            )

    def known(self, headers: Mapping[str, str]) -> Caller:
        return Caller()

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        return Caller()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp = _stamp(path)
        self._accounts = read_accounts(path)
        self._secret = os.urandom(32)
        self._believed: TTLCache[bytes, bool] = TTLCache(REMEMBERED_MAX, REMEMBERED_S)
        self._decoy = bcrypt.hashpw(b"nobody", bcrypt.gensalt())

    def check_host(self, host: str) -> None:
        """Any address will do."""

    def known(self, headers: Mapping[str, str]) -> None:
        """A hash has to be computed, or a file to be looked at."""

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        given = _credentials(headers.get("authorization", ""))
        if given is None:
            raise Rejected("HTTPUnauthorized", "Authentication is needed: send user and password (HTTP basic).")
        user, password = given
        account = self._current().get(user)
        # An unknown user costs the same time as a wrong password, so that names cannot be found out.
        if not self._verified(password, account.hash if account else self._decoy) or account is None:
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


def read_accounts(path: Path) -> dict[str, Account]:
    """User -> account. Fails: OSError; ValueError naming the line that is wrong."""
    accounts = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        user, _, rest = line.strip().partition(":")
        hashed, _, rest = rest.partition(":")
        project, _, roles = rest.partition(":")
        if not user or not hashed.startswith(("$2a$", "$2b$", "$2y$")) or len(hashed) != 60:
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
