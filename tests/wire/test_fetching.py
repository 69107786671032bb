"""Templates that the service fetches itself."""

import contextlib
import ipaddress
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from homeostat.api.access.auth import NoAccess
from homeostat.api.server import ApiSettings
from homeostat.clouds.outbound import Rules
from tests.wire import templates
from tests.wire.running import database, serving


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = templates.HELLO.encode()
        self.send_response(200 if self.path == "/hello.yaml" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Not into the output of the tests."""


@pytest.fixture
def pages() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def http(tmp_path: Path) -> Iterator[httpx.Client]:
    """Of a service that may fetch from this machine."""
    settings = ApiSettings(fetching=Rules(networks=(ipaddress.ip_network("127.0.0.0/8"),)))
    with (
        database(tmp_path) as db,
        serving(db, NoAccess(), settings) as url,
        contextlib.closing(httpx.Client(base_url=f"{url}/v1/p")) as client,
    ):
        yield client


def test_a_template_is_fetched_by_its_url_and_kept(http: httpx.Client, pages: str) -> None:
    url = f"{pages}/hello.yaml"
    validated = http.post("validate", json={"template_url": url}).json()
    assert validated["Description"] == "One thing, and what it says"
    created = http.post("stacks", json={"stack_name": "hello", "template_url": url})
    assert created.status_code == 201, created.text
    address = created.headers["location"]
    kept = http.get(f"{address}/template").json()
    assert list(kept["resources"]) == ["speaker", "name"]
    assert http.patch(address, json={"template_url": url, "parameters": {"word": "new"}}).status_code == 202
    assert http.put(address, json={"template_url": url}).status_code == 202


def test_what_is_not_there_is_reported_with_its_url(http: httpx.Client, pages: str) -> None:
    answer = http.post("stacks", json={"stack_name": "hello", "template_url": f"{pages}/other.yaml"})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"Could not fetch {pages}/other.yaml: the server answered 404"
