"""Middleware: request ids, tracing, versions, limits, authentication.

`app.create_app` defines the order: the middleware added last is the outermost.
"""

import asyncio
import logging
import random
import re
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from homeostat.api import errors
from homeostat.api.access.auth import Access
from homeostat.api.access.enforcer import Policy
from homeostat.api.http import faults
from homeostat.api.http.connections import PEER
from homeostat.api.http.fair_places import Sharer, address_of, sharers_of
from homeostat.api.http.inputs import SMALL
from homeostat.api.http.rate_limits import TokenBuckets
from homeostat.api.http.shares import Shares
from homeostat.api.http.versions import versions_answer
from homeostat.model.caller import STACK_USER, Caller
from homeostat.model.errors import Rejected, Transient
from homeostat.observability import tracing
from homeostat.store.requesters import Requester, asked_by

LOG = logging.getLogger(__name__)
ACCESS_LOG = logging.getLogger("homeostat.api.access")
MEDIA_TYPE = re.compile(r"application/vnd\.openstack\.orchestration-v1(\.0)?\b")
METRICS = "/metrics"
"""Path of the metrics in Prometheus format."""
DEFAULT_PROJECT = "default"
"""Project of requests to the Clustering API that name no project, without authentication."""
SIGNED = re.compile(r"/v1/(waitcondition|signal|metadata)/arn:openstack:heat::|/clustering/v1/webhooks/")
"""Paths that need no account: the signature, or for webhooks the secret path, authorizes the request.

No project has paths of this form.
"""
SIGNAL_TOKEN = re.compile(r"[0-9a-f]{32}\.[\w-]+\Z")
"""Form of the token of a handle, sent as `X-Auth-Token`."""
Found = TypeVar("Found")
MaySignal = Callable[[str, str, Sequence[str]], bool]
"""Return whether a token is that of a handle; called with the token, the project and the parts of the path."""
_STACK_ID = re.compile(r"/stacks/(?:[^/]+/)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?=/|$)")
_VERSION = re.compile(r"/(v\d+(?:\.\d+)?)(?=/|$)")
DRAINED_FACTOR = 4
"""A body up to this many times the limit is read and discarded, so that the client reads the response."""
FORM_FACTOR = 3
"""Form bodies may be this much larger, since URL encoding lengthens templates."""


class RequestId:
    """Middleware that gives every request an id, in the response and in the log.

    Args:
        access_log: Log one line per request.
    """

    def __init__(self, app: ASGIApp, *, access_log: bool) -> None:
        self._app = app
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Ids need not be unguessable. The operating system's randomness would release the interpreter lock each time.
        request_id = f"req-{uuid.UUID(int=random.getrandbits(128), version=4)}"
        started = time.monotonic()
        code = 500

        async def tagged(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
                MutableHeaders(scope=message)["x-openstack-request-id"] = request_id
            await send(message)

        scope.setdefault("state", {})["request_id"] = request_id
        await self._app(scope, receive, tagged)
        if self._access_log:
            spent_ms = round((time.monotonic() - started) * 1000, 1)
            line = {"request_id": request_id, "method": scope["method"], "path": scope["path"], "code": code}
            ACCESS_LOG.info(
                "%(method)s %(path)s %(code)s in %(spent_ms)s ms (%(request_id)s)", line | {"spent_ms": spent_ms}
            )


class AnswerHeaders:
    """Middleware for the headers of every answer: no guessing of content types, and no caching.

    Answers that set `Cache-Control` (the dashboard's files) keep it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        named = {name for name, _ in scope["headers"]}
        # Such a request is read as chunks, and its connection is closed after the answer (RFC 9112, 6.3): a proxy in
        # front may disagree about its end, so later bytes must not be taken for a request (request smuggling).
        hangs_up = b"content-length" in named and b"transfer-encoding" in named

        async def completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", faults.CACHING)
                if hangs_up:
                    headers["Connection"] = "close"
            await send(message)

        await self._app(scope, receive, completed)


class Traced:
    """Middleware that traces every request as a span, with the id of the stack in the path.

    The passes over the stack have the same id in their spans.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not tracing.on():
            await self._app(scope, receive, send)
            return
        code = 500

        async def watched(message: Message) -> None:
            nonlocal code
            code = message.get("status", code)
            await send(message)

        with tracing.request(scope["method"], scope["path"], scope["headers"]):
            named = _STACK_ID.search(scope["path"])
            known = {"stack_id": named[1]} if named else {}
            try:
                await self._app(scope, receive, watched)
            finally:
                route = getattr(scope.get("route"), "path", "")
                tracing.responded(scope["method"], code, route, request_id=scope["state"]["request_id"], **known)


class Versions:
    """Middleware that maps versioned and unversioned paths to `/v1/…`.

    Paths that name an unsupported version are answered with the list of supported ones.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        version = _VERSION.match(path)
        if version is not None and version[1] not in ("v1", "v1.0"):
            await versions_answer(Request(scope))(scope, receive, send)
            return
        if path in ("", "/", "/versions"):
            scope = {**scope, "path": path or "/"}
        elif version is None and MEDIA_TYPE.search(Headers(scope=scope).get("accept", "")):
            scope = {**scope, "path": f"/v1{path}"}
        elif version is not None and version[1] == "v1.0":
            scope = {**scope, "path": f"/v1{path[version.end() :]}"}
        await self._app(scope, receive, send)


class OriginCheck:
    """Middleware that refuses requests which the access mode cannot trust to be intended (see `Access.check_way`).

    Exempt are signed paths, whose signature proves the intention, and unguarded paths, which reveal nothing.
    """

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _is_guarded(scope["path"]) and not SIGNED.match(scope["path"]):
            try:
                self._access.check_way(Headers(scope=scope), scope["state"].get(PEER))
            except Rejected as error:
                await errors.rejected(scope, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_guarded(path: str) -> bool:
    return path == METRICS or path.startswith("/v1/") or path in errors.CLOUDFORMATION or errors.is_clustering(path)


class ProjectGuard:
    """Middleware that authenticates callers of `/v1/{project}/…` and of the metrics.

    A caller needs access to the project in the path; any authenticated caller may read the metrics. Signed paths are
    checked by their signature, and the CloudFormation API by its own rules, in their handlers; other paths are open.

    Args:
        may_signal: Checks a handle's token for exactly this project and path.
        buckets: Rate limits: per caller and project, and per signed path.
        shares: Limits concurrent authentications.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        access: Access,
        policy: Policy,
        may_signal: MaySignal,
        buckets: TokenBuckets,
        shares: Shares,
    ) -> None:
        self._app = app
        self._access = access
        self._policy = policy
        self._may_signal = may_signal
        self._buckets = buckets
        self._shares = shares

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        guarded = scope["type"] == "http" and _is_guarded(scope["path"])
        if guarded and scope["path"] not in errors.CLOUDFORMATION:
            if SIGNED.match(scope["path"]):
                await self._signed(scope, receive, send)
                return
            try:
                # PostgreSQL cannot store this character: the query would fail.
                if "\0" in scope["path"] or b"%00" in scope["query_string"]:
                    raise Rejected("HTTPBadRequest", "No address and no parameter may hold a NUL character.")
                headers = Headers(scope=scope)
                caller = self._policy.known(await self._caller(scope, headers))
                if scope["path"] != METRICS:
                    project = _project_of(scope["path"], headers, caller)
                    caller.check_project(project)
                    self._buckets.take(project, caller.key)
                    scope["state"]["project"] = project
                    scope["state"]["sharers"] = sharers_of(project, caller.key)
            except Rejected as error:
                await errors.rejected(scope, error, self._access.challenge)(scope, receive, send)
                return
            except Transient as error:
                LOG.warning("%s %s put off: %s", scope["method"], scope["path"], error)
                await errors.transient(scope, error)(scope, receive, send)
                return
            scope["state"]["caller"] = caller
            requester = Requester(caller.user or "", caller.user_id or "", scope["state"].get("request_id", ""))
            with asked_by(requester):
                await self._app(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _signed(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._buckets.take(scope["path"])
            scope["state"]["sharers"] = address_of(scope)
        except Rejected as error:
            await errors.rejected(scope, error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope, headers: Headers) -> Caller:
        """Authenticate the caller, in a thread if it may take long."""
        method, path, token = scope["method"], scope["path"], headers.get("x-auth-token", "")
        if method == "POST" and path.endswith("/signal") and SIGNAL_TOKEN.match(token):
            parts = path.split("/")[2:]
            if await self._identified(scope, self._may_signal, token, parts[0], parts):
                return Caller(project=parts[0], roles=frozenset({STACK_USER}), only_here=True)
        # Cached callers need no thread: most requests come from recent callers.
        known = self._access.known(headers)
        if known is not None:
            return known
        return await self._identified(scope, self._access.caller, headers, method, path)

    async def _identified(self, scope: Scope, identify: Callable[..., Found], *arguments: Any) -> Found:
        """Call `identify` in a thread, within the share of the client's address."""
        async with self._shares.logins.one(address_of(scope)):
            return await to_thread.run_sync(identify, *arguments, limiter=self._shares.login_threads)


def _project_of(path: str, headers: Headers, caller: Caller) -> str:
    """Return the project that a request is about.

    Paths of the Clustering API have no project: the header `X-Project-Id` names it; default: the caller's.

    Raises:
        Rejected: Forbidden if the request has no project.
    """
    if not errors.is_clustering(path):
        return path.split("/")[2]
    named = headers.get("x-project-id") or caller.project or (DEFAULT_PROJECT if caller.is_anybody else "")
    if not named:
        raise Rejected("Forbidden", "A project is needed: scope your token to one, or name it in X-Project-Id.")
    return named


class RequestShares:
    """Middleware that delays requests while their project, user or address has used up its share of the process.

    Requests without a known caller pass: the CloudFormation API authenticates later, other paths are open.
    """

    def __init__(self, app: ASGIApp, *, shares: Shares) -> None:
        self._app = app
        self._shares = shares

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sharers = scope["state"].get("sharers") if scope["type"] == "http" else None
        if sharers is None:
            await self._app(scope, receive, send)
            return
        try:
            await self._shares.requests.take(sharers)
        except (Rejected, Transient) as error:
            await _put_off(scope, error)(scope, receive, send)
        else:
            await self._within(sharers, scope, receive, send)

    async def _within(self, sharers: tuple[Sharer, ...], scope: Scope, receive: Receive, send: Send) -> None:
        holds = True

        def give_back() -> None:
            nonlocal holds
            if holds:
                holds = False
                self._shares.requests.give_back(sharers)

        async def begun(message: Message) -> None:
            # The place is free once the answer starts: a client may read slowly, or follow events for hours.
            if message["type"] == "http.response.start":
                give_back()
            await send(message)

        scope["state"]["leave_place"] = give_back
        try:
            await self._app(scope, receive, begun)
        finally:
            give_back()


class HeadLimit:
    """Middleware that refuses requests whose path, query and headers together exceed `bytes_max`."""

    def __init__(self, app: ASGIApp, *, bytes_max: int) -> None:
        self._app = app
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _head_bytes(scope) > self._bytes_max:
            message = f"Request limit exceeded: address and headers are larger than {self._bytes_max} bytes together."
            answer = errors.rejected(scope, Rejected("RequestLimitExceeded", message))
            await _hung_up(answer, scope, receive, send)
            return
        await self._app(scope, receive, send)


def _head_bytes(scope: Scope) -> int:
    headers = sum(len(name) + len(value) for name, value in scope["headers"])
    return headers + len(scope["path"]) + len(scope["query_string"])


class BodyLimit:
    """Middleware that reads the whole body before the route runs.

    Bodies of more than `bytes_max` bytes are refused without keeping them, also bodies that do not arrive within
    `patience_s` seconds. A request with an incomplete body is dropped. A large body waits until its project, user and
    address have room in their shares of large bodies.
    """

    def __init__(self, app: ASGIApp, *, bytes_max: int, patience_s: float, shares: Shares) -> None:
        self._app = app
        self._bytes_max = bytes_max
        self._patience_s = patience_s
        self._shares = shares

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        # A request without these headers has no body.
        if "content-length" not in headers and "transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        if "transfer-encoding" not in headers and int(headers["content-length"]) <= SMALL:
            await self._read_whole(scope, headers, receive, send)
            return
        sharers = scope["state"].get("sharers") or address_of(scope)
        try:
            await self._shares.bodies.take(sharers)
        except (Rejected, Transient) as error:
            await _hung_up(_put_off(scope, error), scope, receive, send)
            return
        try:
            await self._read_whole(scope, headers, receive, send)
        finally:
            self._shares.bodies.give_back(sharers)

    async def _read_whole(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        bytes_max = self._bytes_max * (FORM_FACTOR if scope["path"] in errors.CLOUDFORMATION else 1)
        try:
            async with asyncio.timeout(self._patience_s):
                body = await self._read(int(headers.get("content-length") or 0), receive, bytes_max)
        except ClientDisconnected:
            return
        except TimeoutError:
            message = f"The body has to arrive within {self._patience_s:g} s."
            await _hung_up(errors.rejected(scope, Rejected("RequestTimeout", message)), scope, receive, send)
            return
        if body is None:
            message = f"Request limit exceeded: JSON body size exceeds maximum allowed size ({self._bytes_max} bytes)."
            await errors.rejected(scope, Rejected("RequestLimitExceeded", message))(scope, receive, send)
            return
        replay = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Message:
            return replay.pop() if replay else await receive()

        await self._app(scope, replayed, send)

    async def _read(self, announced: int, receive: Receive, bytes_max: int) -> bytes | None:
        """Read the body.

        Returns:
            The body, or None if it is too large.

        Raises:
            ClientDisconnected: The client disconnected before the end of the body.
        """
        if announced > bytes_max * DRAINED_FACTOR:
            return None
        parts: list[bytes] = []
        size = 0
        more = True
        while more and size <= bytes_max * DRAINED_FACTOR:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            chunk = message.get("body", b"")
            size += len(chunk)
            if size <= bytes_max:
                parts.append(chunk)
            more = message.get("more_body", False)
        return b"".join(parts) if size <= bytes_max else None


class ClientDisconnected(Exception):
    """The client disconnected before its request was complete."""


def _put_off(scope: Scope, error: Rejected | Transient) -> Response:
    """Return the answer to a request for which there is no place."""
    return errors.transient(scope, error) if isinstance(error, Transient) else errors.rejected(scope, error)


async def _hung_up(answer: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response and close the connection: the rest of the request is not read."""
    answer.headers["Connection"] = "close"
    await answer(scope, receive, send)


class Faults:
    """Middleware of last resort: an unexpected exception is logged and answered with a 500."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            # A response that has begun cannot become a fault; the server cuts the connection instead.
            if scope["type"] != "http" or begun:
                raise
            LOG.exception("%s %s failed (%s)", scope["method"], scope["path"], scope["state"]["request_id"])
            await errors.unexpected(scope)(scope, receive, send)
