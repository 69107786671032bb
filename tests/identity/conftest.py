"""A Keystone for the tests that need one, and a service that asks it."""

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from homeostat.api.access.keystone import KeystoneAccess
from homeostat.api.server import ApiSettings
from homeostat.builtin.cloud import Records
from homeostat.builtin.server_agents import ServerAgents
from homeostat.clock import Entropy
from homeostat.clouds.combined import JoinedCloud
from homeostat.clouds.heat_api import Regions
from homeostat.clouds.identity.config import read_config
from homeostat.clouds.identity.keystone import Keystone
from homeostat.clouds.identity.trusts import Trusts
from homeostat.clouds.identity.users import DomainUsers
from homeostat.clouds.regions import OWN, Region
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.identity.stack_users import StackUsers
from homeostat.identity.trusts import StackTrusts
from homeostat.main import main
from homeostat.store.database import Database
from tests import keystone_server
from tests.keystone_server import PASSWORD, Admin, KeystoneServer
from tests.wire.running import database, serving, working

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


@pytest.fixture(scope="session")
def registered(keystone: KeystoneServer, admin: Admin, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file about Keystone of a service that has registered itself, and asks about each token each time."""
    path = tmp_path_factory.mktemp("registered") / "keystone.ini"
    with pytest.MonkeyPatch.context() as environ:
        for name, value in variables(keystone.url, "admin", PASSWORD, "admin").items():
            environ.setenv(name, value)
        assert main(["register", "--keystone-config", str(path), "--public-url", "http://127.0.0.1:1"]) == 0
    path.write_text(f"{path.read_text()}token_cache_time = -1\nhttp_request_max_retries = 0\n")
    return path


@dataclass(frozen=True, slots=True)
class Entrusted:
    """A service that acts for its users. url — of the API, without version."""

    url: str
    db: Database
    keystone: Keystone
    trusts: Trusts
    stack_trusts: StackTrusts

    def client(self, who: Person) -> httpx.Client:
        headers = {"x-auth-token": who.token()}
        return httpx.Client(base_url=f"{self.url}/v1/{who.project_id}", headers=headers)


@pytest.fixture
def service(registered: Path, tmp_path: Path) -> Iterator[Entrusted]:
    keystone = Keystone(read_config(registered))
    trusts = Trusts(keystone)
    cloud = SimulatedCloud(time.time)
    with database(tmp_path) as db:
        stack_trusts = StackTrusts(db, trusts, Entropy())
        users = StackUsers(db, DomainUsers(keystone), Entropy())
        there = ApiSettings(makes_users=True)
        with serving(db, KeystoneAccess(registered), there, trusts=stack_trusts) as url:
            own = Records(db, Entropy(), url, users)
            regions = Regions([Region(OWN, url)], credentials=stack_trusts)

            def clouds(project: str) -> JoinedCloud:
                return JoinedCloud(regions.of(project), ServerAgents(cloud, own, db, project), own.of(project))

            with (
                contextlib.closing(regions),
                working(db, cloud, clouds, look_steady_s=0.5, tidying=[stack_trusts.tidy, users.tidy]),
            ):
                yield Entrusted(url, db, keystone, trusts, stack_trusts)


def variables(url: str, user: str, password: str, project: str) -> dict[str, str]:
    return {
        "OS_AUTH_URL": url,
        "OS_USERNAME": user,
        "OS_PASSWORD": password,
        "OS_PROJECT_NAME": project,
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
        "OS_IDENTITY_API_VERSION": "3",
    }


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
