"""The life of a stack, told to a real HTTP server."""

import contextlib
import hashlib
import hmac
import ipaddress
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.api.access.auth import NoAccess
from homeostat.api.server import ApiSettings
from homeostat.clouds.outbound import Rules
from homeostat.clouds.simulated import SimulatedCloud
from tests.waiting import until
from tests.wire.running import database, serving, settled, working

HERE = Rules(networks=(ipaddress.ip_network("127.0.0.0/8"),))
SECRET = "a word that only both of us know"
TEMPLATE = """
heat_template_version: rocky
resources:
  one: {type: OS::Heat::TestResource}
  group: {type: OS::Heat::ResourceGroup, properties: {count: 2, resource_def: {type: OS::Heat::TestResource}}}
"""


class Ear(ThreadingHTTPServer):
    """Keeps the messages that it gets; the first one it refuses. heard — (signature, body)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), EarHandler)
        self.heard: list[tuple[str | None, bytes]] = []
        self.asked = 0

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(content) for _, content in self.heard]


class EarHandler(BaseHTTPRequestHandler):
    server: Ear

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked += 1
        well = self.server.asked > 1
        if well:
            assert self.headers["Content-Type"] == "application/json"
            self.server.heard.append((self.headers["X-Homeostat-Signature"], content))
        self.send_response(204 if well else 503)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Not into the output of the tests."""


@pytest.fixture
def ear() -> Iterator[Ear]:
    with Ear() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def http(tmp_path: Path) -> Iterator[httpx.Client]:
    """Of a service that may post to this machine."""
    cloud = SimulatedCloud(time.time)
    with (
        database(tmp_path) as db,
        serving(db, NoAccess(), ApiSettings(fetching=HERE), cloud=cloud) as url,
        working(db, cloud, fetching=HERE),
        contextlib.closing(httpx.Client(base_url=f"{url}/v1/p")) as client,
    ):
        yield client


def events(http: httpx.Client, address: str, depth: int = 0) -> list[str]:
    """Ids of all events of a stack and of those that are nested in it, so deep, in order."""
    listed = http.get(f"{address}/events", params={"nested_depth": depth, "sort_dir": "asc"}).json()["events"]
    return [each["id"] for each in listed]


def test_a_web_hook_gets_the_events_of_a_stack(http: httpx.Client, ear: Ear) -> None:
    sink = {"type": "webhook", "url": f"http://127.0.0.1:{ear.server_port}/hook", "secret": SECRET}
    body = {"stack_name": "told", "template": TEMPLATE, "environment": {"event_sinks": [sink]}}
    created = http.post("stacks", json=body)
    assert created.status_code == 201, created.text
    address = created.headers["location"]
    stack_id = created.json()["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    shown = http.get(f"{address}/environment").json()
    assert shown["event_sinks"] == [{**sink, "secret": "******"}]
    assert SECRET not in http.post("validate", json=body).text
    made = events(http, address, depth=1)
    assert http.delete(address).status_code == 204
    settled(http, stack_id, status="DELETE_COMPLETE")
    all_of_it = events(http, address)

    def delivered(stack: str | None = None) -> list[str]:
        return [each["id"] for each in ear.bodies if stack in (None, each["payload"]["stack_id"])]

    until(lambda: delivered()[-1:] == all_of_it[-1:], "the end to be told")
    assert delivered(stack_id) == all_of_it
    assert delivered()[: len(made)] == made, "the nested stack is told of, too"
    for signature, content in ear.heard:
        assert signature == "sha256=" + hmac.new(SECRET.encode(), content, hashlib.sha256).hexdigest()


def test_a_hook_at_an_address_that_is_not_public_is_refused(http: httpx.Client) -> None:
    body = {
        "stack_name": "told",
        "template": TEMPLATE,
        "environment": {"event_sinks": [{"type": "webhook", "url": "http://192.168.0.1/"}]},
    }
    answer = http.post("stacks", json=body)
    assert answer.status_code == 400
    assert "environment.event_sinks[0]: url: 192.168.0.1 is not on the public" in answer.json()["error"]["message"]
