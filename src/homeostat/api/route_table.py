"""The table of routes: finds the route of a request, and calls its handler with the declared arguments (ADR 0115).

FastAPI reads the declarations, and describes the API. The dispatch of FastAPI tries the routes one by one, and resolves
the declarations again with each request; the table resolves them once.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property, partial
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any, cast

from anyio import to_thread
from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.convertors import StringConvertor
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

SLASHES_MAX = 32
"""Longer paths are looked up as paths with this many slashes: the table has an entry for each number."""


class RouteTable:
    """The application below the middleware.

    Args:
        routes: In matching order.
        handlers: Turn exceptions of routes into responses, by class.
    """

    def __init__(self, routes: Iterable[Route], handlers: Mapping[Any, Callable[..., Any]]) -> None:
        self._routes = [_Entry(route) for route in routes]
        self._handlers = handlers
        self._alike: dict[tuple[str, int], list[_Entry]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        try:
            response = await self._answer(request)
        except Exception as error:
            handler = next((self._handlers[kind] for kind in type(error).__mro__ if kind in self._handlers), None)
            if handler is None:
                raise
            response = await handler(request, error)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        scope = request.scope
        path = scope["path"]
        for entry in self._candidates(scope["method"], path):
            match = entry.pattern.match(path)
            if match is not None:
                scope["path_params"] = match.groupdict()
                scope["route"] = entry.route
                return await entry.answer(request)
        raise HTTPException(405 if self.methods(path) else 404)

    def methods(self, path: str) -> set[str]:
        """Return the methods that the routes of a path support."""
        return {method for entry in self._routes if entry.pattern.match(path) for method in entry.methods}

    def _candidates(self, method: str, path: str) -> Sequence["_Entry"]:
        """Return the routes for this method that can match a path with as many slashes."""
        slashes = min(path.count("/"), SLASHES_MAX)
        alike = self._alike.get((method, slashes))
        if alike is None:
            alike = [entry for entry in self._routes if method in entry.methods and entry.slashes in (None, slashes)]
            if alike:
                self._alike[method, slashes] = alike
        return alike


class _Entry:
    """A route of the table.

    Attributes:
        slashes: Number of slashes in its paths; None for any.
    """

    def __init__(self, route: Route) -> None:
        self.route = route
        self.pattern = route.path_regex
        self.methods: Collection[str] = route.methods or ()
        fixed = all(type(convertor) is StringConvertor for convertor in route.param_convertors.values())
        self.slashes = route.path.count("/") if fixed else None

    @cached_property
    def answer(self) -> Callable[[Request], Awaitable[Response]]:
        """Calls the handler of the route; its declarations are read on the first use."""
        if isinstance(self.route, APIRoute):
            return _Plan(self.route.dependant).answer
        return cast(Callable[[Request], Awaitable[Response]], self.route.endpoint)


class _Plan:
    """The calls for a request to one route: those of its dependencies, then that of its handler."""

    def __init__(self, dependant: Dependant) -> None:
        self._calls: list[_Call] = []
        self._add(dependant, {})
        self._stacked = any(call.is_generator for call in self._calls)

    def _add(self, dependant: Dependant, places: dict[Any, int]) -> int:
        """Add a call after those that it depends on; return its place."""
        if dependant.call not in places:
            inner = [(below.name, self._add(below, places)) for below in dependant.dependencies]
            places[dependant.call] = len(self._calls)
            self._calls.append(_Call(dependant, [(name, place) for name, place in inner if name is not None]))
        return places[dependant.call]

    async def answer(self, request: Request) -> Response:
        """Return the response of the handler. Generators end before it is sent."""
        if not self._stacked:
            return await self._answer(request, None)
        async with AsyncExitStack() as stack:
            return await self._answer(request, stack)

    async def _answer(self, request: Request, stack: AsyncExitStack | None) -> Response:
        results: list[Any] = []
        for call in self._calls:
            arguments = call.arguments(request, results)
            if call.is_coroutine:
                result = await call.function(**arguments)
            elif stack is not None and call.is_generator:
                result = await stack.enter_async_context(call.function(**arguments))
            else:
                result = await to_thread.run_sync(partial(call.function, **arguments))
            results.append(result)
        return cast(Response, results[-1])


class _Call:
    """A function with the sources of its arguments: results of earlier calls, and parts of the request."""

    def __init__(self, dependant: Dependant, inner: Sequence[tuple[str, int]]) -> None:
        function: Any = dependant.call
        is_object = not hasattr(function, "__code__")
        self.is_generator = isasyncgenfunction(function)
        self.is_coroutine = iscoroutinefunction(type(function).__call__ if is_object else function)
        self.function: Any = asynccontextmanager(function) if self.is_generator else function
        self._inner = inner
        self._request_name = dependant.request_param_name
        texts = [field for field in dependant.path_params if field.field_info.annotation is str]
        self._texts = [(field.name, field.alias) for field in texts]
        self._sources = [
            _Source(fields, received, empty)
            for fields, received, empty in (
                ([field for field in dependant.path_params if field not in texts], _path_params, {}),
                (dependant.query_params, _query_params, QueryParams()),
                (dependant.header_params, _headers, Headers()),
            )
            if fields
        ]

    def arguments(self, request: Request, results: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments. Raise RequestValidationError for invalid parameters."""
        arguments = {name: results[place] for name, place in self._inner}
        if self._request_name is not None:
            arguments[self._request_name] = request
        path_params = request.scope["path_params"]
        for name, alias in self._texts:
            arguments[name] = path_params[alias]
        for source in self._sources:
            arguments |= source.values(request)
        return arguments


class _Source:
    """Parameters from one part of a request, such as its query."""

    def __init__(self, fields: Sequence[Any], received: Callable[[Request], Any], empty: Any) -> None:
        self._fields = fields
        self._received = received
        # A request without any of the parameters always has the same values.
        values, errors = request_params_to_args(fields, empty)
        self._absent = None if errors else values

    def values(self, request: Request) -> dict[str, Any]:
        received = self._received(request)
        if self._absent is not None and not received:
            return self._absent
        values, errors = request_params_to_args(self._fields, received)
        if errors:
            raise RequestValidationError(errors)
        return values


def _path_params(request: Request) -> Mapping[str, Any]:
    return request.path_params


def _query_params(request: Request) -> Mapping[str, str]:
    return request.query_params if request.scope["query_string"] else {}


def _headers(request: Request) -> Mapping[str, str]:
    return request.headers
