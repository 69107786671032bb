"""Two versions share a database while users go on: forth, back, and forth again, and nobody notices."""

import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.databases import new_database
from tests.upgrade.installations import CURRENT, Installation, installed
from tests.upgrade.states import VOLUME, stand_in, template
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.timeout(600)
LIVES = 3
"""Stacks that each user makes, changes and deletes between two steps of an upgrade, at least."""


@dataclass
class Member:
    """An API or a worker of one version; url — of an API."""

    process: "subprocess.Popen[bytes]"
    url: str = ""

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        # An API ends what it has begun, and then by the signal.
        assert self.process.wait(PATIENCE_S) in (0, -signal.SIGTERM)


@dataclass
class User:
    """Makes stacks, changes and deletes them, one after the other, at whichever API listens."""

    name: str
    addresses: list[str]
    over: threading.Event = field(default_factory=threading.Event)
    lives: int = 0
    problem: str = ""

    def run(self) -> None:
        try:
            while not self.over.is_set():
                self._live(f"{self.name}-{self.lives}")
                self.lives += 1
        except (AssertionError, httpx.HTTPError) as error:
            self.problem = f"{type(error).__name__}: {error}"

    def _live(self, stack: str) -> None:
        wanted: dict[str, Any] = {"disk": VOLUME, "text": stand_in(wait_secs=0)}
        made = self._send("POST", "/stacks", {"stack_name": stack, "template": template(wanted)})
        place = f"/stacks/{stack}/{made['stack']['id']}"
        self._await(place, "CREATE_COMPLETE")
        self._send("PUT", place, {"template": template({**wanted, "more": VOLUME})})
        self._await(place, "UPDATE_COMPLETE")
        self._send("DELETE", place)
        self._await(place, "DELETE_COMPLETE")

    def _await(self, place: str, status: str) -> None:
        def reached() -> bool:
            shown = self._send("GET", place)["stack"]
            assert not shown["stack_status"].endswith("FAILED"), shown["stack_status_reason"]
            return bool(shown["stack_status"] == status)

        until(reached, f"{place} to be {status}")

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to an API that listens: each of these answers, also one that is about to end."""

        def answered() -> httpx.Response | None:
            for address in [*self.addresses]:
                try:
                    return httpx.request(method, f"{address}{path}", json=body, follow_redirects=True, timeout=60)
                except httpx.ConnectError:
                    continue
            return None

        answer = until(answered, "an API that listens")
        assert answer.status_code in (200, 201, 202, 204), (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None


class Service:
    """APIs and workers of either version on one database.

    Takes: keep — where what is started is ended; addresses — of the APIs, which users read.
    """

    def __init__(self, keep: ExitStack, addresses: list[str]) -> None:
        self._keep = keep
        self._addresses = addresses

    def api(self, of: Installation) -> Member:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        member = Member(self._start(of, "api", "--port", str(port)), f"{url}/v1/default")

        def listens() -> bool:
            assert member.process.poll() is None
            try:
                return httpx.get(f"{url}/healthcheck").status_code == 200
            except httpx.ConnectError:
                return False

        until(listens, "the API to listen")
        self._addresses.insert(0, member.url)
        return member

    def worker(self, of: Installation) -> Member:
        return Member(self._start(of, "worker"))

    def stop(self, member: Member) -> None:
        member.stop()
        if member.url:
            self._addresses.remove(member.url)

    def _start(self, of: Installation, *words: str) -> "subprocess.Popen[bytes]":
        log = (of.home.root.parent / "log").open("ab")
        command = [*of.home.command, *words, *of.options, "--state-dir", str(of.home.root)]
        process = subprocess.Popen(command, env=of.home.environment(), stdout=log, stderr=log)
        self._keep.callback(process.kill)
        return process


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def old(request: pytest.FixtureRequest) -> Iterator[Installation]:
    """The last release on an empty state and database."""
    with (
        tempfile.TemporaryDirectory(prefix="u") as name,
        new_database(str(request.getfixturevalue(f"{request.param}_url"))) as url,
        installed(Path(name), "--database", url, "--encryption-keys", f"{name}/keys") as found,
    ):
        found.run("keys", "generate", "--encryption-keys", f"{name}/keys")
        yield found


@contextmanager
def busy(users: list[User]) -> Iterator[None]:
    threads = [threading.Thread(target=user.run) for user in users]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for user in users:
            user.over.set()
        for thread in threads:
            thread.join(2 * PATIENCE_S)


def go_on(users: list[User]) -> None:
    """Wait until each user has got something done."""
    before = [user.lives for user in users]

    def done() -> bool:
        assert [user.problem for user in users] == [""] * len(users)
        return all(user.lives >= start + LIVES for user, start in zip(users, before, strict=True))

    until(done, "users to get something done")


def test_users_notice_neither_an_upgrade_nor_the_way_back(old: Installation) -> None:
    new, addresses = old.of(CURRENT), list[str]()
    users = [User(name, addresses) for name in ("ann", "bob")]
    with ExitStack() as keep:
        service = Service(keep, addresses)
        old.run("migrate", *old.options[:2])
        there = [service.api(old), service.worker(old), service.worker(old)]
        with busy(users):
            go_on(users)
            new.run("migrate", "--phase", "expand", *new.options[:2])
            go_on(users)
            for version in (new, old, new):
                for start in (service.api, service.worker, service.worker):
                    there.append(start(version))
                    service.stop(there.pop(0))
                    go_on(users)
            new.run("migrate", *new.options[:2])
            go_on(users)
        assert [user.problem for user in users] == ["", ""]
        listed = httpx.get(f"{addresses[0]}/stacks").json()["stacks"]
        assert listed == []
        assert new.run("untracked", *new.options[:2], "--json").json()["untracked"] == []
        for member in there:
            service.stop(member)
