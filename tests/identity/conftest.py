"""A Keystone for the tests that need one, and a service that asks it."""

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import keystone_server
from tests.keystone_server import PASSWORD, Admin, KeystoneServer

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def keystone() -> Iterator[KeystoneServer]:
    """A Keystone that lives as long as the session. Without one, tests are skipped; in CI they fail."""
    environment = keystone_server.find_environment()
    if environment is None:
        message = "Keystone is not installed: run scripts/keystone"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with keystone_server.running(environment) as server:
        yield server


@pytest.fixture(scope="session")
def admin(keystone: KeystoneServer) -> Iterator[Admin]:
    each = Admin(keystone.url)
    project = each.named("projects", "admin")["id"]
    each.grant(each.named("users", "admin")["id"], project, "service")
    yield each
    each.close()


@dataclass(frozen=True, slots=True)
class Person:
    """A user whose password is the name, with a project of the user's own."""

    name: str
    id: str
    project: str
    project_id: str
    url: str

    def token(self) -> str:
        return keystone_server.token(self.url, self.name, self.name, self.project)


@pytest.fixture
def person(admin: Admin) -> Person:
    """A member of a project, both of the test's own."""
    name = f"person-{next(_NUMBERS)}"
    project_id = admin.project(f"{name}-project")
    user_id = admin.user(name, project_id, "member")
    return Person(name, user_id, f"{name}-project", project_id, admin.url)


@pytest.fixture(scope="session")
def settings(keystone: KeystoneServer, admin: Admin, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file about Keystone of a service that asks it about each token each time."""
    path = tmp_path_factory.mktemp("keystone") / "keystone.ini"
    path.write_text(login(keystone.url, "-1"))
    return path


def login(url: str, believed_s: str) -> str:
    return f"""
[keystone_authtoken]
www_authenticate_uri = {url}
interface = public
auth_type = password
auth_url = {url}
username = admin
password = {PASSWORD}
project_name = admin
user_domain_id = default
project_domain_id = default
token_cache_time = {believed_s}
http_request_max_retries = 0
"""
