"""The health check of load balancers: plain requests, and a real HAProxy with the section of the how-to."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from homeostat.api.access.auth import NoAccess
from homeostat.api.server import ApiSettings
from homeostat.store.database import Database
from tests.docs.pages import DOCS
from tests.docs.typing_commands import free_port
from tests.waiting import until
from tests.wire.running import database, serving

HOW_TO = DOCS / "howto" / "operate.md"
PATHS = ("/healthcheck", "/orchestration/healthcheck", "/a/b/healthcheck")


@pytest.mark.parametrize("path", PATHS)
def test_it_answers_each_method_without_a_caller_and_below_any_prefix(path: str, tmp_path: Path) -> None:
    with database(tmp_path) as db, serving(db, NoAccess()) as url:
        answers = {method: httpx.request(method, f"{url}{path}") for method in ("GET", "HEAD", "OPTIONS")}
        assert {method: answer.status_code for method, answer in answers.items()} == dict.fromkeys(answers, 200)
        assert (answers["GET"].text, answers["HEAD"].text) == ("OK", "")
        assert answers["GET"].headers["cache-control"] == "no-store"
        assert httpx.post(f"{url}{path}").status_code == 405
        assert httpx.get(f"{url}/v1/p/healthcheck").status_code == 404


def test_it_answers_as_haproxy_asks(tmp_path: Path) -> None:
    """HTTP/1.0, without a Host."""
    with database(tmp_path) as db, serving(db, NoAccess()) as url:
        port = int(url.rpartition(":")[2])
        for line in (
            b"OPTIONS /healthcheck HTTP/1.0",
            b"GET /healthcheck HTTP/1.0",
            b"HEAD /healthcheck HTTP/1.1\r\nHost: x",
        ):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(line + b"\r\nConnection: close\r\n\r\n")
                assert re.match(rb"HTTP/1\.[01] 200 ", connection.recv(1000)), line


def test_a_file_drains_it(tmp_path: Path) -> None:
    drain = tmp_path / "drain"
    with database(tmp_path) as db, serving(db, NoAccess(), ApiSettings(drain_file=drain)) as url:
        assert httpx.get(f"{url}/healthcheck").status_code == 200
        drain.touch()
        drained = httpx.get(f"{url}/healthcheck")
        assert (drained.status_code, drained.text) == (503, "DISABLED BY FILE\n")
        assert httpx.get(f"{url}/v1/p/stacks").status_code == 200, "what comes is served all the same"
        drain.unlink()
        assert httpx.get(f"{url}/healthcheck").status_code == 200


def test_a_database_that_hangs_is_a_reason_and_holds_up_no_check(tmp_path: Path) -> None:
    """However many ask: each gets its answer in time."""
    hangs = threading.Event()

    class Hanging(Database):
        def read(self):  # type: ignore[no-untyped-def]
            hangs.wait(30.0)
            return super().read()

    with database(tmp_path) as db:
        hanging = Hanging(db.url, time.time)
        with contextlib.closing(hanging), serving(hanging, NoAccess()) as url:
            for _ in range(2):
                answer = httpx.get(f"{url}/healthcheck")
                assert answer.status_code == 503
                assert answer.text == "the database did not answer within 3 s\n"
            hangs.set()
            until(lambda: httpx.get(f"{url}/healthcheck").status_code == 200, "the database to answer")


# -- a real HAProxy ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def balancing(text: str, folder: Path) -> Iterator[None]:
    program = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no haproxy: install the package 'haproxy'")
    (folder / "haproxy.cfg").write_text(text)
    process = subprocess.Popen([str(program), "-db", "-f", str(folder / "haproxy.cfg")])
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def section(port: int, servers: list[str]) -> str:
    """The section of the how-to, with these ports in the place of its own."""
    found: str
    (found,) = re.findall(r"^```haproxy\n(.*?)^```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert "option httpchk" in found
    for name, url in zip(("10.0.0.11:8004", "10.0.0.12:8004"), servers, strict=True):
        assert name in found
        found = found.replace(name, url.removeprefix("http://"))
    assert "bind 10.0.0.10:8004" in found
    timeouts = "defaults\n    mode http\n    timeout connect 5s\n    timeout client 60s\n    timeout server 60s\n"
    return timeouts + found.replace("bind 10.0.0.10:8004", f"bind 127.0.0.1:{port}")


def test_haproxy_sends_requests_to_those_that_serve(tmp_path: Path) -> None:
    drains = [tmp_path / "first", tmp_path / "second"]
    port = free_port()
    with contextlib.ExitStack() as stack:
        db = stack.enter_context(database(tmp_path))
        urls = [stack.enter_context(serving(db, NoAccess(), ApiSettings(drain_file=each))) for each in drains]
        stack.enter_context(balancing(section(port, urls), tmp_path))

        def code() -> int:
            try:
                return httpx.get(f"http://127.0.0.1:{port}/v1/p/stacks").status_code
            except httpx.TransportError:
                return 0

        until(lambda: code() == 200, "HAProxy to serve")
        drains[0].touch()
        drains[1].touch()
        until(lambda: code() == 503, "both to be taken out")
        drains[1].unlink()
        until(lambda: code() == 200, "one to be back")
