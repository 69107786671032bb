"""What operators of a real Octavia offer to users: flavors, availability zones, quotas."""

import contextlib
import uuid
from collections.abc import Callable, Iterator

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Change, Creation
from homeostat.model.errors import Terminal
from homeostat.resources.registry import type_of
from tests.openstack import lives
from tests.openstack.lives import Life, accepted, check_life, check_lost, check_never, make, remove
from tests.openstack.projects import Project

pytestmark = [pytest.mark.services("octavia"), pytest.mark.slow]
NEVER = "11111111-2222-3333-4444-555555555555"
SINGLE, PAIR = '{"loadbalancer_topology": "SINGLE"}', '{"loadbalancer_topology": "ACTIVE_STANDBY"}'
ZONE = '{"compute_zone": "nova"}'


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    """As the administrator sees it."""
    with lives.adapter(project, tmp_path_factory.mktemp("cloud"), user="admin") as found:
        yield found


@pytest.fixture(scope="module")
def profiles(cloud: OpenStackCloud) -> Iterator[tuple[str, str]]:
    """Names of a profile of flavors and of one of availability zones."""
    with contextlib.ExitStack() as stack:
        names = []
        for type, data in (("FlavorProfile", "flavor_data"), ("AvailabilityZoneProfile", "availability_zone_data")):
            name = f"{type}-{uuid.uuid4()}"
            properties = {"name": name, data: SINGLE if type == "FlavorProfile" else ZONE, "provider_name": "amphora"}
            made = make(cloud, f"OS::Octavia::{type}", properties)
            stack.callback(remove, cloud, type_of(f"OS::Octavia::{type}").kind, made)
            names.append(name)
        yield names[0], names[1]


def unique() -> str:
    return f"offer-{uuid.uuid4()}"


LIVES: dict[str, Callable[[str, str], Life]] = {
    "flavor_profile": lambda flavor, zone: Life(
        "OS::Octavia::FlavorProfile",
        {"name": unique(), "flavor_data": SINGLE, "provider_name": "amphora"},
        ({"name": unique(), "flavor_data": PAIR},),
        NEVER,
    ),
    "flavor": lambda flavor, zone: Life(
        "OS::Octavia::Flavor",
        {"name": unique(), "flavor_profile": flavor, "description": "d"},
        ({"name": unique(), "description": "e", "enabled": False}, {"description": ""}),
        NEVER,
    ),
    "zone_profile": lambda flavor, zone: Life(
        "OS::Octavia::AvailabilityZoneProfile",
        {"name": unique(), "availability_zone_data": ZONE, "provider_name": "amphora"},
        ({"name": unique()},),
        NEVER,
    ),
    "zone": lambda flavor, zone: Life(
        "OS::Octavia::AvailabilityZone",
        {"name": unique(), "availability_zone_profile": zone},
        ({"description": "e", "enabled": False},),
        NEVER,
    ),
}
PATHS = {
    "flavor_profile": "/flavorprofiles$",
    "flavor": "/flavors$",
    "zone_profile": "/availabilityzoneprofiles$",
    "zone": "/availabilityzones$",
}


@pytest.mark.parametrize("name", LIVES)
def test_it_lives_and_dies(name: str, cloud: OpenStackCloud, profiles: tuple[str, str]) -> None:
    life = LIVES[name](*profiles)
    check_never(cloud, life.of.kind, life.handle)
    check_life(cloud, life)


@pytest.mark.parametrize("name", LIVES)
def test_a_lost_answer_has_made_one(
    name: str, cloud: OpenStackCloud, project: Project, profiles: tuple[str, str]
) -> None:
    check_lost(cloud, project, LIVES[name](*profiles), "octavia-api", PATHS[name])


def test_a_quota_is_set_changed_and_taken_back(cloud: OpenStackCloud, project: Project) -> None:
    kind = "load_balancer_quota"
    life = Life("OS::Octavia::Quota", {"project": project.id, "listener": 7, "pool": -1})
    for _ in range(2):
        made = accepted(lambda: cloud.create(kind, [Creation("q", life.spec("q"))]))
        assert made.handle == project.id
    assert life.differing(cloud.observe(kind, [project.id])[0], "q") == ()
    wanted, changed = {"listener": 8, "member": 9}, ("listener", "member", "pool")
    accepted(lambda: cloud.update(kind, [Change(project.id, wanted, changed)]))
    seen = cloud.observe(kind, [project.id])[0].properties
    assert (seen["listener"], seen["member"]) == (8, 9)
    gone = accepted(lambda: cloud.delete(kind, [project.id]))
    assert not gone.present
    assert cloud.observe(kind, [project.id])[0].properties["listener"] not in (7, 8), "the default is back"


def test_a_zone_keeps_its_name(cloud: OpenStackCloud, profiles: tuple[str, str]) -> None:
    life = LIVES["zone"](*profiles)
    name = make(cloud, life.type, life.properties)
    assert isinstance(cloud.update("load_balancer_zone", [Change(name, {"name": "other"}, ("name",))])[0], Terminal)
    remove(cloud, "load_balancer_zone", name)
