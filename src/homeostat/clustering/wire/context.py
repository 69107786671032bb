"""The context of route handlers of the Clustering API: the caller, the project, the microversion."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request

from homeostat.api.context import Service, heavy_place
from homeostat.api.http import addresses
from homeostat.api.http.fair_places import sharers_of
from homeostat.api.http.heavy_requests import ClientWatch
from homeostat.api.http.inputs import SignalBody
from homeostat.api.http.responses import Json
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.service.services import Clustering
from homeostat.clustering.wire import bodies
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.request import CheckTypes
from homeostat.store.database import Database

PREFIX = "/clustering"
"""Path of the API below the address of the service."""
HEADER = "openstack-api-version"
SHOWN_HEADER = "OpenStack-API-Version"
Version = tuple[int, int]
LEAST: Version = (1, 0)
MOST: Version = (1, 14)
WITH_FORCE: Version = (1, 8)
_NAMED = re.compile(r"(?i)^clustering\s+(latest|[1-9]\d*\.(?:[1-9]\d*|0))$")


@dataclass(frozen=True, slots=True)
class ClusteringContext:
    """One authenticated request.

    Attributes:
        project: Project of the caller; without authentication, the project in the request.
        base: URL of the API with its version, as the caller sees it.
        version: Microversion.
        action_name: See `RequestScope`.
    """

    service: Service
    caller: Caller
    project: str
    base: str
    version: Version
    action_name: str = ""

    @property
    def db(self) -> Database:
        return self.service.db

    @property
    def clusters(self) -> Clustering:
        return self.service.clustering

    @property
    def scope(self) -> RequestScope:
        return RequestScope(self.caller, self.project, self.action_name)

    @property
    def check_types(self) -> CheckTypes:
        """Check of the types in a template: Rejected (Forbidden) names the first type that the caller may not use."""
        return partial(self.service.policy.check_types, caller=self.caller, project=self.project)

    def needs(self, version: Version) -> None:
        """Raise Rejected (MethodVersionNotFound) if the request has an older microversion."""
        if self.version < version:
            text = "{}.{}".format(*self.version)
            raise Rejected("MethodVersionNotFound", f"API version '{text}' is not supported on this method.")

    def json(self, body: Any, code: int = 200, action: str | None = None) -> Json:
        """Return an answer with the common headers; `action` is the id of the started action, for Location."""
        headers = {SHOWN_HEADER: "clustering {}.{}".format(*self.version), "Vary": SHOWN_HEADER}
        if action is not None:
            headers["Location"] = f"{self.base}/actions/{action}"
        return Json(body, code, headers)


def version_of(request: Request) -> Version:
    """Return the microversion of a request; without one, the least version.

    Raises:
        Rejected: HTTPBadRequest: invalid format; InvalidGlobalAPIVersion: unsupported version.
    """
    named = request.headers.get(HEADER, "").strip()
    versions = [part.strip() for part in named.split(",") if part.strip().lower().startswith("clustering")]
    if not versions:
        return LEAST
    match = _NAMED.match(versions[0])
    if match is None:
        message = (
            f"Invalid format of client version {versions[0]!r}: expected 'clustering X.Y', or 'clustering latest'."
        )
        raise Rejected("HTTPBadRequest", message)
    if match[1].lower() == "latest":
        return MOST
    major, _, minor = match[1].partition(".")
    version = (int(major), int(minor))
    if not LEAST <= version <= MOST:
        bounds = "Minimum is '{}.{}' and maximum is '{}.{}'.".format(*LEAST, *MOST)
        raise Rejected("InvalidGlobalAPIVersion", f"Version '{match[1]}' is not supported by the API. {bounds}")
    return version


def base_of(request: Request) -> str:
    """Return the URL of the API with its version, as the caller sees it."""
    return f"{addresses.base_of(request)}{PREFIX}/v1"


async def _requested(request: Request) -> ClusteringContext:
    state = request.state
    return ClusteringContext(
        request.app.state.service, state.caller, state.project, base_of(request), version_of(request)
    )


Context = Annotated[ClusteringContext, Depends(_requested)]


def since(major: int, minor: int) -> Any:
    """Return a route dependency that refuses requests of older versions."""

    async def check(context: Context) -> None:
        context.needs((major, minor))

    return Depends(check)


async def _placed(request: Request, context: Context) -> AsyncIterator[None]:
    async with heavy_place(request, sharers_of(context.project, context.caller.key), ClientWatch()):
        yield


HEAVY = Depends(_placed, scope="function")
"""Dependency of routes that check templates or make revisions: see `homeostat.api.context.HEAVY`."""


async def _force(request: Request, body: SignalBody) -> bool:
    """Return whether a deletion is forced, by the query or the body; older microversions have no `force`."""
    if version_of(request) < WITH_FORCE:
        return False
    value = request.query_params.get("force")
    if value is None:
        return bodies.boolean((body or {}).get("force") or False, "force")
    word = value.strip().lower()
    if word not in ("true", "false"):
        raise Rejected("BadRequest", f"Invalid value '{value}' specified for 'force'")
    return word == "true"


Force = Annotated[bool, Depends(_force)]
