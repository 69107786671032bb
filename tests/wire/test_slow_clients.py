"""Who sends or reads slowly is let go, and others are answered meanwhile. Real sockets."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from homeostat.api.access.auth import NoAccess
from homeostat.api.app import Limits
from homeostat.api.http.connections import Timeouts
from homeostat.api.server import ApiSettings
from homeostat.clouds.simulated import SimulatedCloud
from tests.waiting import PATIENCE_S
from tests.wire import templates
from tests.wire.running import database, serving

SLOW = 200
MANY = 60
PATIENCE = Timeouts(head_s=3.0, body_s=1.0, stalled_s=0.5, connections_max=600)
HEAD = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
BODY = b"POST /v1/p/stacks HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000\r\n\r\n{"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = ApiSettings(limits=Limits(), patience=PATIENCE)
    cloud = SimulatedCloud(lambda: 0.0)
    with (
        database(tmp_path_factory.mktemp("slow")) as db,
        serving(db, NoAccess(), settings, cloud=cloud) as address,
    ):
        yield address


def connected(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), PATIENCE_S)


def read_to_end(one: socket.socket) -> bytes:
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := one.recv(65536):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    ("beginning", "answer"),
    [
        (b"", b"The head of a request has to arrive within 3 s."),
        (b"GET /v1/p/sta", b"The head of a request has to arrive within 3 s."),
        (BODY, b"The body has to arrive within 1 s."),
        (BODY.replace(b"Content-Length: 1000", b"Transfer-Encoding: chunked"), b"The body has to arrive within 1 s."),
    ],
)
def test_slow_senders(url: str, beginning: bytes, answer: bytes) -> None:
    """Each of many is told, and its connection closed; who is in time is answered while they are there."""
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connected(url)) for _ in range(SLOW)]
        for one in slow:
            one.sendall(beginning)
        assert httpx.get(f"{url}/healthcheck", timeout=PATIENCE_S).text == "OK"
        for one in slow:
            reported = read_to_end(one)
            assert reported.startswith(b"HTTP/1.1 408 ")
            assert answer in reported
            assert b"\r\nconnection: close" in reported.lower()


def test_a_byte_now_and_then_gains_nothing(url: str) -> None:
    """The time is that of the whole head, not between two bytes."""
    with connected(url) as one:
        one.settimeout(0.05)
        for _ in range(1000):
            try:
                one.sendall(b"G")
                reported = one.recv(65536)
                assert not reported or reported.startswith(b"HTTP/1.1 408 ")
                return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    raise AssertionError("the connection stays open")


def test_slow_readers(url: str) -> None:
    """Who takes nothing of a long answer is let go; the answer is not kept for him."""
    with httpx.Client(base_url=f"{url}/v1/readers", timeout=PATIENCE_S) as http:
        for number in range(MANY):
            name = f"{'n' * 200}-{number}"
            assert http.post("stacks", json={"stack_name": name, "template": templates.HELLO}).status_code == 201
        whole = http.get("stacks").content
    asking = b"GET /v1/readers/stacks HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connected(url) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        requests = 8_000_000 // len(whole) + 1
        with contextlib.suppress(ConnectionError):
            one.sendall(asking * requests)
        assert httpx.get(f"{url}/healthcheck", timeout=PATIENCE_S).text == "OK"
        one.settimeout(PATIENCE_S)
        with pytest.raises(ConnectionError):  # it is reset, not ended
            one.sendall(asking * 1_000_000)


def test_too_many_connections(tmp_path: Path) -> None:
    """Beyond the share of an address the one that waits for longest is let go: it is told when to come back."""
    few = ApiSettings(patience=Timeouts(connections_max=20))
    with (
        contextlib.ExitStack() as stack,
        database(tmp_path) as db,
        serving(db, NoAccess(), few, cloud=SimulatedCloud(lambda: 0.0)) as url,
    ):
        several = [stack.enter_context(connected(url)) for _ in range(few.patience.connections_max // 2 + 1)]
        several[-1].sendall(b"GET /healthcheck HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert read_to_end(several[-1]).startswith(b"HTTP/1.1 200 ")
        reported = read_to_end(several[0])
    assert reported.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nretry-after: 5\r\n" in reported.lower()
    assert b'"type":"ServiceUnavailable"' in reported


def test_streams_outlast_it(url: str) -> None:
    """A client that follows events reads for longer than any of these times, and is not cut off."""
    with httpx.Client(base_url=f"{url}/v1/followers", timeout=PATIENCE_S) as http:
        created = http.post("stacks", json={"stack_name": "followed", "template": templates.HELLO})
        path = created.headers["location"].partition("/v1/followers/")[2]
        with http.stream("GET", f"{path}/events", headers={"Accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("retry:")
            with connected(url) as one:  # when this one is let go, the time of the other is over, too
                assert b"408" in read_to_end(one)
            http.patch(path, json={"parameters": {"word": "x"}})
            assert any(line.startswith("data:") and "UPDATE_IN_PROGRESS" in line for line in lines)


def test_what_breaks_off_is_not_done(url: str) -> None:
    """A body whose end does not come is not acted upon, though it could be read."""
    body = b'{"stack_name": "half", "template": {"heat_template_version": "2018-08-31"}}'
    chunk = b"%x\r\n%s\r\n" % (len(body), body)
    for ending in (b"", b"zz\r\n"):
        with connected(url) as one:
            one.sendall(
                b"POST /v1/half/stacks HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + ending
            )
            one.shutdown(socket.SHUT_WR)
            assert not read_to_end(one).startswith(b"HTTP/1.1 2")
    assert httpx.get(f"{url}/v1/half/stacks", timeout=PATIENCE_S).json()["stacks"] == []
