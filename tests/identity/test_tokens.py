"""Access by tokens, against a real Keystone."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from homeostat.api.access.enforcer import Policy
from homeostat.api.access.keystone import KeystoneAccess
from homeostat.model.errors import Rejected, Transient
from tests.identity.conftest import Person, login
from tests.keystone_server import Admin, KeystoneServer, token
from tests.wire.running import database, serving


@pytest.fixture
def url(settings: Path, tmp_path: Path) -> Iterator[str]:
    with database(tmp_path) as db, serving(db, KeystoneAccess(settings)) as there:
        yield there


def stacks(url: str, project: str, token: str | None) -> httpx.Response:
    headers = {} if token is None else {"x-auth-token": token}
    return httpx.get(f"{url}/v1/{project}/stacks", headers=headers)


def test_a_token_opens_its_project_and_no_other(url: str, person: Person, admin: Admin) -> None:
    mine = person.token()
    assert stacks(url, person.project_id, mine).json() == {"stacks": []}
    other = stacks(url, admin.project(f"{person.name}-other"), mine)
    assert (other.status_code, other.json()["error"]["type"]) == (403, "InvalidTenant")


@pytest.mark.parametrize("token", [None, "", "gAAAAA-no-token"])
def test_no_token_and_a_wrong_one_are_answered_with_where_to_ask(
    url: str, keystone: KeystoneServer, token: str | None
) -> None:
    answer = stacks(url, "p", token)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == f'Keystone uri="{keystone.url}"'
    assert answer.json()["error"]["type"] == "HTTPUnauthorized"


def test_a_revoked_token_is_refused(url: str, person: Person, admin: Admin) -> None:
    mine = person.token()
    assert stacks(url, person.project_id, mine).status_code == 200
    admin.revoke(mine)
    assert stacks(url, person.project_id, mine).status_code == 401


def test_the_token_of_a_deleted_user_is_refused(url: str, person: Person, admin: Admin) -> None:
    mine = person.token()
    assert stacks(url, person.project_id, mine).status_code == 200
    admin.send("DELETE", f"users/{person.id}")
    assert stacks(url, person.project_id, mine).status_code == 401


def test_a_token_for_no_project_opens_none(url: str, person: Person) -> None:
    who = {"user": {"id": person.id, "password": person.name}}
    body = {"auth": {"identity": {"methods": ["password"], "password": who}, "scope": "unscoped"}}
    unscoped = httpx.post(f"{person.url}/auth/tokens", json=body).headers["x-subject-token"]
    assert stacks(url, person.project_id, unscoped).status_code == 403


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def believing(tmp_path: Path, keystone: KeystoneServer) -> Path:
    path = tmp_path / "believing.ini"
    path.write_text(login(keystone.url, "300"))
    return path


def test_a_token_is_believed_for_a_while_and_not_longer_than_it_lives(
    believing: Path, person: Person, admin: Admin
) -> None:
    clock = Clock(1000.0)
    access = KeystoneAccess(believing, clock)
    headers = {"x-auth-token": person.token()}
    assert access.known(headers) is None
    caller = access.caller(headers)
    assert (caller.user, caller.user_id, caller.project) == (person.name, person.id, person.project_id)
    assert caller.roles == {"member", "reader"}
    assert not caller.is_admin
    clock.now = 1299.0
    assert access.known(headers) == caller
    clock.now = 1300.0
    assert access.known(headers) is None
    clock.now = 4e9  # the token has expired by this clock, whatever else is believed
    access.caller(headers)
    assert access.known(headers) is None


def test_a_token_that_a_service_vouches_for_is_asked_about_each_time(believing: Path, person: Person) -> None:
    access = KeystoneAccess(believing)
    headers = {"x-auth-token": person.token(), "x-service-token": token(person.url, "admin", "secret", "admin")}
    assert access.caller(headers).user == person.name
    assert access.known(headers) is None
    with pytest.raises(Rejected):
        access.caller({**headers, "x-service-token": "no-token"})


def test_administrators_are_known_as_such(settings: Path, keystone: KeystoneServer) -> None:
    headers = {"x-auth-token": token(keystone.url, "admin", "secret", "admin")}
    assert Policy().known(KeystoneAccess(settings).caller(headers)).is_admin


def test_while_keystone_is_down_callers_are_asked_to_try_again(
    url: str, keystone: KeystoneServer, person: Person, settings: Path
) -> None:
    mine = person.token()
    keystone.stop()
    try:
        answer = stacks(url, person.project_id, mine)
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        with pytest.raises(Transient):
            KeystoneAccess(settings).caller({"x-auth-token": mine})
    finally:
        keystone.start()
    assert stacks(url, person.project_id, mine).status_code == 200


def test_a_file_without_a_login_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "keystone.ini"
    path.write_text("[keystone_authtoken\nauth_type = password\n")
    with pytest.raises(ValueError, match=r"keystone.ini"):
        KeystoneAccess(path)
