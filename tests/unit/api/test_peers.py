"""Who has connected, as the kernel tells it."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tests.attack.strangers import STRANGER, connected_stranger, needs_root

from homeostat.api.http import peers
from homeostat.api.http.peers import uid_of_peer


@pytest.fixture(params=["netlink", "table"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to ask; the second one is for kernels that do not know the first."""

    def refuse(family: int, ends: peers.Ends) -> None:
        raise PermissionError

    if request.param == "table":
        monkeypatch.setattr(peers, "_uid_by_netlink", refuse)
    else:
        monkeypatch.setattr(peers, "_read_from_table", refuse)
    return str(request.param)


@pytest.fixture(params=["127.0.0.1", "::1"])
def listening(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    try:
        server = socket.create_server((request.param, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {request.param}")
    with server:
        yield server


def connected(listening: socket.socket, keep: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Our end and the other one."""
    there = keep.enter_context(socket.create_connection(listening.getsockname()[:2]))
    here, _ = listening.accept()
    return keep.enter_context(here), there


@pytest.mark.usefixtures("way")
def test_a_process_of_the_same_user(listening: socket.socket) -> None:
    with ExitStack() as keep:
        for _ in range(3):
            here, _there = connected(listening, keep)
            assert uid_of_peer(here) == os.geteuid()


@needs_root
@pytest.mark.usefixtures("way")
def test_a_process_of_another_user(listening: socket.socket) -> None:
    host, port = listening.getsockname()[:2]
    with ExitStack() as keep:
        keep.enter_context(connected_stranger(host, port))
        here = keep.enter_context(listening.accept()[0])
        assert uid_of_peer(here) == STRANGER


@pytest.mark.usefixtures("way")
def test_a_peer_that_has_gone_has_no_user(listening: socket.socket) -> None:
    """The kernel says of a socket that nobody has any more that it is root's."""
    leaves: list[Callable[[socket.socket], None]] = [socket.socket.close, lambda there: there.shutdown(socket.SHUT_WR)]
    for leave in leaves:
        with ExitStack() as keep:
            here, there = connected(listening, keep)
            there.send(b"GET / HTTP/1.1\r\n")
            leave(there)
            assert uid_of_peer(here) is None


def test_an_unknown_peer_has_no_user() -> None:
    here, there = socket.socketpair()
    with here, there:
        assert uid_of_peer(here) is None
