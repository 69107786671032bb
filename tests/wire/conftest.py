import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import heatclient.client
import httpx
import openstack
import pytest
from heatclient.v1.client import Client as HeatClient
from keystoneauth1.noauth import NoAuth
from keystoneauth1.session import Session

from homeostat.api.access.auth import NoAccess
from homeostat.clouds.simulated import SimulatedCloud
from tests.chromium import Browser
from tests.wire import templates
from tests.wire.commands import OpenStack
from tests.wire.running import Running, database, serving, settled, working

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for the tests of a module; they keep out of each other's way by projects."""
    cloud = SimulatedCloud(time.time)
    with (
        database(tmp_path_factory.mktemp("service")) as db,
        serving(db, NoAccess(), cloud=cloud) as url,
        working(db, cloud, url=url),
    ):
        yield Running(url, db, cloud)


@pytest.fixture
def project() -> str:
    """A project of the test's own."""
    return f"project-{next(_NUMBERS)}"


@pytest.fixture
def endpoint(service: Running, project: str) -> str:
    return service.endpoint(project)


@pytest.fixture
def http(endpoint: str) -> Iterator[httpx.Client]:
    """Plain requests below the project."""
    with httpx.Client(base_url=endpoint) as client:
        yield client


@pytest.fixture
def address(service: Running, project: str) -> str:
    """The dashboard's page of the project's stacks."""
    return f"{service.url}/dashboard/#/{project}/stacks"


@pytest.fixture
def no_troubles(browser: Browser) -> Iterator[None]:
    """Nothing that a page does breaks its rules, or fails."""
    yield
    assert browser.troubles() == []


@pytest.fixture
def heat(endpoint: str) -> HeatClient:
    """python-heatclient as the command line makes it."""
    session = Session(auth=NoAuth(endpoint=endpoint))
    return heatclient.client.Client("1", session=session, service_type="orchestration")


@pytest.fixture
def sdk(endpoint: str) -> Iterator[openstack.connection.Connection]:
    with openstack.connect(
        load_yaml_config=False, load_envvars=False, auth_type="none", auth={"endpoint": endpoint}
    ) as connection:
        yield connection


@pytest.fixture(name="openstack")
def hello_by_command(http: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenStack:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    created = http.post("stacks", json={"stack_name": "hello", "template": templates.HELLO})
    stack_id = created.json()["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    return OpenStack(tmp_path, http, stack_id)
