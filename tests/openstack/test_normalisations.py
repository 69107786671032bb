"""What real services make of the values that templates set: no drift, no repeated request, and the way back.

Each value is set with a creation, taken out, and set by an update. What is seen goes into the table of the reference
documentation: with HOMEOSTAT_RECORD=1 it is written, else it has to be as recorded.
"""

import contextlib
import uuid
from collections.abc import Iterator

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from tests.openstack import test_networking as networking
from tests.openstack.further_values import FURTHER
from tests.openstack.normal_values import TABLE
from tests.openstack.normalising import check, places, tried
from tests.openstack.running import OpenStack as RunningCloud

clouds, there = networking.clouds, networking.there
ALL = {**TABLE, **FURTHER}
PLACES = places(ALL)


@pytest.fixture(scope="module")
def named(
    there: dict[str, str], clouds: tuple[OpenStackCloud, ...], openstack_cloud: RunningCloud
) -> Iterator[dict[str, str]]:
    """What is there, with an image, a flavor, a type of volumes, and the project's default security group."""
    found = {**there, "default_security_group": clouds[0].resolve("security_group", ["default"])[0] or ""}
    with contextlib.closing(openstack_cloud.admin()) as admin:
        image = admin.image.find_image("mini", ignore_missing=False)
        flavor = next(each for each in admin.compute.flavors() if each.name == "m1.tiny")
        made = admin.block_storage.create_type(name=f"type-{uuid.uuid4().hex[:6]}")
        for called, thing in (("image", image), ("flavor", flavor), ("volume_type", made)):
            found[called], found[f"{called}_name"] = thing.id, thing.name
        yield found
        admin.block_storage.delete_type(made.id)


@pytest.mark.parametrize(("type_name", "key"), PLACES, ids=[f"{name} {key}" for name, key in PLACES])
def test_what_a_service_makes_of_a_value_is_no_drift(
    type_name: str, key: str, clouds: tuple[OpenStackCloud, ...], named: dict[str, str]
) -> None:
    values = ALL[type_name]
    rows = [tried(clouds[values.by_admin], type_name, values, key, value, named) for value in values.tried[key]]
    check(f"{type_name} {key}", rows)
