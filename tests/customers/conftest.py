"""The program in the catalogue of a real OpenStack, where its customers find it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import installed
from tests.customers.tempest import Tempest
from tests.openstack.catalogue import catalogued
from tests.openstack.conftest import openstack_cloud
from tests.openstack.running import OpenStack

__all__ = ["openstack_cloud"]
PATIENCE_S = 3600
"""For the run of a whole suite."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE_S))


@pytest.fixture(scope="session")
def service_url(
    openstack_cloud: OpenStack, homeostat_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a service that is in the catalogue, and lives as long as the session."""
    directory = tmp_path_factory.mktemp("service")
    with catalogued(openstack_cloud, directory, homeostat_program, "--hidden-tag", "hidden") as url:
        yield url


@pytest.fixture
def tempest(openstack_cloud: OpenStack, service_url: str, tmp_path: Path) -> Tempest:
    return Tempest(installed("tempest", "bin/stestr"), tmp_path, openstack_cloud)
