"""Client of Keystone: as the service, as the administrator of its domain, or on behalf of a user."""

from collections.abc import Callable, Mapping
from typing import Any

from keystoneauth1 import adapter, exceptions, plugin
from keystoneauth1.identity import v3

from homeostat.clouds.identity.config import IdentityConfig
from homeostat.clouds.identity.errors import AlreadyExists, Denied, Missing, Unauthenticated
from homeostat.model.errors import Terminal, Transient, Uncertain

Wire = dict[str, Any]
TIME = (
    exceptions.ConnectFailure,
    exceptions.DiscoveryFailure,
    exceptions.RetriableConnectionFailure,
    exceptions.HttpServerError,
    exceptions.TooManyRequests,
)
"""Errors that may pass without intervention."""


AUTH_URL: Any = plugin.AUTH_INTERFACE
"""Interface that selects the URL of the login instead of an endpoint of the catalogue."""


class Keystone:
    """Client with the service's logins. Safe to share between threads; no request is sent before the first use."""

    def __init__(self, config: IdentityConfig) -> None:
        self.config = config
        self.service = self._as(config.service)
        self.trustee = self._as(config.trustee)
        self.domain = self._as(self._domain_login()) if config.has_users else None

    def _as(self, login: Any) -> adapter.Adapter:
        return adapter.Adapter(
            self.config.connection,
            auth=login,
            service_type="identity",
            interface=AUTH_URL,
            min_version="3",
            max_version="3.latest",
        )

    def _domain_login(self) -> Any:
        where = {"user_domain_name": self.config.domain_name, "domain_name": self.config.domain_name}
        if self.config.domain_id:
            where = {"user_domain_id": self.config.domain_id, "domain_id": self.config.domain_id}
        login: Any = v3.Password
        who = {"username": self.config.domain_admin, "password": self.config.domain_password}
        return login(auth_url=self.config.auth_url, **who, **where)

    def request(self, way: adapter.Adapter, method: str, path: str, **more: Any) -> Wire:
        """Send a request and return the body of the response.

        Args:
            way: `service`, `trustee`, `domain`, or a client from `trusted`.
            method: HTTP method.
            path: Path without the version.
            more: Further arguments of the request.

        Raises:
            Missing: The object does not exist.
            AlreadyExists: The object exists already.
            Denied: The login has no right to do this.
            Transient: Keystone does not answer.
            Uncertain: The request may have been carried out.
            Terminal: Keystone refuses the request.
        """
        answer = self.call(
            lambda: way.request(f"/{path}", method, raise_exc=True, **more), looks=method in ("GET", "HEAD")
        )
        return dict(answer.json()) if answer.content else {}

    def request_as(self, token: str, method: str, path: str, **more: Any) -> Wire:
        """Send a request with the token of a user, as `request` does with a login.

        Raises:
            Denied: The user has no right to do this, or the token is no longer valid.
        """
        headers = {"X-Auth-Token": token}
        try:
            return self.request(self.service, method, path, authenticated=False, headers=headers, **more)
        except Unauthenticated as error:
            raise Denied("the token is good no more: ask for a new one") from error

    def trusted(self, trust_id: str) -> adapter.Adapter:
        """Return a client that acts on behalf of the user who gave this trust."""
        return self._as(self.config.trusting(trust_id))

    def call(self, call: Callable[[], Any], *, looks: bool) -> Any:
        """Return the result of a call, with errors of keystoneauth converted to errors of this package.

        With `looks` the call changes nothing, so a missing answer is Transient and not Uncertain.
        """
        try:
            return call()
        except exceptions.NotFound as error:
            raise Missing(_message(error)) from error
        except exceptions.Conflict as error:
            raise AlreadyExists(_message(error)) from error
        except exceptions.Unauthorized as error:
            login = "look at the logins in the file of --keystone-config"
            raise Unauthenticated(f"Keystone does not let the service in, {login}: {_message(error)}") from error
        except exceptions.Forbidden as error:
            raise Denied(f"Keystone does not allow it: {_message(error)}") from error
        except exceptions.RequestTimeout as error:
            message = f"Keystone gave no answer in time: {error}"
            raise (Transient(message) if looks else Uncertain(message)) from error
        except TIME as error:
            raise Transient(f"Keystone does not answer at {self.config.auth_url}: {_message(error)}") from error
        except exceptions.ClientException as error:
            raise Terminal(f"Keystone refuses it: {_message(error)}") from error

    def check(self) -> None:
        """Check that Keystone accepts the login of the service.

        Raises:
            Transient: Keystone refuses the login, or does not answer.
        """
        self.token(self.service)

    def token(self, way: adapter.Adapter) -> str:
        """Return a token that is valid for a while.

        Raises:
            Transient: Keystone does not answer or does not accept the login.
            Denied: Keystone does not allow the login.
        """
        return str(self.call(way.get_token, looks=True))

    def user_id(self, way: adapter.Adapter) -> str:
        """Return the id of the user of a login.

        Raises:
            Transient: Keystone does not answer or does not accept the login.
            Denied: Keystone does not allow the login.
        """
        return str(self.call(way.get_user_id, looks=True))


def _message(error: BaseException) -> str:
    """Return the text of an error without the URL of the request, which may contain names of users."""
    details = getattr(error, "details", None)
    return str(details or getattr(error, "message", None) or error)


def named(lists: Mapping[str, Any], kind: str, name: str) -> Wire | None:
    """Return the entry with this name of the list `kind`; None if absent."""
    return next((dict(entry) for entry in lists[kind] if entry["name"] == name), None)
