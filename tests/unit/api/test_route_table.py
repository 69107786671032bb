"""The table of routes: which route is chosen, and the arguments of its handler."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from homeostat.api import route_table
from homeostat.api.route_table import RouteTable

ROUTER = APIRouter()
EVENTS: list[str] = []


class Filters(BaseModel):
    limit: int | None = Field(None, ge=0)
    name: list[str] = []


async def _caller(request: Request) -> str:
    EVENTS.append("caller")
    return str(request.headers.get("x-user", "nobody"))


Caller = Annotated[str, Depends(_caller)]


async def _place(caller: Caller) -> AsyncIterator[None]:
    EVENTS.append(f"in {caller}")
    yield
    EVENTS.append("out")


class Reply(PlainTextResponse):
    async def __call__(self, *arguments: Any) -> None:
        EVENTS.append("sent")
        await super().__call__(*arguments)


@ROUTER.get("/things/fixed")
async def fixed() -> Response:
    return Reply("fixed")


@ROUTER.get("/things/{thing}")
def show(thing: str, filters: Annotated[Filters, Query()], tag: Annotated[str | None, Header()] = None) -> Response:
    return Reply(f"{thing} {filters.limit} {filters.name} {tag}")


@ROUTER.put("/things/{thing}", dependencies=[Depends(_place, scope="function")])
def change(caller: Caller, named: Annotated[str, Path(alias="thing")]) -> Response:
    return Reply(f"{caller} {named}")


@ROUTER.get("/numbers/{number}")
async def number(number: int) -> Response:
    return Reply(str(number + 1))


@ROUTER.get("/files/{name:path}")
async def file(name: str) -> Response:
    return Reply(name)


@ROUTER.get("/broken")
async def broken() -> Response:
    raise KeyError("broken")


async def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return Reply(f"refused {error.status_code}")
    return Reply(f"refused {type(error).__name__}")


TABLE = RouteTable(
    [route for route in ROUTER.routes if isinstance(route, Route)],
    {HTTPException: _refuse, RequestValidationError: _refuse, LookupError: _refuse},
)


def answer(method: str, url: str, **headers: str) -> str:
    path, _, query = url.partition("?")
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": encoded}
    sent: list[bytes] = []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    EVENTS.clear()
    asyncio.run(TABLE(scope, receive, send))
    return b"".join(sent).decode()


@pytest.mark.parametrize(
    ("method", "url", "expected"),
    [
        ("GET", "/things/fixed", "fixed"),
        ("GET", "/things/a", "a None [] None"),
        ("GET", "/things/a?limit=3&name=x&name=y", "a 3 ['x', 'y'] None"),
        ("GET", "/things/a?limit=-1", "refused RequestValidationError"),
        ("GET", "/numbers/1", "2"),
        ("GET", "/numbers/one", "refused RequestValidationError"),
        ("GET", "/files/a/b/c", "a/b/c"),
        ("GET", "/files/" + "/".join("x" * 90), "/".join("x" * 90)),
        ("GET", "/broken", "refused KeyError"),
        ("GET", "/nothing", "refused 404"),
        ("GET", "/things/a/b", "refused 404"),
        ("POST", "/things/a", "refused 405"),
        ("ANY", "/things/a", "refused 405"),
    ],
)
def test_the_first_route_that_fits_answers(method: str, url: str, expected: str) -> None:
    assert answer(method, url) == expected


def test_a_header_is_an_argument() -> None:
    assert answer("GET", "/things/a", tag="t") == "a None [] t"


def test_dependencies_are_called_once_and_end_before_the_response_is_sent() -> None:
    assert answer("PUT", "/things/a", **{"x-user": "me"}) == "me a"
    assert EVENTS == ["caller", "in me", "out", "sent"]


def test_methods_of_a_path() -> None:
    assert TABLE.methods("/things/a") == {"GET", "PUT"}
    assert TABLE.methods("/nothing") == set()


def test_parameters_are_read_only_from_a_request_that_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    answer("GET", "/things/a")
    read = request_params_to_args
    fields: list[str] = []

    def counted(parameters: Any, received: Any) -> Any:
        fields.extend(field.name for field in parameters)
        return read(parameters, received)

    monkeypatch.setattr(route_table, "request_params_to_args", counted)
    answer("GET", "/things/a")
    assert fields == []
    answer("GET", "/things/a?limit=1", tag="t")
    assert fields == ["filters", "tag"]
