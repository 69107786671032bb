"""A real OpenStack for the tests that need one, and projects in it."""

import contextlib
import dataclasses
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.openstack import projects
from tests.openstack.cloud import install
from tests.openstack.cloud.__main__ import DEFAULT, VARIABLE
from tests.openstack.cloud.cloud import Cloud, open_cloud, working
from tests.openstack.cloud.services import OPTIONAL
from tests.openstack.message_bus import remove_queue
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack

HERE = Path(__file__).parent
COMPUTES = 2
"""Hosts with a nova-compute: of two, one may fail."""
PATIENCE_S = 1200
"""For a test, with the cloud that it waits for."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE_S))
    items.sort(key=lambda each: each.get_closest_marker("alone") is not None)


@pytest.fixture(scope="session")
def openstack_cloud(request: pytest.FixtureRequest) -> Iterator[OpenStack]:
    """A running OpenStack, with the optional services that the chosen tests name (`@pytest.mark.services("octavia")`).

    The one in $HOMEOSTAT_OPENSTACK, which must be up, or that of the project: it is started if it is not up, and then
    stopped in the end. Without one, tests are skipped; in CI they fail.
    """
    wanted = {name for item in request.session.items for mark in item.iter_markers("services") for name in mark.args}
    given = os.environ.get(VARIABLE)
    if given:
        yield _given(Path(given).absolute(), wanted)
        return
    with _running(wanted) as directory:
        yield OpenStack(directory)


@pytest.fixture(scope="module")
def project(openstack_cloud: OpenStack) -> Iterator[Project]:
    """A project with a user, of the module's own: in the end it is removed, with everything in it."""
    made = projects.create(openstack_cloud)
    yield made
    projects.remove(made)


@pytest.fixture
def pool(openstack_cloud: OpenStack) -> Iterator[str]:
    """Name of a queue for notifications, of the test's own."""
    name = f"test-{uuid.uuid4()}"
    yield name
    remove_queue(openstack_cloud.transport_url, name)


def _given(directory: Path, wanted: set[str]) -> OpenStack:
    cloud = open_cloud(directory)
    down = [name for name in cloud.processes.commands if not cloud.processes.pid(name)]
    lacking = sorted(wanted - set(cloud.site.settings.services))
    if down or lacking:
        what = f"with {', '.join(lacking)}" if lacking else f"up ({', '.join(down)} not running)"
        pytest.fail(f"the OpenStack in {directory}, named by {VARIABLE}, is not {what}")
    return OpenStack(directory)


@contextlib.contextmanager
def _running(wanted: set[str]) -> Iterator[Path]:
    with working(DEFAULT):
        cloud = _with_services(open_cloud(DEFAULT), wanted)
        lacking = install.missing(cloud.site, cloud.services)
        if lacking:
            _missing(f"not installed: {', '.join(lacking)}; run scripts/openstack {' '.join(sorted(wanted))}")
        was_up = cloud.processes.any_run()
        cloud.up()
    try:
        yield DEFAULT
    finally:
        if not was_up:
            with working(DEFAULT):
                open_cloud(DEFAULT).down()


def _with_services(cloud: Cloud, wanted: set[str]) -> Cloud:
    names = tuple(name for name in OPTIONAL if name in {*wanted, *cloud.site.settings.services})
    computes = max(COMPUTES, cloud.site.settings.computes)
    return open_cloud(cloud.site.directory, dataclasses.replace(cloud.site.settings, services=names, computes=computes))


def _missing(message: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)
