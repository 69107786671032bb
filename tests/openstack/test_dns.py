"""DNS with a real Designate."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Change, Creation
from homeostat.model.errors import Terminal
from homeostat.model.observed import Observation
from tests.openstack import lives
from tests.openstack.lives import Life, accepted, check_life, check_lost, check_never, make, remove
from tests.openstack.projects import Project
from tests.waiting import until

pytestmark = [pytest.mark.services("designate"), pytest.mark.slow]
NEVER = "11111111-2222-3333-4444-555555555555"


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with lives.adapter(project, tmp_path_factory.mktemp("cloud")) as found:
        yield found


@pytest.fixture(scope="module")
def zone(cloud: OpenStackCloud) -> Iterator[str]:
    """Name of a zone."""
    name = f"{uuid.uuid4()}.example."
    made = make(cloud, "OS::Designate::Zone", {"name": name, "email": "a@example.org"})
    yield name
    remove(cloud, "dns_zone", made)


LIVES: dict[str, Callable[[str], Life]] = {
    "dns_zone": lambda zone: Life(
        "OS::Designate::Zone",
        {"name": f"a{zone}", "email": "a@example.org", "ttl": 600, "description": "d"},
        ({"email": "b@example.org", "ttl": 700, "description": None},),
        NEVER,
    ),
    "dns_record_set": lambda zone: Life(
        "OS::Designate::RecordSet",
        {"zone": zone, "name": f"w.{zone}", "type": "A", "records": ["10.0.0.2", "10.0.0.1"], "ttl": 600},
        ({"records": ["10.0.0.3"], "ttl": 60, "description": "e"},),
        f"{NEVER}/{NEVER}",
    ),
}


@pytest.mark.parametrize("kind", LIVES)
def test_it_lives_and_dies(kind: str, cloud: OpenStackCloud, zone: str) -> None:
    life = LIVES[kind](zone)
    check_never(cloud, kind, life.handle)
    check_life(cloud, life)


@pytest.mark.parametrize(("kind", "path"), [("dns_zone", "/zones$"), ("dns_record_set", "/recordsets$")])
def test_a_lost_answer_has_made_one(kind: str, path: str, cloud: OpenStackCloud, project: Project, zone: str) -> None:
    check_lost(cloud, project, LIVES[kind](f"l{zone}" if kind == "dns_zone" else zone), "designate-api", path)


def test_secondary_zones_come_from_other_servers(cloud: OpenStackCloud, zone: str) -> None:
    properties = {"name": f"s{zone}", "type": "SECONDARY", "primaries": ["10.0.0.1", "10.0.0.2"]}
    life = Life("OS::Designate::Zone", properties)
    made = accepted(lambda: cloud.create("dns_zone", [Creation(f"secondary-{zone}", life.spec("s"))]))
    seen = cloud.observe("dns_zone", [made.handle])[0]
    assert life.differing(seen, "s") == ()
    accepted(lambda: cloud.update("dns_zone", [Change(made.handle, {"masters": ["10.0.0.3"]}, ("masters",))]))
    assert cloud.observe("dns_zone", [made.handle])[0].properties["masters"] == ["10.0.0.3"]
    remove(cloud, "dns_zone", made.handle)


def test_a_bad_record_set_does_not_spoil_the_others(cloud: OpenStackCloud, zone: str) -> None:
    specs = [
        {"zone_id": zone, "name": f"{name}.{zone}", "type": "A", "records": [data]}
        for name, data in (("a", "10.0.0.1"), ("b", "no address"), ("c", "10.0.0.3"), ("a", "10.0.0.4"))
    ]
    batch = [Creation(f"batch-{number}", spec) for number, spec in enumerate(specs)]
    answers = cloud.create("dns_record_set", batch)
    made = [each.handle for each in answers if isinstance(each, Observation)]
    assert len(made) == 2
    assert sum(isinstance(each, Terminal) for each in answers) == 2
    handles = [*made, f"{NEVER}/{NEVER}", made[0].rpartition("/")[2]]
    looks = cloud.observe("dns_record_set", handles)
    assert [each.present for each in looks] == [True, True, False, True], "others know record sets by their id alone"
    for handle in made:
        remove(cloud, "dns_record_set", handle)


def test_a_zone_that_the_name_servers_refuse_says_so(cloud: OpenStackCloud, project: Project, zone: str) -> None:
    name = f"bad{zone}"
    spec = Life("OS::Designate::Zone", {"name": name, "email": "a@example.org"}).spec("z")
    with project.cloud.fault("dns", op="create", name=f"^{name}$", error="oops"):
        made = accepted(lambda: cloud.create("dns_zone", [Creation(f"bad-{zone}", spec)]))

        def broken() -> bool:
            return bool(cloud.observe("dns_zone", [made.handle])[0].properties["status"] == "error")

        until(broken, "the zone to go to ERROR", rest=lives.rest)
    assert cloud.observe("dns_zone", [made.handle])[0].properties["fault"]
    remove(cloud, "dns_zone", made.handle)
