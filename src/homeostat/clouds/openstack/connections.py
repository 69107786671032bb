"""Connections to an OpenStack: one per project, with the login of `clouds.yaml` or the trusts of users."""

import datetime
import threading
from collections.abc import Callable
from typing import Any

import openstack
import requests
from cachetools import LRUCache
from keystoneauth1 import access, session
from keystoneauth1.exceptions import EndpointNotFound
from keystoneauth1.identity import base
from openstack.config import OpenStackConfig as Loader
from openstack.connection import Connection
from openstack.exceptions import ServiceDisabledException

from homeostat.clouds.credentials import Credentials
from homeostat.clouds.openstack.config import OpenStackConfig
from homeostat.model.errors import HomeostatError, Transient

API_VERSIONS: dict[str, Any] = {"reservation_api_version": "1"}
"""Versions of APIs, for services whose default version would be wrong."""
PROJECTS_MAX = 1000
"""Projects whose connections a process keeps."""
FOUND_S = 2.0
"""Seconds for which concurrent first users of a service wait for the discovery of its versions."""
CATALOGUE_S = 600
"""Seconds for which a catalogue and its token are used; `Credentials` knows when tokens expire."""


class StackTokens(base.BaseIdentityPlugin):
    """Login of keystoneauth with the tokens of an owner of stacks in a project.

    These tokens come without their catalogue, which Keystone is asked for.
    """

    def __init__(self, auth_url: str, project: str, credentials: Credentials) -> None:
        super().__init__(auth_url=auth_url)
        self._project = project
        self._credentials = credentials

    def get_auth_ref(self, session: session.Session) -> access.AccessInfoV3:
        """Return a token with its catalogue.

        Raises:
            Transient: Keystone does not answer, or no owner of stacks in the project trusts this service.
        """
        try:
            token = self._credentials.token(self._project)
        except Transient:
            raise
        except HomeostatError as error:
            raise Transient(f"no owner of a stack in project {self._project} lets this service act: {error}") from error
        url = f"{str(self.auth_url).rstrip('/')}/auth/catalog"
        answer = session.get(url, headers={"X-Auth-Token": token, "Accept": "application/json"}, authenticated=False)
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=CATALOGUE_S)
        known = {"catalog": answer.json()["catalog"], "expires_at": until.isoformat()}
        return access.AccessInfoV3({"token": {**known, "project": {"id": self._project}}}, auth_token=token)

    def get_cache_id_elements(self) -> dict[str, str | None]:
        return {"project": self._project}

    def invalidate(self) -> bool:
        """Drop the token, so that the next request gets a new one."""
        if self.auth_ref is not None:
            self._credentials.refused(str(self.auth_ref.auth_token))
        return bool(super().invalidate())


class Connections:
    """The connections of one process. Safe to share between threads."""

    def __init__(
        self,
        config: OpenStackConfig,
        credentials: Credentials | None = None,
        auth_url: str = "",
        tls: Any = None,
    ) -> None:
        """Keep the settings; no request is sent before the first use.

        Args:
            credentials: Tokens of the stacks' owners; None for the login in `clouds.yaml`.
            auth_url: URL of Keystone, with version, for `credentials`.
            tls: Session of keystoneauth whose `verify` and `cert` are used with `credentials`.
        """
        self._config = config
        self._credentials = credentials
        self._auth_url = auth_url
        self._tls = tls
        self._lock = threading.Lock()
        self._made: LRUCache[str, Connection] = LRUCache(PROJECTS_MAX)

    def of(self, project: str) -> Connection:
        """Return the connection of a project."""
        key = "" if self._credentials is None else project
        with self._lock:
            if key not in self._made:
                self._made[key] = self._connection(key)
            return self._made[key]

    def proxy(self, project: str, service: str) -> Callable[[], Any]:
        """Return a function that returns openstacksdk's client of a service.

        The function raises EndpointNotFound if the catalogue lacks the service.
        """
        finding = threading.Lock()

        def client() -> Any:
            # Threads wait for the first one to discover the service's versions, but not forever if that request hangs.
            alone = finding.acquire(timeout=FOUND_S)
            try:
                proxy = getattr(self.of(project), service.replace("-", "_"))
            finally:
                if alone:
                    finding.release()
            try:
                proxy.session  # noqa: B018 - for a service missing in the catalogue the first use raises
                return proxy
            except ServiceDisabledException as error:
                raise EndpointNotFound(str(error)) from error

        return client

    def _connection(self, project: str) -> Connection:
        if self._credentials is None:
            chosen: dict[str, Any] = {"region_name": self._config.region} if self._config.region else {}
            region = Loader(app_name="homeostat").get_one(
                cloud=self._config.cloud or None,
                interface=self._config.interface,
                api_timeout=self._config.request_s,
                **{**API_VERSIONS, **chosen},
            )
            region.get_session().session = self._http()
            return Connection(config=region)
        login = StackTokens(self._auth_url, project, self._credentials)
        return openstack.connection.Connection(
            session=session.Session(
                auth=login,
                session=self._http(),
                verify=getattr(self._tls, "verify", True),
                cert=getattr(self._tls, "cert", None),
                timeout=self._config.request_s,
            ),
            region_name=self._config.region or None,
            interface=self._config.interface,
            app_name="homeostat",
            **API_VERSIONS,
        )

    def _http(self) -> requests.Session:
        """Return an HTTP session with a pooled connection per thread."""
        http = requests.Session()
        for scheme in ("http://", "https://"):
            http.mount(scheme, requests.adapters.HTTPAdapter(pool_maxsize=self._config.connections, pool_block=False))
        return http

    def close(self) -> None:
        with self._lock:
            for connection in self._made.values():
                connection.close()
            self._made.clear()
