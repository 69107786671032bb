"""Access mode `keystone`: tokens, validated by keystonemiddleware as in every OpenStack service."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cachetools import TLRUCache
from keystonemiddleware import auth_token
from oslo_config import cfg

from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected, Transient

CACHE_MAX = 20_000
"""Cached tokens of one process."""
NO_PROJECT = ""
"""Project of a token without project scope: it matches no path."""
Known = tuple[Caller, float]


class KeystoneAccess:
    """Access by Keystone tokens.

    A valid token is trusted until it expires, but no longer than `token_cache_time` of the settings (default 300 s; -1
    disables the cache), even if it is revoked in the meantime.

    Args:
        path: Ini file with the section `keystone_authtoken`.
        now: Clock, in seconds since the epoch.

    Raises:
        ValueError: The file cannot be used.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        settings = cfg.ConfigOpts()
        try:
            settings([], project="homeostat", default_config_files=[str(path)], default_config_dirs=[])
            self._validate = auth_token.AuthProtocol(_take, {"oslo_config_config": settings})
            section = settings.keystone_authtoken
            if not section.memcached_servers:  # else the two caches add up
                self._validate = auth_token.AuthProtocol(
                    _take, {"oslo_config_config": settings, "token_cache_time": "-1"}
                )
        except cfg.Error as error:
            raise ValueError(f"{path}: {error}") from error
        self.challenge = f'Keystone uri="{section.www_authenticate_uri or section.auth_uri or section.auth_url}"'
        self._believed_s = float(section.token_cache_time)
        self._now = now
        self._lock = threading.Lock()
        self._cache: TLRUCache[str, Known] = TLRUCache(CACHE_MAX, lambda _token, known, _now: known[1], now)

    needs_peer = False

    def check_host(self, host: str) -> None:
        """Accept any address."""

    def check_way(self, headers: Mapping[str, str], peer: int | None) -> None:
        """Accept any request: no browser sends a token by itself."""

    def known(self, headers: Mapping[str, str]) -> Caller | None:
        """Return the caller of a token that was validated recently, else None. Never blocks."""
        if "x-service-token" in headers:
            return None
        with self._lock:
            known = self._cache.get(headers.get("x-auth-token", ""))
        return None if known is None else known[0]

    def caller(self, headers: Mapping[str, str], method: str = "GET", path: str = "/") -> Caller:
        """Validate the token.

        Raises:
            Rejected: HTTPUnauthorized.
            Transient: Keystone does not answer.
        """
        token = headers.get("x-auth-token", "")
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "SERVER_NAME": "api",
            "SERVER_PORT": "80",
            "wsgi.url_scheme": "http",
            "HTTP_X_AUTH_TOKEN": token,
        }
        if headers.get("x-service-token"):
            environ["HTTP_X_SERVICE_TOKEN"] = headers["x-service-token"]
        statuses: list[str] = []
        for _ in self._validate(environ, lambda status, *_: statuses.append(status)):
            pass
        if statuses[0].startswith("503"):
            raise Transient("Keystone does not identify the caller.")
        if not statuses[0].startswith("200"):
            raise Rejected("HTTPUnauthorized", "The request you have made requires authentication.")
        return self._believed(token, environ)

    def _believed(self, token: str, environ: Mapping[str, Any]) -> Caller:
        caller = _caller(token, environ["keystone.token_auth"].user)
        info = environ["keystone.token_info"]["token"]
        # Access rules allow single requests, and a service token changes the verdict, so neither may be cached for the
        # next request.
        limited = "access_rules" in info.get("application_credential", {})
        if self._believed_s > 0 and not limited and "HTTP_X_SERVICE_TOKEN" not in environ:
            expires_at = environ["keystone.token_auth"].user.expires.timestamp()
            with self._lock:
                self._cache[token] = caller, min(expires_at, self._now() + self._believed_s)
        return caller


def _caller(token: str, who: Any) -> Caller:
    roles = frozenset(map(str, who.role_names))
    return Caller(
        user=who.username,
        project=who.project_id or NO_PROJECT,
        user_id=who.user_id,
        domain=who.user_domain_id,
        roles=roles,
        of_system=who.system_scoped,
        of_admin_project=who.is_admin_project and bool(who.project_id),
        token=token,
        trust=who.trust_id,
    )


def _take(environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer 200: the WSGI application behind keystonemiddleware, which passes on requests with valid tokens only."""
    start_response("200 OK", [])
    return [b""]
