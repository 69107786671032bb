"""Whatever is sent, nothing is answered with a 5xx, the service lives on, and what others were promised is kept.

`make fuzz-requests REQUESTS=100000` plays more of it. A failure names its seed: the same one makes the same request.
"""

import contextlib
import logging
import os
import re
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
import pytest

from tests.waiting import PATIENCE_S, until
from tests.wire import templates
from tests.wire.malformed import Generator, Known, Malformed
from tests.wire.running import Running, settled

REQUESTS = int(os.environ.get("HOMEOSTAT_REQUESTS", "1500"))
SEED = os.environ.get("HOMEOSTAT_SEED", "1")
CLIENTS = 4
PER_PROJECT = 1000
"""Requests in one project, so that what they happen to make does not pile up."""
WRITES_EACH = 100
"""One valid write after so many requests of a client."""
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
NO_BODY = (204, 304)


class BrokenOff(Exception):
    """The connection ended before an answer did."""


class Connection:
    """One connection to the service, made anew when it has ended."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 0)
        self._socket: socket.socket | None = None
        self._read = b""

    def answers(self, one: Malformed) -> Iterator[tuple[int, bytes]]:
        """Codes and heads. Ends early, without an error, only for what may break off."""
        try:
            self._send(one)
            for method in one.methods:
                code, head, whole = self._answer(method)
                yield code, head
                if not whole or b"\r\nconnection: close" in head.lower():
                    self.close()
                    return
        except (BrokenOff, OSError):
            self.close()
            if not one.breaks_off:
                raise
        if one.breaks_off:
            self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._read = None, b""

    def _send(self, one: Malformed) -> None:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, PATIENCE_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):  # an answer that came before the end of the request is still to be read
            self._socket.sendall(one.sent)
            if one.breaks_off:
                self._socket.shutdown(socket.SHUT_WR)

    def _answer(self, method: str) -> tuple[int, bytes, bool]:
        """Code, head; was it read to its end?"""
        while True:
            while b"\r\n\r\n" not in self._read:
                self._more()
            head, _, self._read = self._read.partition(b"\r\n\r\n")
            code = int(head[9:12])
            if code >= 200:
                break
        length = LENGTH.search(head)
        if method == "HEAD" or code in NO_BODY:
            return code, head, True
        if length is None:
            return code, head, False
        size = int(length[1])
        while len(self._read) < size:
            self._more()
        self._read = self._read[size:]
        return code, head, True

    def _more(self) -> None:
        assert self._socket is not None
        part = self._socket.recv(65536)
        if not part:
            raise BrokenOff
        self._read += part


@dataclass
class Writer:
    """Makes, changes and deletes stacks in between, and knows what it was promised. promised — id -> the value of its
    parameter, None for one that is deleted."""

    http: httpx.Client
    name: str
    promised: dict[str, str | None] = field(default_factory=dict)

    def write(self, number: int) -> None:
        live = [stack_id for stack_id, word in self.promised.items() if word is not None]
        word = f"w{number}"
        if not live or number % 4 == 0:
            body = {"stack_name": f"{self.name}-{number}", "template": templates.HELLO, "parameters": {"word": word}}
            answer = self.http.post("stacks", json=body)
            assert answer.status_code == 201, answer.text
            self.promised[answer.json()["stack"]["id"]] = word
        elif number % 4 == 3:
            assert self.http.delete(self._path(live[0])).status_code == 204
            self.promised[live[0]] = None
        else:
            answer = self.http.patch(self._path(live[-1]), json={"parameters": {"word": word}})
            assert answer.status_code == 202, answer.text
            self.promised[live[-1]] = word

    def check(self) -> None:
        """All of it is so."""
        listed = {each["id"] for each in self.http.get("stacks", params={"limit": 10_000}).json()["stacks"]}
        for stack_id, word in self.promised.items():
            if word is None:
                until(lambda: self._status(stack_id) == "DELETE_COMPLETE", f"{stack_id} to be deleted")  # noqa: B023
                continue
            assert stack_id in listed
            stack = settled(self.http, stack_id)
            assert stack["stack_status"].endswith("_COMPLETE"), stack["stack_status_reason"]
            assert stack["parameters"]["word"] == word
            assert {each["output_key"]: each["output_value"] for each in stack["outputs"]}["said"] == word

    def _path(self, stack_id: str) -> str:
        return str(self.http.get(f"stacks/{stack_id}").headers["location"])

    def _status(self, stack_id: str) -> str:
        return str(self.http.get(self._path(stack_id)).json()["stack"]["stack_status"])


class Errors(logging.Handler):
    """What the service logs as an error meanwhile."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(self.format(record))


@pytest.fixture
def errors() -> Iterator[Errors]:
    handler = Errors()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


class Play:
    """A share of the requests, on one connection."""

    def __init__(self, service: Running, generator: Generator, client: int) -> None:
        self._service = service
        self._generator = generator
        self._client = client
        self._connection = Connection(service.url)
        self.codes: Counter[int] = Counter()
        self.failures: list[str] = []

    def run(self, writer: Writer) -> None:
        known = self._known(0)
        try:
            for count, number in enumerate(range(self._client, REQUESTS, CLIENTS)):
                if count and count % (PER_PROJECT // CLIENTS) == 0:
                    known = self._known(count)
                if count % WRITES_EACH == 0:
                    writer.write(count // WRITES_EACH)
                self._ask(f"{SEED}-{number}", known)
        finally:
            self._connection.close()

    def _ask(self, seed: str, known: Known) -> None:
        made = self._generator.make(seed, known)
        try:
            for code, head in self._connection.answers(made):
                self.codes[code] += 1
                documented = code == 503 and b"\r\nretry-after:" in head.lower()
                if code >= 500 and not documented:
                    self.failures.append(f"seed {seed}: {code} for {made.sent[:1000]!r}")
        except (BrokenOff, OSError) as error:
            self.failures.append(f"seed {seed}: no answer ({error!r}) to {made.sent[:1000]!r}")

    def _known(self, number: int) -> Known:
        """A project with a stack, for requests that are nearly right."""
        project = f"odd-{self._client}-{number}"
        with httpx.Client(base_url=self._service.endpoint(project), timeout=PATIENCE_S) as http:
            created = http.post("stacks", json={"stack_name": "known", "template": templates.HELLO})
            assert created.status_code == 201, created.text
        stack_id = created.json()["stack"]["id"]
        arn = f"arn:openstack:heat::{project}:stacks/known/{stack_id}/resources/name"
        names = {"stack_name": "known", "stack_id": stack_id, "stack": "known", "resource_name": "name"}
        return Known({"project": project, "type_name": "OS::Heat::TestResource", "arn": arn, **names})


def test_malformed_requests(service: Running, errors: Errors) -> None:
    generator = Generator(httpx.get(f"{service.url}/openapi.json").json())
    plays = [Play(service, generator, client) for client in range(CLIENTS)]
    with httpx.Client(base_url=service.endpoint("kept"), timeout=PATIENCE_S) as http:
        writers = [Writer(http, f"kept-{client}") for client in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(Play.run, plays, writers))
        for writer in writers:
            writer.check()
    codes = sum((play.codes for play in plays), Counter())
    print(f"\n{REQUESTS} requests, seed {SEED}: {dict(sorted(codes.items()))}")
    assert [failure for play in plays for failure in play.failures] == []
    assert errors.seen == [], "\n\n".join(errors.seen)
    assert set(codes) >= {200, 400, 404, 405}
    assert httpx.get(f"{service.url}/healthcheck").text == "OK"


def test_every_operation_gets_requests(service: Running) -> None:
    """The generator leaves no route out."""
    generator = Generator(httpx.get(f"{service.url}/openapi.json").json())
    known = Known(dict.fromkeys(("project", "stack_name", "stack_id"), "KNOWN"))
    made = [generator.make(f"{SEED}-{number}", known) for number in range(REQUESTS)]
    assert {route for each in made for route in each.routes} == set(generator.operations)


def test_same_seed_same_request(service: Running) -> None:
    document = httpx.get(f"{service.url}/openapi.json").json()
    known = Known(dict.fromkeys(("project", "stack_name", "stack_id"), "KNOWN"))
    first, second = ([Generator(document).make(str(seed), known) for seed in range(200)] for _ in range(2))
    assert first == second
    assert len({each.sent for each in first}) > 150
