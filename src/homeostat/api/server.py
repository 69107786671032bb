"""The API process: serves the application with uvicorn."""

import asyncio
import logging
import resource
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import uvicorn

from homeostat.api.access.auth import Access
from homeostat.api.access.enforcer import Policy
from homeostat.api.app import Limits, create_app
from homeostat.api.cloudformation.authentication import Ec2
from homeostat.api.context import Service
from homeostat.api.http.addresses import Addresses
from homeostat.api.http.connection_shares import Network
from homeostat.api.http.connections import Timeouts, protocol
from homeostat.clock import Clock, Entropy
from homeostat.clouds.outbound import Outbound, Rules
from homeostat.clouds.port import Clouds
from homeostat.identity.trusts import StackTrusts
from homeostat.notifications.sinks import Sinks, installed_sinks
from homeostat.observability.memory import Memory
from homeostat.services.pipeline.prerequisites import Prerequisites
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.database import Database
from homeostat.templates.shared_environments import SharedEnvironment

KEEP_ALIVE_S = 75
"""Keep-alive time of idle connections.

Longer than clients wait between two polls: if the connection closed just then, they would report an error.
"""
BACKLOG = 2048
"""Connections that may wait to be accepted."""
OTHER_FILES = 256
"""Open files of a process besides its client connections: connections to the database and to other services."""
TIDY_S = 1
"""Interval at which a process gives back free memory."""
GRACE_S = 10
"""Time that running requests get to finish when the process stops."""


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Settings of the API process.

    Attributes:
        host: Address to listen on, unless a socket is handed over.
        port: Port to listen on, unless a socket is handed over.
        patience: Timeouts of client connections.
        access_log: Log one line per request.
        metrics: Serve `/metrics`, which needs `prometheus_client`.
        drain_file: While this file exists, `/healthcheck` answers 503.
        fetching: Rules for fetches by URL.
        shared: Environment that applies to all stacks.
        policy: Authorization rules; None for the defaults.
        makes_users: Users are created for servers that log in.
        ec2: Verifies requests signed with keys of users; None if users have no keys.
        proxies: Addresses of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted.
        public_url: URL of the service for links in answers, without version; "" for the client's URL.
    """

    host: str = "127.0.0.1"
    port: int = 8004
    limits: Limits = field(default_factory=Limits)
    patience: Timeouts = field(default_factory=Timeouts)
    quotas: Quotas = field(default_factory=Quotas)
    access_log: bool = False
    metrics: bool = False
    drain_file: Path | None = None
    fetching: Rules = field(default_factory=Rules)
    shared: SharedEnvironment = field(default_factory=SharedEnvironment)
    policy: Policy | None = None
    makes_users: bool = False
    ec2: Ec2 | None = None
    public_url: str = ""
    proxies: Sequence[Network] = ()


def run_api(
    db: Database,
    clock: Clock,
    entropy: Entropy,
    access: Access,
    settings: ApiSettings = ApiSettings(),
    listening: socket.socket | None = None,
    clouds: Clouds | None = None,
    trusts: StackTrusts | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; running requests are finished then.

    Args:
        db: A migrated database.
        listening: A bound socket to serve instead of host and port.
        clouds: Clouds in which things named by templates are looked up; None for no lookups.
        trusts: Trusts of users in the service; None if the service needs no trusts.

    Raises:
        ValueError: The access mode does not allow this address.
    """
    access.check_host(listening.getsockname()[0] if listening is not None else settings.host)
    settings = replace(settings, patience=_within_files(settings.patience))
    run(server(db, clock, entropy, access, settings, clouds, trusts), listening)


def _within_files(patience: Timeouts) -> Timeouts:
    """Raise the limit of open files to fit the connections; return a maximum of connections that fits the limit.

    Without free files no connection can be accepted, so none would be closed to make room for it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = patience.connections_max + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        needed = soft
    return replace(patience, connections_max=max(1, min(patience.connections_max, needed - OTHER_FILES)))


def server(
    db: Database,
    clock: Clock,
    entropy: Entropy,
    access: Access,
    settings: ApiSettings,
    clouds: Clouds | None = None,
    trusts: StackTrusts | None = None,
) -> uvicorn.Server:
    """Return the server, not yet running."""
    existing = Prerequisites(clouds, clock.now, makes_users=settings.makes_users)
    outbound = Outbound(settings.fetching)
    app = create_app(
        db,
        StackService(
            db,
            entropy,
            settings.quotas,
            outbound=outbound,
            prerequisites=existing,
            sinks=Sinks(clouds, outbound, installed_sinks().kinds),
            shared=settings.shared,
            trusts=trusts,
        ),
        clock,
        access=access,
        limits=settings.limits,
        access_log=settings.access_log,
        metrics=settings.metrics,
        drain_file=settings.drain_file,
        policy=settings.policy,
        ec2=settings.ec2,
        body_s=settings.patience.body_s,
        addresses=Addresses(settings.public_url),
    )
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=protocol(settings.patience, needs_peer=access.needs_peer, proxies=settings.proxies),
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=[str(proxy) for proxy in settings.proxies],
        backlog=BACKLOG,
        ws="none",
        h11_max_incomplete_event_size=settings.limits.head_bytes_max,
        lifespan="off",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        callback_notify=tidying(Memory()),
        timeout_notify=TIDY_S,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    return Server(config)


def tidying(memory: Memory) -> Callable[[], Awaitable[None]]:
    """Return a callback that gives free memory back to the system: large answers leave much of it behind."""

    async def tidy() -> None:
        await asyncio.to_thread(memory.tidy)

    return tidy


class Server(uvicorn.Server):
    """uvicorn's server, adapted to sockets that several processes share and to streams that never end."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if sockets:
            # The event loop accepts up to `backlog` connections at once: leave connections to sibling processes.
            self.config.backlog = 1
        await super().startup(sockets)
        for listener in sockets or ():
            # The kernel's queue gets its full length back.
            listener.listen(BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        service: Service = self.config.app.state.service  # type: ignore[union-attr]
        # Open event streams would delay the shutdown for ever.
        service.tail.close()
        await super().shutdown(sockets)


def run(uvicorn_server: uvicorn.Server, listening: socket.socket | None = None) -> None:
    """Run the server until it receives a signal to stop."""
    if listening is None:
        uvicorn_server.run()
        return
    # The event loop does this only for sockets known to be TCP; with Nagle's algorithm, each answer waits 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    uvicorn_server.run([listening])
