"""What requests and answers of the three APIs have in common: where they end, what they may hold, where links lead."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.api.access.auth import BasicAccess, NoAccess
from homeostat.api.http.inputs import SMALL
from homeostat.api.server import ApiSettings
from homeostat.clouds.simulated import SimulatedCloud
from tests.waiting import PATIENCE_S
from tests.wire import templates
from tests.wire.clustering.lives import SERVER
from tests.wire.running import Running, database, serving
from tests.wire.test_access import line

PUBLIC = "https://heat.example.org/orchestration"
READS = (
    ("/", 300),
    ("/v1/p/stacks", 200),
    ("/v1/p/stacks/nothing", 404),
    ("/v1/p/nothing", 404),
    ("/v1/?Action=ListStacks", 200),
    ("/v1/?Action=Nothing", 400),
    ("/v1/signal/arn:openstack:heat::p:stacks/a/b/resources/c", 405),
    ("/clustering", 300),
    ("/clustering/v1/clusters", 200),
    ("/clustering/v1/clusters/nothing", 404),
    ("/healthcheck", 200),
    ("/openapi.json", 200),
    ("/v9", 300),
)
FOREIGN = "elsewhere.example.org"


@pytest.mark.parametrize(("path", "code"), READS)
def test_no_answer_is_kept_or_taken_for_another_type(service: Running, path: str, code: int) -> None:
    for more in ({}, {"Host": FOREIGN}):  # a refusal, too
        answer = httpx.get(f"{service.url}{path}", headers=more)
        assert more or answer.status_code == code
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_an_answer_before_there_is_a_request_too(service: Running) -> None:
    head = _said(service.url, b"this is no request\r\n\r\n").partition(b"\r\n\r\n")[0].lower()
    assert head.startswith(b"http/1.1 400 ")
    assert b"\r\nx-content-type-options: nosniff" in head
    assert b"\r\ncache-control: no-store" in head


def test_the_files_of_the_dashboard_are_kept_as_they_say(service: Running) -> None:
    answer = httpx.get(f"{service.url}/dashboard/")
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-cache", "nosniff")


@pytest.mark.parametrize("path", ["/v1/p/stacks", "/v1/", "/clustering/v1/clusters"])
def test_a_request_with_two_ends_is_the_last_of_its_connection(service: Running, path: str) -> None:
    """What a proxy in front takes for the rest of a body must not become a request."""
    second = b"GET /healthcheck HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    ends = b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (5 + len(second))
    both = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%s" % (path.encode(), ends, second)
    answers = _said(service.url, both)
    assert answers.count(b"HTTP/1.1 ") == 1
    assert b"\r\nconnection: close\r\n" in answers.lower()
    one = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % path.encode()
    assert _said(service.url, one + second).count(b"HTTP/1.1 ") == 2


def _said(url: str, sent: bytes) -> bytes:
    """All that is answered until the service closes the connection."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), PATIENCE_S) as one:
        one.sendall(sent)
        parts = []
        with contextlib.suppress(ConnectionResetError):
            while part := one.recv(65536):
                parts.append(part)
    return b"".join(parts)


TEMPLATE = '{"heat_template_version": "2018-08-31", "resources": {}}'
LARGE = f'"padding": "{"x" * SMALL}"'


@pytest.mark.parametrize(
    ("method", "path", "body", "key"),
    [
        ("POST", "/v1/p/stacks", f'{{"stack_name": "a", "template": {TEMPLATE}, "stack_name": "b"}}', "stack_name"),
        ("POST", "/v1/p/stacks", '{"stack_name": "a", "template": {"resources": {"x": 1, "x": 2}}}', "x"),
        ("POST", "/v1/p/validate", f'{{{LARGE}, "files": {{"f": "1", "f": "2"}}, "template": {TEMPLATE}}}', "f"),
        ("POST", "/v1/p/stacks", '{"stack_name": "a", "list": [0.5, [{"\\u0061": 1, "a": 2}]]}', "a"),
        ("PUT", "/v1/waitcondition/arn:openstack:heat::p:stacks/a/b/resources/c", '{"id": 1, "id": 2}', "id"),
        ("POST", "/clustering/v1/clusters", '{"cluster": {"name": "a", "name": "b"}}', "name"),
        ("POST", "/clustering/v1/nodes", '{"node": {"metadata": {"count": 1, "count": 100}}}', "count"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(service: Running, method: str, path: str, body: str, key: str) -> None:
    """One who judges the request before may see the first of them, and we the last."""
    answer = httpx.request(
        method, f"{service.url}{path}", content=body, headers={"Content-Type": "application/json"}, timeout=PATIENCE_S
    )
    assert answer.status_code == 400, answer.text
    assert f"the key '{key}' is there more than once" in answer.text


def test_parameters_of_the_cloudformation_api_that_are_there_twice_are_refused(service: Running) -> None:
    answer = httpx.post(f"{service.url}/v1/?Action=ListStacks", data={"Action": "DeleteStack"})
    assert (answer.status_code, "Action is given more than once" in answer.text) == (400, True)


def test_equal_keys_of_a_template_in_a_text_are_as_in_heat(http: httpx.Client) -> None:
    """The last of them counts: a template is a document of its own, and public ones have such keys."""
    text = '{"heat_template_version": "2018-08-31", "outputs": {"a": {"value": 1}, "a": {"value": "last"}}}'
    made = http.post("stacks", json={"stack_name": "twice", "template": text})
    assert made.status_code == 201
    stack = http.get(made.json()["stack"]["links"][0]["href"]).json()["stack"]
    assert [each["output_value"] for each in stack["outputs"]] == ["last"]


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A service with its URL set, and one without; both with passwords, so that any name leads to them."""
    directory: Path = tmp_path_factory.mktemp("links")
    (directory / "htpasswd").write_text(line("ada", "x"))
    access = BasicAccess(directory / "htpasswd")
    cloud = SimulatedCloud(lambda: 0.0)
    with (
        database(directory) as db,
        serving(db, access, ApiSettings(public_url=PUBLIC), cloud=cloud) as set_up,
        serving(db, access, cloud=cloud) as plain,
    ):
        yield set_up, plain


def links(url: str, host: str) -> list[str]:
    """Links of the answers of all three APIs to one who calls the service so."""
    found: list[Any] = []
    with httpx.Client(base_url=url, auth=("ada", "x"), headers={"Host": host}, timeout=PATIENCE_S) as http:
        found.append(http.get("/").json()["versions"][0]["links"][0]["href"])
        found.append(http.get("/v9").json()["versions"][0]["links"][0]["href"])
        found.append(http.get("/clustering").json()["versions"][0]["links"][0]["href"])
        if http.get("/v1/ada/stacks/one").status_code == 404:
            assert http.post("/v1/ada/stacks", json={"stack_name": "one", "template": templates.HELLO}).is_success
        found.append(http.get("/v1/ada/stacks").json()["stacks"][0]["links"][0]["href"])
        found.append(http.get("/v1/ada/stacks/one").headers["location"])
        profile = http.post("/clustering/v1/profiles", json={"profile": {"name": "p", "spec": SERVER}}).json()
        made = {"name": "c", "profile_id": profile["profile"]["id"], "desired_capacity": 0}
        answer = http.post("/clustering/v1/clusters", json={"cluster": made})
        found.append(answer.headers["location"])
        receiver = {"name": "r", "type": "webhook", "cluster_id": answer.json()["cluster"]["id"]}
        begun = http.post("/clustering/v1/receivers", json={"receiver": {**receiver, "action": "CLUSTER_SCALE_OUT"}})
        found.append(begun.json()["receiver"]["channel"]["alarm_url"])
    return found


def test_links_lead_where_the_operator_says(urls: tuple[str, str]) -> None:
    for host in (FOREIGN, "127.0.0.1"):
        assert [each for each in links(urls[0], host) if not each.startswith(f"{PUBLIC}/")] == []


@pytest.mark.parametrize(
    ("host", "followed"),
    [
        ("localhost:9000", "localhost:9000"),  # a port that is forwarded
        ("[::1]:8004", "[::1]:8004"),
        (socket.gethostname(), socket.gethostname()),
        (FOREIGN, ""),
        ("127.0.0.1.example.org", ""),
        ("a b", ""),
    ],
)
def test_links_follow_a_name_only_if_it_is_one_of_this_machine(urls: tuple[str, str], host: str, followed: str) -> None:
    expected = f"http://{followed}/" if followed else f"{urls[1]}/"
    assert [each for each in links(urls[1], host) if not each.startswith(expected)] == []


def test_pages_of_lists_lead_to_the_same_place(service: Running, project: str) -> None:
    with httpx.Client(base_url=service.url, headers={"Host": "localhost:1"}) as http:
        for name in ("a", "b"):
            assert http.post(f"/v1/{project}/stacks", json={"stack_name": name, "template": templates.HELLO}).is_success
        page = http.get(f"/v1/{project}/stacks?limit=1").json()
    assert all(each["href"].startswith("http://localhost:1/") for each in page.get("links", ()))
    assert all(each["links"][0]["href"].startswith("http://localhost:1/") for each in page["stacks"])


def test_access_without_passwords_needs_a_loopback_name_still(service: Running) -> None:
    assert isinstance(NoAccess().challenge, str)
    assert httpx.get(f"{service.url}/v1/p/stacks", headers={"Host": FOREIGN}).status_code == 403
