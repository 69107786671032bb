"""What a real Magnum makes of the values that templates set; see `tests.openstack.test_service_normalisations`."""

from collections.abc import Iterator
from typing import Any

import pytest
from openstack.connection import Connection

from homeostat.clouds.openstack.cloud import OpenStackCloud
from tests.customers.magnum_values import CONTAINERS
from tests.openstack.lives import adapter
from tests.openstack.normalising import check, places, tried
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack

pytestmark = [pytest.mark.services("octavia"), pytest.mark.slow]


@pytest.fixture(scope="module")
def cloud(
    openstack_cloud: OpenStack, user: Connection, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenStackCloud]:
    """As the member sees it."""
    project = Project(openstack_cloud, str(user.current_project_id), "demo", str(user.current_user_id), "demo")
    with adapter(project, tmp_path_factory.mktemp("login"), "demo") as opened:
        yield opened


@pytest.fixture(scope="module")
def names(user: Connection, image: str, key: str) -> dict[str, str]:
    """What the values name."""
    network: Any = user.network
    private = network.find_network("private", ignore_missing=False)
    return {
        "image": image,
        "image_name": user.image.get_image(image).name,
        "key": key,
        "public": network.find_network("public", ignore_missing=False).id,
        "private": private.id,
        "subnet": private.subnet_ids[0],
    }


@pytest.mark.parametrize(("type_name", "property_name"), places(CONTAINERS))
def test_what_magnum_makes_of_a_value_is_no_drift(
    cloud: OpenStackCloud, names: dict[str, str], type_name: str, property_name: str
) -> None:
    values = CONTAINERS[type_name]
    rows = [tried(cloud, type_name, values, property_name, value, names) for value in values.tried[property_name]]
    check(f"{type_name} {property_name}", rows)
