"""The application: its routes, their middleware, and the handlers that turn exceptions into responses."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from homeostat.api import dashboard, errors
from homeostat.api.access.auth import Access
from homeostat.api.access.enforcer import Policy
from homeostat.api.answer_limit import AnswerLimit
from homeostat.api.cloudformation import routes as cloudformation
from homeostat.api.cloudformation import signed_urls
from homeostat.api.cloudformation.authentication import Authenticator, Ec2
from homeostat.api.context import Service
from homeostat.api.hidden_addresses import HiddenAddresses
from homeostat.api.http import faults
from homeostat.api.http.addresses import Addresses
from homeostat.api.http.event_streams import EventTail
from homeostat.api.http.fair_places import ClientGone
from homeostat.api.http.healthcheck import METHODS, Health
from homeostat.api.http.heavy_requests import PLACES, HeavyRequests
from homeostat.api.http.rate_limits import TokenBuckets
from homeostat.api.http.responses import Json, nothing
from homeostat.api.http.versions import versions_answer
from homeostat.api.middleware import (
    METRICS,
    AnswerHeaders,
    BodyLimit,
    Faults,
    HeadLimit,
    OriginCheck,
    ProjectGuard,
    RequestId,
    RequestShares,
    Traced,
    Versions,
)
from homeostat.api.orchestration.routers import ROUTERS
from homeostat.api.route_table import RouteTable
from homeostat.builtin.member_reports import MemberReports
from homeostat.builtin.signals import Signals
from homeostat.clock import Clock
from homeostat.clustering.service.services import Clustering
from homeostat.clustering.wire.about import add_versions
from homeostat.clustering.wire.receivers import WEBHOOKS
from homeostat.clustering.wire.routers import ROUTERS as CLUSTERING
from homeostat.convergence.members.rollouts import RolloutEngine
from homeostat.convergence.members.scaling import Scaling
from homeostat.model.errors import Rejected, Terminal, Transient
from homeostat.model.rates import Rate
from homeostat.services.actions import StackActions
from homeostat.services.snapshots import Snapshots
from homeostat.services.stacks import StackService
from homeostat.services.transfer import StackTransfer
from homeostat.store.database import Database
from homeostat.store.encryption.encrypted_cells import Unreadable
from homeostat.store.operation.workers import VERSION

LOG = logging.getLogger(__name__)
DESCRIPTION = """The OpenStack Orchestration API, version 1.

Every error is answered with a fault (see its schema): `error.type` names the kind of error, `error.message` the place
and the remedy. The service accepts creations, updates and deletions at once; `stack_status` shows their progress."""

INCLUDED = (
    signed_urls.EARLY,
    *ROUTERS,
    *CLUSTERING,
    WEBHOOKS,
    signed_urls.ROUTER,
    cloudformation.ROUTER,
    dashboard.ROUTER,
)
"""In matching order."""
COMPRESSED_BYTES_MIN = 4096
"""Size from which on an answer is compressed, if the client accepts compression."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of requests.

    Attributes:
        body_bytes_max: Size of a request's body.
        head_bytes_max: Size of path, query and headers together.
        rate: Requests of a caller in a project; None for no limit.
        places: Concurrent requests that check templates.
        hidden_tags: Stacks with any of these tags are listed only on request.
    """

    body_bytes_max: int = 1_048_576
    head_bytes_max: int = 32_768
    rate: Rate | None = None
    places: int = PLACES
    hidden_tags: tuple[str, ...] = ()


class _Application(FastAPI):
    """An application that dispatches by its `RouteTable`.

    Its OpenAPI document has no 422: invalid parameters get a 400, like all invalid requests.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Some servers announce their start and stop: nothing here waits for that.
        await (super().__call__ if scope["type"] == "http" else self.router)(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        self.state.table = RouteTable(self._all_routes(), self.exception_handlers)
        app: ASGIApp = self.state.table
        for middleware in reversed(self.user_middleware):
            app = middleware.cls(app, *middleware.args, **middleware.kwargs)
        return app

    def _all_routes(self) -> list[Route]:
        return [route for part in (*INCLUDED, self.router) for route in part.routes if isinstance(route, Route)]

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        schemas = document["components"]["schemas"]
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                content = operation.get("requestBody", {}).get("content", {})
                parts = content.get("application/json", {}).get("schema", {}).pop("$defs", {})
                for name, schema in parts.items():
                    assert schemas.setdefault(name, schema) == schema, f"two schemas have the name {name}"
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        return document


def create_app(
    db: Database,
    stack_service: StackService,
    clock: Clock,
    *,
    access: Access,
    limits: Limits = Limits(),
    access_log: bool = False,
    metrics: bool = False,
    policy: Policy | None = None,
    ec2: Ec2 | None = None,
    body_s: float = 60.0,
    drain_file: Path | None = None,
    addresses: Addresses = Addresses(),
) -> FastAPI:
    """Return the ASGI application for this database. It starts no threads.

    Args:
        stack_service: The write path of desired states.
        access: The access mode.
        metrics: Serve `/metrics`.
        policy: Authorization rules; None for the defaults.
        ec2: Verifies requests signed with keys of users; None if users have no keys.
        body_s: Time within which a request's body has to arrive.
        drain_file: While this file exists, the health check fails, so that load balancers send no requests.
        addresses: Base URL of links.
    """
    app = _Application(
        title="Homeostat",
        version=VERSION,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=Json,
    )
    policy = Policy() if policy is None else policy
    service = _service(db, stack_service, clock, limits, policy)
    app.state.service = service
    app.state.addresses = addresses
    app.state.admission = Authenticator(db, clock, access, ec2)
    for router in INCLUDED:
        app.include_router(router)
    _add_service_routes(app)
    add_versions(app)
    _add_health(app, Health(db, drain_file))
    if metrics:
        _add_metrics(app)
    _add_error_handlers(app)
    _add_middleware(app, service, access, limits, access_log=access_log, body_s=body_s)
    return app


def _service(db: Database, stack_service: StackService, clock: Clock, limits: Limits, policy: Policy) -> Service:
    quotas = stack_service.quotas
    scaling = Scaling(db, clock, quotas.resources_max, quotas.timeout_s)
    rollouts = RolloutEngine(db, timeout_s=quotas.timeout_s)
    return Service(
        db,
        stack_service,
        StackActions(db, stack_service.quotas.timeout_s),
        StackTransfer(db, stack_service),
        Snapshots(db, stack_service),
        clock,
        stack_service.graphs,
        Signals(db, scaling.signal, rollouts.advance),
        MemberReports(db),
        rollouts,
        EventTail(db),
        policy,
        TokenBuckets(limits.rate),
        Clustering(db, stack_service),
        limits.hidden_tags,
        places=HeavyRequests(limits.places),
    )


def _add_middleware(
    app: FastAPI, service: Service, access: Access, limits: Limits, *, access_log: bool, body_s: float
) -> None:
    # The middleware added last is the outermost.
    app.add_middleware(AnswerLimit)
    app.add_middleware(HiddenAddresses, policy=service.policy)
    app.add_middleware(GZipMiddleware, minimum_size=COMPRESSED_BYTES_MIN, compresslevel=1)
    app.add_middleware(RequestShares, shares=service.shares)
    app.add_middleware(BodyLimit, bytes_max=limits.body_bytes_max, patience_s=body_s, shares=service.shares)
    app.add_middleware(
        ProjectGuard,
        access=access,
        policy=service.policy,
        may_signal=service.signals.token,
        buckets=service.buckets,
        shares=service.shares,
    )
    app.add_middleware(OriginCheck, access=access)
    app.add_middleware(Versions)
    app.add_middleware(HeadLimit, bytes_max=limits.head_bytes_max)
    app.add_middleware(Faults)
    app.add_middleware(Traced)
    app.add_middleware(AnswerHeaders)
    app.add_middleware(RequestId, access_log=access_log)


def _add_service_routes(app: FastAPI) -> None:
    @app.get("/", summary="List API versions", status_code=300, tags=["service"])
    @app.get("/versions", summary="List API versions (also at the root)", status_code=300, tags=["service"])
    async def list_versions(request: Request) -> Response:
        return versions_answer(request)


def _add_health(app: FastAPI, health: Health) -> None:
    @app.get("/healthcheck", summary="Can this process serve?", tags=["service"], response_class=PlainTextResponse)
    @app.api_route("/healthcheck", methods=METHODS, include_in_schema=False)
    async def check_health() -> Response:
        """Answer 200 while the process and its database serve, else 503 with the reason. Open to all."""
        return await health.answer()

    # For a proxy that passes on its path prefix.
    @app.api_route("/{prefix:path}/healthcheck", methods=METHODS, include_in_schema=False)
    async def check_health_below(prefix: str) -> Response:
        return nothing(404) if prefix.partition("/")[0] == "v1" else await health.answer()


def _add_metrics(app: FastAPI) -> None:
    from homeostat.observability import prometheus

    @app.get(METRICS, include_in_schema=False)
    def show_metrics(request: Request) -> Response:
        service: Service = request.app.state.service
        return Response(prometheus.exposed(service.db), media_type=prometheus.CONTENT_TYPE)


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(Rejected)
    async def refuse(request: Request, error: Rejected) -> Response:
        return errors.rejected(request.scope, error)

    @app.exception_handler(Transient)
    async def put_off(request: Request, error: Transient) -> Response:
        LOG.warning("%s %s put off (%s): %s", request.method, request.url.path, request.state.request_id, error)
        return errors.transient(request.scope, error)

    @app.exception_handler(Terminal)
    async def refuse_terminal(request: Request, error: Terminal) -> Response:
        # The cloud has refused the request, and would refuse it again: no 503.
        return errors.rejected(request.scope, Rejected("HTTPBadRequest", str(error)))

    @app.exception_handler(ClientGone)
    async def stop_work(request: Request, error: ClientGone) -> Response:
        LOG.info("%s %s stopped (%s): %s", request.method, request.url.path, request.state.request_id, error)
        return nothing(503)

    @app.exception_handler(Unreadable)
    async def report_lost_key(request: Request, error: Unreadable) -> Response:
        LOG.error("%s %s failed (%s): %s", request.method, request.url.path, request.state.request_id, error)
        return faults.fault(500, "Unreadable", f"The operator has to bring back a key: {error}")

    @app.exception_handler(RequestValidationError)
    async def refuse_parameter(request: Request, error: RequestValidationError) -> Response:
        return errors.rejected(request.scope, Rejected("HTTPBadRequest", _parameter_error(error.errors()[0])))

    @app.exception_handler(HTTPException)
    async def refuse_address(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            return _other_method(request)
        if error.status_code == 404:
            return PlainTextResponse("404 Not Found: there is nothing at this address.\n", 404)
        return errors.rejected(request.scope, Rejected("HTTPBadRequest", str(error.detail)))


def _parameter_error(error: Any) -> str:
    """Describe the first invalid query parameter in one sentence."""
    message = error["msg"].removeprefix("Value error, ")
    return f"Invalid value {error['input']!r} for {error['loc'][-1]}: {message}"


def _other_method(request: Request) -> Response:
    """Answer OPTIONS with the methods of the path, and any other unknown method with a 405."""
    table: RouteTable = request.app.state.table
    allowed = ", ".join(sorted(table.methods(request.scope["path"])))
    if request.method == "OPTIONS":
        return nothing(204, {"Allow": allowed})
    message = f"The method {request.method} is not allowed here; allowed are: {allowed}"
    return faults.fault(405, "HTTPMethodNotAllowed", message, {"Allow": allowed})
