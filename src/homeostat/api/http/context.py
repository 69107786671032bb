"""What handlers are given: the service, who asks, and the body."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import quote

import orjson
from fastapi import Depends, Path, Request
from pydantic import BaseModel, BeforeValidator
from sqlalchemy import Connection, Row

from homeostat.api.access.auth import Caller
from homeostat.api.access.enforcer import Policy, forbidden
from homeostat.api.http.event_streams import EventTail
from homeostat.api.http.heavy_requests import ClientWatch, HeavyRequests
from homeostat.api.http.rate_limits import TokenBuckets
from homeostat.api.services import typed
from homeostat.api.services.actions import StackActions
from homeostat.api.services.graphs import Graphs
from homeostat.api.services.snapshots import Snapshots
from homeostat.api.services.stacks import StackService
from homeostat.api.services.transfer import StackTransfer
from homeostat.builtin import access_keys
from homeostat.builtin.signals import Signals
from homeostat.clock import Clock
from homeostat.clouds.outbound import Outbound
from homeostat.desired.graphs import DesiredGraphs
from homeostat.identity.trusts import Accept
from homeostat.model.errors import Rejected, stack_not_found
from homeostat.store.database import Database
from homeostat.store.stacks import stacks
from homeostat.templates.parser import check_bounds
from homeostat.templates.yaml_parser import DEPTH_MAX

MALFORMED = "The server could not comply with the request since it is either malformed or otherwise incorrect."


COUNT_MAX = 2**31 - 1
"""Largest number that a caller may give: what every database can store and count to."""


@dataclass(frozen=True, slots=True)
class Service:
    """What answers are made of. policy — who may do what; buckets — of what callers may still ask; hidden_tags — stacks
    with one of these are listed only on demand; definitions — of shards that the planner was asked about; places — for
    requests that check templates."""

    db: Database
    intake: StackService
    asks: StackActions
    moving: StackTransfer
    snapshots: Snapshots
    clock: Clock
    graphs: Graphs
    signals: Signals
    tail: EventTail
    policy: Policy
    buckets: TokenBuckets
    hidden_tags: tuple[str, ...] = ()
    definitions: DesiredGraphs = field(default_factory=DesiredGraphs)
    places: HeavyRequests = field(default_factory=HeavyRequests)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request. project — the one it is about; base — address of the API with version, as the caller sees it;
    attention — does the caller still wait?"""

    service: Service
    caller: Caller
    project: str
    base: str
    attention: ClientWatch = field(default_factory=ClientWatch)

    @property
    def db(self) -> Database:
        return self.service.db

    @property
    def outbound(self) -> Outbound:
        return self.service.intake.outbound

    def stack(self, tx: Connection, name: str, stack_id: str) -> Row[Any]:
        """The stack with this name and id (a deleted one too). Fails: Rejected (EntityNotFound)."""
        row = stacks.get(tx, stack_id)
        if row is None or row.name != name or not self.reaches(row):
            raise stack_not_found(f"{name}/{stack_id}")
        return row

    def reaches(self, stack: Row[Any]) -> bool:
        """Is it of the project, of its stack users, or the caller an admin?"""
        return self.project in (stack.project, stack.user_project) or self.caller.is_admin

    def find(self, tx: Connection, name_or_id: str) -> Row[Any] | None:
        """By id (a deleted one too), else the oldest live one of that name."""
        return stacks.find(tx, self.project, name_or_id, everywhere=self.caller.is_admin)

    @property
    def listed_project(self) -> str | None:
        """Whose things a list is of: None for those of all projects, as an admin has it."""
        return None if self.caller.is_admin else self.project

    def check(self, rule: str) -> None:
        """Fails: Rejected (Forbidden) unless the caller may do what the rule guards, here."""
        self.service.policy.check(rule, self.caller, self.project)

    def check_types(self, types: Mapping[str, tuple[str | int, ...]]) -> None:
        """Fails: Rejected (Forbidden) naming the first of these types that the caller may not have."""
        self.service.policy.check_types(types, self.caller, self.project)

    def check_types_of(self, tx: Connection, stack: Row[Any]) -> None:
        """The same for the types that a stack has, and those nested in it."""
        denied = self.service.policy.denied_types(self.caller, self.project)
        found = typed.found_in(tx, stack, denied) if denied else None
        if found is not None:
            raise forbidden(found)

    def check_meant(self, tx: Connection, stack: Row[Any], resource: str) -> None:
        """Fails: Rejected (Forbidden) for a stack user that is not meant for this resource."""
        if not self.caller.is_stack_user:
            return
        holder = access_keys.holder_of_user(tx, self.caller.user_id or "")
        if holder is None or not access_keys.may_read(tx, holder, stack.id, resource):
            raise forbidden(resource)

    def entrusted(self, stack_id: str) -> AbstractContextManager[Accept]:
        """What the caller asks of a stack is done on their behalf. Fails: Rejected (Forbidden), Transient."""
        with self.db.read() as tx:
            row = stacks.get(tx, stack_id)
        if row is None:
            raise stack_not_found(stack_id)
        return self.service.intake.entrusted(row.root_id, row.project, self.caller)

    def live_stack(self, tx: Connection, name: str, stack_id: str) -> Row[Any]:
        row = self.stack(tx, name, stack_id)
        if row.deleted_at is not None:
            raise stack_not_found(f"{name}/{stack_id}")
        return row

    def url(self, project: str, *parts: str) -> str:
        return "/".join([self.base, *map(quoted, (project, *parts))])

    def stack_url(self, stack: Any) -> str:
        """stack — anything with project, name and id."""
        return _stack_url(self.base, stack.project, stack.name, stack.id)


@lru_cache(maxsize=1024)
def _stack_url(base: str, project: str, name: str, stack_id: str) -> str:
    """Kept, since a list of resources repeats it in each."""
    return "/".join([base, *map(quoted, (project, "stacks", name, stack_id))])


@lru_cache(maxsize=8192)
def quoted(part: str) -> str:
    """A part of an address; kept, since a list repeats the same few parts in hundreds of links."""
    return quote(part, safe="")


async def _asked(request: Request, project: Annotated[str, Path(description="Id of the project.")]) -> RequestContext:
    base = f"{str(request.base_url).rstrip('/')}/v1"
    return RequestContext(request.app.state.service, request.state.caller, project, base)


Ask = Annotated[RequestContext, Depends(_asked)]
StackName = Annotated[str, Path(description="Name of the stack.")]
StackId = Annotated[str, Path(description="Id of the stack.")]
ResourceName = Annotated[str, Path(description="Name of the resource in its template.")]


JSON = "application/json"
WITH_SIGNALS = (JSON, "text/plain", "")
"""Kinds of bodies that signals come in: of servers' scripts, which say nothing, or what their tool says by default."""


async def _sent(request: Request, kinds: Collection[str]) -> Mapping[str, Any] | None:
    """The JSON object sent, or None where the body is something else, or is not of these kinds."""
    raw = await request.body()
    if _kind(request) not in kinds or not raw.startswith(b"{"):
        return None
    try:
        body = dict(orjson.loads(raw))
        if raw.count(b"{") + raw.count(b"[") > DEPTH_MAX:  # else it cannot be that deep
            check_bounds(body)
    except ValueError as error:
        raise Rejected("HTTPBadRequest", f"Malformed JSON in the body: {error}") from error
    return body


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _body(request: Request) -> Mapping[str, Any]:
    """Only as `application/json`: what others have a browser send unasked is of other kinds."""
    if _kind(request) != JSON and await request.body():
        raise Rejected("HTTPBadRequest", f"{MALFORMED} The body has to be JSON, with the header Content-Type: {JSON}.")
    body = await _sent(request, (JSON,))
    if body is None:
        raise Rejected("HTTPBadRequest", MALFORMED)
    return body


async def _signal_body(request: Request) -> Mapping[str, Any] | None:
    return await _sent(request, WITH_SIGNALS)


Body = Annotated[Mapping[str, Any], Depends(_body)]
SignalBody = Annotated[Mapping[str, Any] | None, Depends(_signal_body)]


async def _placed(request: Request, ask: Ask) -> AsyncIterator[None]:
    """With a place. The body is read first: what is received after it can only be that the client hangs up."""
    await request.body()
    async with ask.service.places.one(ask.project, ask.attention, request.receive):
        yield


HEAVY = Depends(_placed, scope="function")
"""For `dependencies` of a route that checks templates: it waits for a place, and gives it back before it answers."""


def described_body(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """For a route's `openapi_extra`: a body that is read leniently, by `Body`, and so not by the framework."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def flag(value: Any) -> bool:
    """A boolean as clients send it. Fails: ValueError."""
    word = str(value).strip().lower()
    if word not in ("true", "false"):
        raise ValueError(f'Unrecognized value "{value}", acceptable values are: true, false')
    return word == "true"


Flag = Annotated[bool, BeforeValidator(flag)]
"""Strictly `true` or `false`, in any case of letters."""
