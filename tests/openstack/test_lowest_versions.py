"""The lowest microversions of Compute and Block Storage that are offered: servers and volumes live with them.

The services are the newest; each request says the version, by which they answer as older ones do. Of Shared File
Systems `test_shared_file_systems.py` shows the same.
"""

from collections.abc import Callable, Iterator

import pytest

from homeostat.clouds.openstack import clouds
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.registry import VERSIONS
from tests.openstack import test_block_storage as volumes
from tests.openstack import test_compute as compute
from tests.openstack import test_servers as servers
from tests.openstack.one_thing import adapter
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack

LOWEST = {service: (lowest, lowest) for service, (lowest, _) in VERSIONS.items()}
world = servers.world


@pytest.fixture(scope="module", autouse=True)
def lowest() -> Iterator[None]:
    """All requests of the module's adapters ask for the lowest versions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clouds, "VERSIONS", LOWEST)
        yield


@pytest.fixture(scope="module")
def user(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with adapter(project, tmp_path_factory.mktemp("clouds")) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def admin(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with adapter(project, tmp_path_factory.mktemp("clouds"), admin=True) as cloud:
        yield cloud


SERVERS: tuple[Callable[[servers.World], None], ...] = (
    servers.test_a_server_lives,
    servers.test_networks_change_in_place_and_nothing_is_left,
    servers.test_block_devices,
    servers.test_an_entry_with_a_floating_ip,
    servers.test_operations,
    servers.test_a_resize_is_confirmed_and_its_failure_is_reported,
    servers.test_a_snapshot_is_made_once_and_outlives_its_server,
    servers.test_many_quiet_servers_are_seen_with_one_small_request,
)


@pytest.mark.slow
@pytest.mark.parametrize("life", SERVERS, ids=lambda each: each.__name__.removeprefix("test_"))
def test_a_server(life: Callable[[servers.World], None], world: servers.World) -> None:
    life(world)
    says(world.cloud, "compute")


def test_a_volume(openstack_cloud: OpenStack, user: OpenStackCloud) -> None:
    volumes.test_a_volume_lives(openstack_cloud, user)
    says(user, "block-storage")


def test_a_server_group(openstack_cloud: OpenStack, user: OpenStackCloud) -> None:
    compute.test_a_server_group_lives(openstack_cloud, user)
    says(user, "compute")


def test_a_type_of_volumes(openstack_cloud: OpenStack, admin: OpenStackCloud) -> None:
    volumes.test_a_volume_type_lives(openstack_cloud, admin)
    says(admin, "block-storage")


def test_a_volume_gets_another_type_and_starts_with_data(user: OpenStackCloud, admin: OpenStackCloud) -> None:
    volumes.test_a_volume_may_get_another_type(user, admin)
    volumes.test_a_volume_starts_with_data(user)
    says(user, "block-storage")


def test_a_flavor(openstack_cloud: OpenStack, admin: OpenStackCloud, project: Project) -> None:
    compute.test_a_flavor_lives(openstack_cloud, admin, project)
    says(admin, "compute")


def says(cloud: object, service: str) -> None:
    """Assert that requests to a service said the lowest version."""
    assert isinstance(cloud, OpenStackCloud)
    assert cloud.service(service)._microversion == LOWEST[service][0]
