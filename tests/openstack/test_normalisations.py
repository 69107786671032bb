"""What real services make of the values that templates set: no drift, no repeated request, and the way back.

Each value is set with a creation, taken out, and set by an update. What is seen goes into the table of the reference
documentation: with HOMEOSTAT_RECORD=1 it is written, else it has to be as recorded.
"""

import contextlib
from collections.abc import Iterator

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from tests.openstack import test_networking as networking
from tests.openstack.further_values import FURTHER
from tests.openstack.named_things import Things
from tests.openstack.normal_values import TABLE
from tests.openstack.normalising import check, places, tried
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack as RunningCloud

clouds, there = networking.clouds, networking.there
ALL = {**TABLE, **FURTHER}
PLACES = places(ALL)


@pytest.fixture(scope="module")
def things(
    there: dict[str, str], clouds: tuple[OpenStackCloud, ...], project: Project, openstack_cloud: RunningCloud
) -> Iterator[Things]:
    """What is there, with an image, a flavor, and the project's default security group; the rest is made for a test."""
    found = {**there, "default_security_group": clouds[0].resolve("security_group", ["default"])[0] or ""}
    with contextlib.closing(openstack_cloud.admin()) as admin:
        image = admin.image.find_image("mini", ignore_missing=False)
        flavor = next(each for each in admin.compute.flavors() if each.name == "m1.tiny")
        for called, thing in (("image", image), ("flavor", flavor)):
            found[called], found[f"{called}_name"] = thing.id, thing.name
    made = Things(clouds, project, found)
    with made.stack:
        yield made


@pytest.mark.parametrize(("type_name", "key"), PLACES, ids=[f"{name} {key}" for name, key in PLACES])
def test_what_a_service_makes_of_a_value_is_no_drift(
    type_name: str, key: str, clouds: tuple[OpenStackCloud, ...], things: Things
) -> None:
    values = ALL[type_name]
    things.have(values, key)
    cloud = clouds[values.is_by_admin(key)]
    rows = [tried(cloud, type_name, values, key, value, things.names) for value in values.tried[key]]
    check(f"{type_name} {key}", rows)
