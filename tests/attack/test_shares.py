"""One user takes all that a process has of something that is shared: it is refused, and a neighbour is served.

Each attack holds what it takes while the neighbour works, and takes it again as soon as it is taken away.
"""

import contextlib
import itertools
import resource
import select
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import bcrypt
import httpx
import pytest

from homeostat.api.http.connections import Timeouts
from homeostat.api.http.event_streams import FOLLOWERS_EACH, FOLLOWERS_MAX
from tests.attack.service import NEIGHBOUR, READ_S, SMALL, Attacked, Neighbour, create, serving
from tests.waiting import PATIENCE_S, until

SMALL_STACKS, READS = 2, 20
"""What the neighbour gets done beside each attack, at least."""
FILES = 8192
FLOODERS = 12
MORE = 100
"""Connections beyond those that one address may have."""
OTHER_ADDRESS = "127.0.0.66"


@pytest.fixture(autouse=True, scope="module")
def files() -> Iterator[None]:
    """As many open files as these tests need, for them and for the services that they start."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if before[1] == resource.RLIM_INFINITY else min(FILES, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], most), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@dataclass(slots=True)
class Flood:
    """Threads that go on until they are told to stop. seen — how often each answer came."""

    act: Callable[["Flood"], None]
    seen: Counter[int] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def flowing(self, threads: int = FLOODERS) -> Iterator["Flood"]:
        """Fails: with the error of a thread that has ended by it, since the attack has ended with it."""
        with ThreadPoolExecutor(threads) as pool:
            acts = [pool.submit(self.act, self) for _ in range(threads)]
            try:
                yield self
            finally:
                self.stop.set()
            for each in acts:
                each.result()


def works_on(attacked: Attacked, attack: Callable[[], bool]) -> None:
    """A neighbour works while the attack goes on. attack — whether it has begun."""
    until(attack, "the attack")
    with Neighbour(attacked).living() as neighbour:
        until(
            lambda: len(neighbour.stacks) >= SMALL_STACKS and len(neighbour.reads) >= READS,
            f"the work of the neighbour; {neighbour.errors[-3:]}",
        )
    print(f"reads: {neighbour.percentile(neighbour.reads, 99) * 1000:.0f} ms")
    assert neighbour.errors == []
    assert neighbour.percentile(neighbour.reads, 99) <= READ_S


def connected(attacked: Attacked, address: str = "127.0.0.1") -> socket.socket:
    parts = urlsplit(attacked.service.url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), PATIENCE_S, (address, 0))


def test_streams_of_events(attacked: Attacked) -> None:
    """One project gets a quarter of them; it is refused what is beyond, and others follow their stacks."""
    with contextlib.ExitStack() as held, attacked.client("greedy") as greedy, attacked.client(NEIGHBOUR) as neighbour:
        path = urlsplit(events_of(greedy)).path
        asking = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n".encode()
        answers: list[bytes] = []
        for _ in range(FOLLOWERS_EACH + 10):
            one = held.enter_context(connected(attacked))
            one.sendall(asking)
            answers.append(one.recv(4096))
        refused = [each for each in answers if b"200 OK" not in each]
        assert len(refused) == 10
        assert all(each.startswith(b"HTTP/1.1 429 ") and b"retry-after: 5" in each.lower() for each in refused)
        with neighbour.stream("GET", events_of(neighbour), headers={"Accept": "text/event-stream"}) as stream:
            assert any(line.startswith("data:") for line in stream.iter_lines())
        works_on(attacked, lambda: True)
    assert FOLLOWERS_MAX >= 4 * FOLLOWERS_EACH


def events_of(http: httpx.Client) -> str:
    made = create(http, "followed", SMALL)
    assert made.status_code == 201, made.text
    return f"{made.json()['stack']['links'][0]['href']}/events"


def is_let_go(one: socket.socket) -> bool:
    """Return whether the service has answered; `select` cannot wait for as many files as there are here."""
    poll = select.poll()
    poll.register(one, select.POLLIN)
    return bool(poll.poll(0))


@pytest.mark.parametrize(
    "beginning",
    [b"GET /v1/p/stacks HTTP/1.1\r\nHost: 12", b"POST /v1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{"],
    ids=["heads", "bodies"],
)
def test_connections_whose_clients_owe_something(attacked: Attacked, beginning: bytes) -> None:
    """More of them than one address may have, each that is let go replaced at once: a new one is answered."""
    held: list[socket.socket] = []
    answers: list[bytes] = []

    def refill(flood: Flood) -> None:
        while not flood.stop.wait(0.002):
            if len(held) > Timeouts().connections_max // 2 + MORE:
                if not is_let_go(held[0]):
                    continue  # as fast as the service lets go, so that only `MORE` wait to be let in
                with held.pop(0) as oldest:
                    answers.append(oldest.recv(4096))
            held.append(connected(attacked))
            held[-1].sendall(beginning)

    try:
        with Flood(refill).flowing(1):
            works_on(attacked, lambda: len(answers) > MORE)
        assert all(each.startswith(b"HTTP/1.1 503 ") and b"retry-after: 5" in each.lower() for each in answers)
    finally:
        for each in held:
            each.close()


def test_requests_of_one_project(attacked: Attacked) -> None:
    """They wait for one another, not others for them."""

    def ask(flood: Flood) -> None:
        with attacked.client("greedy") as http:
            while not flood.stop.is_set():
                flood.seen[http.get("stacks").status_code] += 1

    with Flood(ask).flowing() as flood:
        works_on(attacked, lambda: flood.seen[200] > FLOODERS)
    assert set(flood.seen) == {200}


def test_large_bodies_of_one_project(attacked: Attacked) -> None:
    """They are read one after the other, and not all kept in memory."""
    body = b'{"stack_name": "a", "padding": "' + b"x" * 900_000 + b'"}'

    def send(flood: Flood) -> None:
        with attacked.client("greedy") as http:
            while not flood.stop.is_set():
                answer = http.post("stacks", content=body, headers={"Content-Type": "application/json"})
                flood.seen[answer.status_code] += 1

    attacked.forget_peaks()
    with Flood(send).flowing() as flood:
        works_on(attacked, lambda: flood.seen[400] > FLOODERS)
    assert set(flood.seen) <= {400, 429, 503}
    print(attacked.peaks_mb())


def test_health_checks(attacked: Attacked) -> None:
    """Who asks all the time does not make the process look dead to the load balancer."""

    def ask(flood: Flood) -> None:
        with httpx.Client(base_url=attacked.service.url, timeout=PATIENCE_S) as http:
            while not flood.stop.is_set():
                flood.seen[http.get("/healthcheck").status_code] += 1

    with Flood(ask).flowing() as flood:
        works_on(attacked, lambda: flood.seen[200] > FLOODERS)
        assert httpx.get(f"{attacked.service.url}/healthcheck", timeout=PATIENCE_S).status_code == 200
    assert set(flood.seen) == {200}


def test_wrong_passwords(tmp_path: Path) -> None:
    """Each costs a hash: they wait for one another within the share of their address, others log in meanwhile."""
    users = tmp_path / "users"
    users.write_text("".join(f"{name}:{bcrypt.hashpw(b'right', bcrypt.gensalt(10)).decode()}\n" for name in "ab"))
    with serving(tmp_path, "--access", "basic", "--htpasswd", str(users), login=("a", "right")) as attacked:

        def guess(flood: Flood) -> None:
            transport = httpx.HTTPTransport(local_address=OTHER_ADDRESS)
            with httpx.Client(base_url=attacked.service.url, transport=transport, timeout=PATIENCE_S) as http:
                for number in itertools.count():
                    if flood.stop.is_set():
                        return
                    flood.seen[http.get("/v1/a/stacks", auth=("a", f"wrong-{number}")).status_code] += 1

        with Flood(guess).flowing() as flood:
            until(lambda: flood.seen[401] > FLOODERS, "guesses")
            with httpx.Client(base_url=attacked.service.url, timeout=PATIENCE_S) as http:
                for _ in range(READS):
                    # One who is not known yet, too: nobody has logged in as this user before.
                    assert http.get("/v1/b/stacks", auth=("b", "right")).status_code == 200
        assert set(flood.seen) <= {401, 429}
