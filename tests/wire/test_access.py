"""Who may ask."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import bcrypt
import heatclient.client
import httpx
import pytest
from heatclient import exc
from keystoneauth1.http_basic import HTTPBasicAuth
from keystoneauth1.session import Session

from homeostat.api.access.auth import BasicAccess, NoAccess, read_accounts
from homeostat.api.access.enforcer import Policy
from homeostat.api.server import ApiSettings, run_api
from homeostat.clock import Entropy, SystemClock
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import Rejected
from homeostat.store.database import Database
from tests.wire import templates
from tests.wire.running import database, serving, settled, working


def line(user: str, password: str, project: str = "") -> str:
    hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
    return f"{user}:{hashed}:{project}\n" if project else f"{user}:{hashed}\n"


@pytest.fixture
def passwords(tmp_path: Path) -> Path:
    path = tmp_path / "htpasswd"
    path.write_text("# users\n\n" + line("ada", "love:lace") + line("bob", "builder", "site"))
    return path


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with database(tmp_path) as found:
        yield found


@pytest.fixture
def url(db: Database, passwords: Path) -> Iterator[str]:
    with serving(db, BasicAccess(passwords)) as found:
        yield found


def test_a_genuine_client_signs_in(url: str) -> None:
    session = Session(auth=HTTPBasicAuth(endpoint=f"{url}/v1/ada", username="ada", password="love:lace"))
    heat = heatclient.client.Client("1", session=session, service_type="orchestration")
    heat.stacks.create(stack_name="hello", template=templates.HELLO)
    assert heat.stacks.get("hello").stack_owner == "ada"
    wrong = Session(auth=HTTPBasicAuth(endpoint=f"{url}/v1/ada", username="ada", password="guess"))
    with pytest.raises(exc.HTTPUnauthorized):
        heatclient.client.Client("1", session=wrong, service_type="orchestration").stacks.get("hello")


@pytest.mark.parametrize(
    ("auth", "project", "code", "reason"),
    [
        (("ada", "love:lace"), "ada", 200, "the project of the user's name"),
        (("bob", "builder"), "site", 200, "the project that the file names"),
        (("bob", "builder"), "bob", 403, "not the one of the name then"),
        (("ada", "love:lace"), "site", 403, "not that of others"),
        (("ada", "love"), "ada", 401, "a wrong password"),
        (("eve", "love:lace"), "ada", 401, "an unknown user"),
        (None, "ada", 401, "nobody"),
    ],
)
def test_users_and_projects(url: str, auth: tuple[str, str] | None, project: str, code: int, reason: str) -> None:
    for _again in range(2):
        answer = httpx.get(f"{url}/v1/{project}/stacks", auth=auth)
        assert answer.status_code == code, reason
        assert ("www-authenticate" in answer.headers) == (code == 401)
        if code != 200:
            assert answer.json()["error"]["type"] == {401: "HTTPUnauthorized", 403: "InvalidTenant"}[code]


@pytest.mark.parametrize("header", ["Basic", "Basic !", "Bearer x", "Basic " + base64.b64encode(b"ada").decode(), "é"])
def test_credentials_that_are_none(url: str, header: str) -> None:
    answer = httpx.get(f"{url}/v1/ada/stacks", headers=[(b"authorization", header.encode())])
    assert answer.status_code == 401


def test_what_is_open_to_all(url: str) -> None:
    assert httpx.get(url).status_code == 300
    assert httpx.get(f"{url}/healthcheck").status_code == 200
    assert httpx.get(f"{url}/openapi.json").status_code == 200


def test_unknown_addresses_are_guarded(url: str) -> None:
    assert httpx.get(f"{url}/v1/ada/nothing").status_code == 401
    assert httpx.get(f"{url}/v1.0/ada/stacks").status_code == 401
    accept = {"accept": "application/vnd.openstack.orchestration-v1"}
    assert httpx.get(f"{url}/ada/stacks", headers=accept).status_code == 401


def test_the_file_is_read_again(url: str, passwords: Path) -> None:
    def code(user: str, password: str) -> int:
        return httpx.get(f"{url}/v1/ada/stacks", auth=(user, password)).status_code

    assert code("ada", "love:lace") == 200
    passwords.write_text(line("ada", "countess of"))
    assert (code("ada", "love:lace"), code("ada", "countess of")) == (401, 200)
    passwords.write_text("ada:plain text\n")
    assert code("ada", "countess of") == 200, "a wrong file is not taken over"
    passwords.unlink()
    assert code("ada", "countess of") == 200


@pytest.mark.parametrize("text", ["ada:secret\n", "ada\n", ":$2b$04$x\n", "ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n"])
def test_files_that_are_wrong(tmp_path: Path, text: str) -> None:
    path = tmp_path / "htpasswd"
    path.write_text(f"# users\n{text}")
    with pytest.raises(ValueError, match=r"line 2: .*htpasswd -B"):
        read_accounts(path)


def test_without_access_control_for_this_machine_alone(db: Database) -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.8.9.1"):
        NoAccess().check_host(host)
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", ""):
        with pytest.raises(ValueError, match="loopback"):
            run_api(db, SystemClock(), Entropy(), NoAccess(), ApiSettings(host=host, port=0))


def test_long_passwords(db: Database, tmp_path: Path) -> None:
    """bcrypt knows 72 bytes; what `htpasswd` cut must still fit."""
    password = "x" * 100
    path = tmp_path / "long"
    path.write_text(line("ada", password[:72]))
    with serving(db, BasicAccess(path)) as url:
        assert httpx.get(f"{url}/v1/ada/stacks", auth=("ada", password)).status_code == 200


def test_verified_passwords_are_remembered(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash takes long on purpose: a minute of requests must not take as long as that many hashes."""
    path = tmp_path / "slow"
    path.write_text(line("ada", "x"))
    compared = Mock(side_effect=bcrypt.checkpw)
    monkeypatch.setattr(bcrypt, "checkpw", compared)
    with serving(db, BasicAccess(path)) as url, httpx.Client(base_url=f"{url}/v1/ada", auth=("ada", "x")) as http:
        assert all(http.get("stacks").status_code == 200 for _ in range(10))
    assert compared.call_count == 1


def test_metrics_are_for_those_who_may_ask_the_api(db: Database, passwords: Path) -> None:
    with serving(db, BasicAccess(passwords), ApiSettings(metrics=True)) as url:
        refused = httpx.get(f"{url}/metrics")
        assert refused.status_code == 401
        assert "Basic" in refused.headers["www-authenticate"]
        assert "homeostat_" not in refused.text
        assert "homeostat_database_up 1.0" in httpx.get(f"{url}/metrics", auth=("ada", "love:lace")).text


def test_the_token_of_a_handle_signals_it_and_does_nothing_else(db: Database, passwords: Path) -> None:
    handle = "{type: OS::Heat::WaitConditionHandle}"
    signed = "{type: OS::Heat::WaitConditionHandle, properties: {signal_transport: CFN_SIGNAL}}"
    template = f"heat_template_version: 2018-08-31\nresources: {{one: {handle}, two: {handle}, three: {signed}}}\n"
    with (
        serving(db, BasicAccess(passwords)) as url,
        working(db, SimulatedCloud(time.time), url=url),
        httpx.Client(base_url=f"{url}/v1/ada", auth=("ada", "love:lace"), follow_redirects=True) as http,
    ):
        made = http.post("stacks", json={"stack_name": "s", "template": template}).json()["stack"]["id"]
        settled(http, made, status="CREATE_COMPLETE")
        shown = http.get(f"stacks/s/{made}/resources/one").json()["resource"]["attributes"]
        token = {"X-Auth-Token": shown["token"]}
        assert httpx.post(shown["endpoint"], headers=token, json={"data": 1}).status_code == 200
        assert httpx.post(shown["endpoint"], json={}).status_code == 401
        other = shown["endpoint"].replace("/one/", "/two/")
        assert httpx.post(other, headers=token, json={}).status_code == 401
        assert httpx.get(f"{url}/v1/ada/stacks", headers=token).status_code == 401
        assert httpx.get(f"{url}/v1/ada/stacks/s/{made}/resources/one/metadata", headers=token).status_code == 401
        address = json.loads(http.get(f"stacks/s/{made}/resources/three").json()["resource"]["attributes"]["signal"])
        assert httpx.post(address["alarm_url"]).status_code == 200
        assert httpx.get(f"{url}/v1/signal/stacks").status_code == 401
        metadata = http.get(f"stacks/s/{made}/resources/one/metadata").json()["metadata"]
        assert metadata["1"]["data"] == 1


def test_roles(db: Database, tmp_path: Path) -> None:
    """The same as for every route in tests/unit/api/test_matrix.py, over real HTTP and with real passwords."""
    path, policy = tmp_path / "htpasswd", tmp_path / "policy.yaml"
    path.write_text(
        line("ada", "x", "site")
        + line("ray", "x", "site:reader")
        + line("root", "x", "site:admin")
        + line("eve", "x", "other")
        + line("guest", "x", "site:visitor")
    )
    policy.write_text('"build_info:build_info": "role:admin"\n')
    body = {"stack_name": "hello", "template": templates.HELLO}
    with serving(db, BasicAccess(path), ApiSettings(policy=Policy(policy))) as url:

        def code(user: str, method: str, below: str, project: str = "site", sent: object = None) -> int:
            answer = httpx.request(method, f"{url}/v1/{project}/{below}", auth=(user, "x"), json=sent)
            return answer.status_code

        made = {user: code(user, "POST", "stacks", sent=body) for user in ("guest", "ray", "eve", "ada", "root")}
        assert made == {"guest": 403, "ray": 403, "eve": 403, "ada": 201, "root": 409}
        seen = {user: code(user, "GET", "stacks") for user in made}
        assert seen == {"guest": 403, "ray": 200, "eve": 403, "ada": 200, "root": 200}
        workers = {user: code(user, "GET", "services") for user in made}
        assert workers == {"guest": 403, "ray": 403, "eve": 403, "ada": 403, "root": 200}
        assert (code("ada", "GET", "build_info"), code("root", "GET", "build_info")) == (403, 200)
        assert (code("root", "GET", "stacks", "other"), code("eve", "GET", "stacks/hello", "other")) == (200, 404)
        refused = httpx.get(f"{url}/v1/site/services", auth=("ada", "x")).json()
        assert refused["error"] == {
            "type": "Forbidden",
            "message": "You are not authorized to use index.",
            "traceback": None,
        }


def test_the_time_of_an_answer_does_not_reveal_user_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every refusal takes the same work, whatever hashes the file has; work doubles with each cost."""
    path = tmp_path / "users"
    hashes = {user: bcrypt.hashpw(b"x", bcrypt.gensalt(cost)).decode() for user, cost in (("ada", 4), ("bob", 7))}
    path.write_text("".join(f"{user}:{hashed}\n" for user, hashed in hashes.items()))
    access, work = BasicAccess(path), [0]

    def counted(ask: Callable[[bytes, bytes], Any]) -> Callable[[bytes, bytes], Any]:
        def check(password: bytes, hashed: bytes) -> Any:
            work[0] += 2 ** int(hashed[4:6])
            return ask(password, hashed)

        return check

    monkeypatch.setattr(bcrypt, "checkpw", counted(bcrypt.checkpw))
    monkeypatch.setattr(bcrypt, "hashpw", counted(bcrypt.hashpw))
    for user in ("ada", "bob", "nobody"):
        work[0] = 0
        with pytest.raises(Rejected):
            access.caller({"authorization": httpx.BasicAuth(user, "guess")._auth_header})
        assert work == [2**7], user
    assert access.caller({"authorization": httpx.BasicAuth("ada", "x")._auth_header}).user == "ada"
