"""A local cloud of a test, and the things in it."""

import contextlib
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE_S, QUIET

from homeostat.clouds.local import LocalCloud, processes
from homeostat.clouds.port import ChangeNotice, Creation, Operation
from homeostat.model.observed import Observation

SEEN_WITHIN_S = 1.0 if QUIET else 30.0


WEB = f"""#!/bin/sh
echo "$HOMEOSTAT_NAME" > index.html
exec {sys.executable} -S -m http.server 8080 --bind $HOMEOSTAT_ADDRESS
"""


class Crash(BaseException):
    """The service is gone at this very point."""


def made(cloud: LocalCloud, kind: str, token: str = "token", /, **spec: Any) -> Observation:
    (answer,) = cloud.create(kind, [Creation(token, spec)])
    assert isinstance(answer, Observation), repr(answer)
    return answer


def server(cloud: LocalCloud, name: str = "web", script: str = "", **spec: Any) -> Observation:
    return made(cloud, "server", name, name=name, image="cirros", flavor="m1.tiny", user_data=script, **spec)


def seen(cloud: LocalCloud, kind: str, handle: str) -> dict[str, Any]:
    return dict(cloud.observe(kind, [handle])[0].properties)


def operated(cloud: LocalCloud, kind: str, handle: str, verb: str, **arguments: Any) -> dict[str, Any]:
    (answer,) = cloud.operate(kind, [Operation(handle, verb, arguments)])
    assert isinstance(answer, Observation), repr(answer)
    return dict(answer.properties)


def home(root: Path, handle: str) -> Path:
    return root / "servers" / handle / "root"


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def got(address: str, port: int = 8080) -> str:
    """What the web server there answers; "" while none does."""
    with (
        contextlib.suppress(OSError),
        urllib.request.urlopen(f"http://{address}:{port}/", timeout=PATIENCE_S) as answer,
    ):
        return str(answer.read().decode().strip())
    return ""


def listens(address: str, port: int = 8080) -> bool:
    """Does a server listen there? A dying one may still accept a connection, and reset it at once."""
    try:
        with socket.create_connection((address, port), timeout=PATIENCE_S):
            return True
    except ConnectionResetError:
        return True
    except ConnectionRefusedError:
        return False


def owned(root: Path) -> list[int]:
    directories = [
        str(entry) for kind in ("servers", "load_balancers", "floating_ips") for entry in (root / kind).glob("*")
    ]
    return [pid for pids in processes.belonging(directories).values() for pid in pids]


class Watching:
    """Observations with the time they came, collected in a thread."""

    def __init__(self, cloud: LocalCloud) -> None:
        self.came: dict[ChangeNotice, float] = {}
        self._over = threading.Event()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(cloud,))

    def _watch(self, cloud: LocalCloud) -> None:
        for notice in cloud.watch(self._stop):
            self.came[notice] = time.monotonic()

    def _stop(self) -> bool:
        self._begun.set()
        return self._over.is_set()

    def __enter__(self) -> "Watching":
        self._thread.start()
        assert self._begun.wait(PATIENCE_S)
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()
