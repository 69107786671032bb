"""Runs the all-in-one service in this process or in the background."""

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from homeostat.cli.errors import Problem, Unreachable
from homeostat.cli.settings import ServiceSettings, with_own_region
from homeostat.cli.state_directory import Service, State
from homeostat.cli.supervisor import Run, Supervisor
from homeostat.model.status import DRAINED

LOG = logging.getLogger(__name__)
START_S = 60.0
"""Time within which a detached service must answer."""
_POLL_S = 0.1


def supervise(settings: ServiceSettings, run: Run, load: Callable[[], None]) -> None:
    """Run API and workers until a signal. The caller has claimed the state directory.

    The supervisor owns the listening socket: while an API process is replaced, connections wait instead of failing.

    Args:
        run: Runs a command in a child process.
        load: Loads modules for the children before the first fork.
    """
    state = State(settings.state)
    with listening(settings.host, settings.port) as server:
        url = url_of(settings.host, server.getsockname()[1])
        commands = {name: ["api", "--fd", str(server.fileno())] for name in _names("api", settings.apis)}
        for number, name in enumerate(_names("worker", settings.workers)):
            commands[name] = ["worker", *_metrics_flags(settings, number)]

        def announce(children: Mapping[str, int]) -> None:
            state.announce(Service(os.getpid(), url, children))

        LOG.info("serving at %s, state in %s", url, settings.state)
        try:
            public_url = settings.public_url or url
            known = replace(settings, regions=with_own_region(settings.regions, url), public_url=public_url)
            load()
            Supervisor(run, commands, known.environment(), announce, (server.fileno(),)).run()
        finally:
            state.retract()


def _names(name: str, count: int) -> list[str]:
    """Return the names of `count` processes."""
    return [name] if count == 1 else [f"{name}-{number + 1}" for number in range(count)]


def _metrics_flags(settings: ServiceSettings, worker: int) -> list[str]:
    port = settings.metrics_port_of(worker)
    return [] if port is None else ["--metrics-port", str(port)]


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raise Problem when the port is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        remedy = "choose another with --port, or any free one with --port 0"
        raise Problem(f"cannot listen on {host}:{port}: {error.strerror}; {remedy}") from error


def url_of(host: str, port: int) -> str:
    """Return the URL of the service, with an address that clients can reach instead of a wildcard."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def start_detached(settings: ServiceSettings) -> Service:
    """Start the service in the background, and wait until it, or a service started concurrently, answers.

    Raises:
        Problem: The service ended early; has the end of its log.
        Unreachable: The service takes too long.
    """
    state = State(settings.state)
    state.make()
    with open(state.log, "ab") as log:
        begin = log.tell()
        child = subprocess.Popen(
            [sys.executable, "-m", "homeostat", "serve"],
            env={**os.environ, **settings.environment()},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        service = state.running()
        if service is not None and answers(service.url):
            return service
        if child.poll() is not None and state.running() is None:
            raise Problem(f"the service did not start:\n{_log_since(state, begin)}")
        time.sleep(_POLL_S)
    raise Unreachable(f"the service does not answer after {START_S:.0f} s; see {state.log}")


def start_for_client(settings: ServiceSettings) -> Service:
    """Start the service in the background, on a free port if the default port is taken."""
    try:
        listening(settings.host, settings.port).close()
    except Problem:
        settings = replace(settings, port=0)
    return start_detached(settings)


def answers(url: str) -> bool:
    import httpx

    from homeostat.clouds.tls import verifying

    try:
        answer = httpx.get(f"{url}/healthcheck", timeout=5.0, verify=verifying())
        return answer.is_success or answer.text.startswith(DRAINED)
    except httpx.TransportError:
        return False


def _log_since(state: State, begin: int) -> str:
    """Return the service's log since its start, at most the last 2000 characters."""
    with open(state.log, "rb") as log:
        log.seek(begin)
        return log.read().decode(errors="replace").strip()[-2000:]
