"""The program in the catalogue of a real OpenStack, where its customers find it."""

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection

from tests.clients.conftest import installed
from tests.customers import clusters, functions, magnum
from tests.customers.tempest import Tempest
from tests.openstack.catalogue import catalogued
from tests.openstack.conftest import openstack_cloud
from tests.openstack.running import OpenStack
from tests.openstack.wire_log import WireLog, wire_log

__all__ = ["openstack_cloud"]
FLAGS = ("--hidden-tag", "hidden", "--fetch-from", "127.0.0.1", "--health-interval-min", "5")
"""Of the service: tests have a page that health policies ask on this machine."""
PATIENCE_S = 3600
"""For the run of a whole suite."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE_S))


@pytest.fixture(scope="session")
def wire() -> Iterator[WireLog]:
    """What the service in the catalogue asks of the OpenStack."""
    with wire_log() as log:
        yield log


@pytest.fixture(scope="session")
def service_url(
    openstack_cloud: OpenStack, homeostat_program: Path, wire: WireLog, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a service that is in the catalogue, and lives as long as the session."""
    directory = tmp_path_factory.mktemp("service")
    with catalogued(openstack_cloud, directory, homeostat_program, *FLAGS, proxy=wire.url) as url:
        yield url


@pytest.fixture
def networks(openstack_cloud: OpenStack) -> Iterator[dict[str, str]]:
    """The ids of the networks that a function is connected to, by name."""
    with functions.networks(openstack_cloud) as made:
        yield made


@pytest.fixture
def tempest(openstack_cloud: OpenStack, service_url: str, tmp_path: Path) -> Tempest:
    return Tempest(installed("tempest", "bin/stestr"), tmp_path, openstack_cloud)


@pytest.fixture(scope="session")
def user(
    openstack_cloud: OpenStack, service_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connection]:
    """An ordinary member of a project, where Magnum runs."""
    work = tmp_path_factory.mktemp("magnum")
    with (
        magnum.running(openstack_cloud, installed("magnum", "bin/magnum-api"), work),
        contextlib.closing(openstack_cloud.user()) as user,
    ):
        yield user


@pytest.fixture(scope="session")
def image(user: Connection) -> Iterator[str]:
    with clusters.image(user) as made:
        yield made


@pytest.fixture(scope="session")
def key(user: Connection) -> Iterator[str]:
    made: Any = user.compute.create_keypair(name=f"magnum-{uuid.uuid4().hex[:8]}")
    yield made.name
    user.compute.delete_keypair(made.name)
