"""The context of route handlers: the service, the caller, and lookups of stacks that the caller may see."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from homeostat.api.access.enforcer import Policy, forbidden
from homeostat.api.http.addresses import base_of
from homeostat.api.http.event_streams import EventTail
from homeostat.api.http.fair_places import Sharer, sharers_of
from homeostat.api.http.heavy_requests import ClientWatch, HeavyRequests
from homeostat.api.http.inputs import quoted
from homeostat.api.http.rate_limits import TokenBuckets
from homeostat.api.http.shares import Shares
from homeostat.builtin import access_keys
from homeostat.builtin.access_keys import KeyHolder
from homeostat.builtin.member_reports import MemberReports
from homeostat.builtin.signals import Signals
from homeostat.clock import Clock
from homeostat.clouds.outbound import Outbound
from homeostat.clustering.service.services import Clustering
from homeostat.convergence.members.rollouts import RolloutEngine
from homeostat.desired.graphs import DesiredGraphs
from homeostat.identity.trusts import Accept
from homeostat.model.caller import Caller
from homeostat.model.errors import stack_not_found
from homeostat.services import typed
from homeostat.services.actions import StackActions
from homeostat.services.graphs import Graphs
from homeostat.services.pipeline.request import CheckTypes
from homeostat.services.snapshots import Snapshots
from homeostat.services.stacks import StackService
from homeostat.services.transfer import StackTransfer
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import stacks


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of the service that handlers use; a singleton of the application.

    Attributes:
        policy: Authorization rules.
        buckets: Rate limits of callers.
        clustering: Services of the Clustering API.
        hidden_tags: Stacks with any of these tags are listed only on request.
        definitions: Cached graphs of shards, for requests to the planner.
        places: Limits requests that check templates.
        shares: Limits all requests.
    """

    db: Database
    stack_service: StackService
    actions: StackActions
    transfer: StackTransfer
    snapshots: Snapshots
    clock: Clock
    graphs: Graphs
    signals: Signals
    reports: MemberReports
    rollouts: RolloutEngine
    tail: EventTail
    policy: Policy
    buckets: TokenBuckets
    clustering: Clustering
    hidden_tags: tuple[str, ...] = ()
    definitions: DesiredGraphs = field(default_factory=DesiredGraphs)
    places: HeavyRequests = field(default_factory=HeavyRequests)
    shares: Shares = field(default_factory=Shares)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """An authenticated request.

    Attributes:
        project: Project in the path.
        base: URL of the API with its version, for links.
        client: Detects whether the client has disconnected.
    """

    service: Service
    caller: Caller
    project: str
    base: str
    client: ClientWatch = field(default_factory=ClientWatch)

    @property
    def db(self) -> Database:
        return self.service.db

    @property
    def outbound(self) -> Outbound:
        return self.service.stack_service.outbound

    @property
    def sharers(self) -> tuple[Sharer, ...]:
        """Those whose shares this request counts for."""
        return sharers_of(self.project, self.caller.key)

    def stack(self, tx: Transaction, name: str, stack_id: str) -> StackRow:
        """Return the stack with this name and id, deleted ones included.

        Raises:
            Rejected: EntityNotFound.
        """
        row = stacks.get(tx, stack_id)
        if row is None or row.name != name or not self.reaches(row):
            raise stack_not_found(f"{name}/{stack_id}")
        return row

    def reaches(self, stack: StackRow) -> bool:
        """Return whether this request may see the stack: it belongs to the project, or the caller is an admin.

        The project with the stack's own users counts, too.
        """
        return self.project in (stack.project, stack.user_project) or self.caller.is_admin

    def find(self, tx: Transaction, name_or_id: str) -> StackRow | None:
        """Return the stack with this id (deleted stacks included), else the oldest live stack of this name."""
        return stacks.find(tx, self.project, name_or_id, everywhere=self.caller.is_admin)

    @property
    def listed_project(self) -> str | None:
        """Project that lists are limited to; None for an admin, whose lists cover all projects."""
        return None if self.caller.is_admin else self.project

    def check(self, rule: str) -> None:
        """Raise Rejected (Forbidden) unless the rule allows this caller in this project."""
        self.service.policy.check(rule, self.caller, self.project)

    @property
    def check_types(self) -> CheckTypes:
        """Raises Rejected (Forbidden) naming the first of the types that the caller may not use."""
        return partial(self.service.policy.check_types, caller=self.caller, project=self.project)

    def check_types_of(self, tx: Transaction, stack: StackRow) -> None:
        """Raise Rejected (Forbidden) naming a type in the stack or its nested stacks that the caller may not use."""
        denied = self.service.policy.denied_types(self.caller, self.project)
        denied_type = typed.found_in(tx, stack, denied) if denied else None
        if denied_type is not None:
            raise forbidden(denied_type)

    def check_stack_user(self, tx: Transaction, stack: StackRow, resource: str) -> KeyHolder | None:
        """Return the resource that a stack user was created for; None if the caller is an ordinary user.

        Raises:
            Rejected: Forbidden for a stack user that was not created for this resource.
        """
        if not self.caller.is_stack_user:
            return None
        holder = access_keys.holder_of_user(tx, self.caller.user_id or "")
        if holder is None or not access_keys.may_read(tx, holder, stack.id, resource):
            raise forbidden(resource)
        return holder

    def entrusted(self, stack_id: str) -> AbstractContextManager[Accept]:
        """Return a context in which the service holds the caller's trust for the stack, to act on their behalf later.

        Raises:
            Rejected: Forbidden if the caller cannot create a trust; EntityNotFound.
            Transient: The identity service does not answer.
        """
        with self.db.read() as tx:
            row = stacks.get(tx, stack_id)
        if row is None:
            raise stack_not_found(stack_id)
        return self.service.stack_service.entrusted(row.root_id, row.project, self.caller)

    def live_stack(self, tx: Transaction, name: str, stack_id: str) -> StackRow:
        row = self.stack(tx, name, stack_id)
        if row.deleted_at is not None:
            raise stack_not_found(f"{name}/{stack_id}")
        return row

    def url(self, project: str, *parts: str) -> str:
        return "/".join([self.base, *map(quoted, (project, *parts))])

    def stack_url(self, stack: Any) -> str:
        """Return the URL of a stack.

        Args:
            stack: Any object with project, name and id.
        """
        return _stack_url(self.base, stack.project, stack.name, stack.id)


@lru_cache(maxsize=1024)
def _stack_url(base: str, project: str, name: str, stack_id: str) -> str:
    """Build the URL of a stack; cached, since a list of resources repeats it in each entry."""
    return f"{base}/{quoted(project)}/stacks/{quoted(name)}/{stack_id}"


async def _requested(
    request: Request, project: Annotated[str, Path(description="Id of the project.")]
) -> RequestContext:
    return RequestContext(request.app.state.service, request.state.caller, project, f"{base_of(request)}/v1")


Context = Annotated[RequestContext, Depends(_requested)]
StackName = Annotated[str, Path(description="Name of the stack.")]
StackId = Annotated[str, Path(description="Id of the stack.")]
ResourceName = Annotated[str, Path(description="Name of the resource in its template.")]


@asynccontextmanager
async def heavy_place(request: Request, sharers: tuple[Sharer, ...], client: ClientWatch) -> AsyncIterator[None]:
    """Hold a place for requests that check templates, and give back the request's ordinary place."""
    service: Service = request.app.state.service
    # After the body, the only message left to receive is the client's disconnect, which `places.one` watches for.
    await request.body()
    if (leave := getattr(request.state, "leave_place", None)) is not None:
        leave()
    async with service.places.one(sharers, client, request.receive):
        yield


async def _placed(request: Request, context: Context) -> AsyncIterator[None]:
    async with heavy_place(request, context.sharers, context.client):
        yield


HEAVY = Depends(_placed, scope="function")
"""For `dependencies` of a route that checks templates: wait for a place, and release it before the response is sent."""
