"""Waiting for servers."""

import socket
import time
from collections.abc import Callable

from tests.openstack.cloud.errors import Failure

LOOK_S = 0.2
CONNECT_S = 2.0


def wait_for(what: str, condition: Callable[[], bool], within_s: float) -> None:
    """Fails: Failure when it takes longer."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(f"{what} is not ready after {within_s:.0f} s")
        time.sleep(LOOK_S)


def listening(port: int) -> bool:
    with socket.socket() as each:
        each.settimeout(CONNECT_S)
        return each.connect_ex(("127.0.0.1", port)) == 0
