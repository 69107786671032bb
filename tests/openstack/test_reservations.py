"""Hosts that can be reserved, and leases, with a real Blazar that reserves the hosts of a real Nova."""

import datetime
import uuid
from collections.abc import Iterator

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Creation
from homeostat.model.errors import Terminal
from tests.openstack.lives import Life, Spec, accepted, check_life, check_lost, check_never, make, ready, remove
from tests.openstack.one_thing import adapter
from tests.openstack.projects import Project

# A host with servers cannot be made reservable; while it is, Nova places nothing else of others on it.
pytestmark = [pytest.mark.services("blazar"), pytest.mark.alone]
HOST: Spec = {"name": "compute1", "extra_capability": {"gpu": "True"}}
NEVER = "4711"


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    """As the administrator sees it: hosts are for administrators."""
    with adapter(project, tmp_path_factory.mktemp("cloud"), admin=True) as found:
        yield found


def at(hours: int) -> str:
    return f"{datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours):%Y-%m-%d %H:%M}"


def lease(kind: str = "physical:host") -> Spec:
    """Properties of a lease that begins at some hour of its own, since each host is reserved once at a time."""
    begins = 24 * (1 + uuid.uuid4().int % 10_000)
    sizes = (
        {"min": 1, "max": 1} if kind == "physical:host" else {"amount": 1, "vcpus": 1, "memory_mb": 64, "disk_gb": 1}
    )
    wanted = {"resource_type": kind, **sizes}
    return {"name": f"lease-{begins}", "start_date": at(begins), "end_date": at(begins + 2), "reservations": [wanted]}


def test_a_host_lives_and_dies(cloud: OpenStackCloud) -> None:
    check_never(cloud, "reservable_host", NEVER)
    check_life(cloud, Life("OS::Blazar::Host", HOST))


def test_a_lost_answer_has_made_one_host(cloud: OpenStackCloud, project: Project) -> None:
    check_lost(cloud, project, Life("OS::Blazar::Host", HOST), "blazar-api", "/os-hosts$")


@pytest.fixture(scope="module")
def host(cloud: OpenStackCloud) -> Iterator[str]:
    """Handle of a host that is there for all leases."""
    made = make(cloud, "OS::Blazar::Host", HOST)
    yield made
    remove(cloud, "reservable_host", made)


def test_a_host_shows_what_it_has(cloud: OpenStackCloud, host: str) -> None:
    seen = cloud.observe("reservable_host", [host, *"9876"])
    assert [each.present for each in seen] == [True, *[False] * 4]
    found = seen[0].properties
    assert (found["hypervisor_hostname"], found["reservable"], found["gpu"]) == ("compute1", True, "True")
    assert found["cpu_info"]["arch"] == "x86_64"
    (again,) = cloud.create("reservable_host", [Creation(f"h-{uuid.uuid4()}", HOST)])
    assert isinstance(again, Terminal)
    assert "compute1" in str(again)


@pytest.mark.parametrize("kind", ["physical:host", "virtual:instance"])
def test_a_lease_lives_and_dies(kind: str, cloud: OpenStackCloud, host: str) -> None:
    check_never(cloud, "lease", str(uuid.uuid4()))
    life = Life("OS::Blazar::Lease", lease(kind))
    token = f"lease-{uuid.uuid4()}"
    made = accepted(lambda: cloud.create("lease", [Creation(token, life.spec("l"))]))
    assert [each.handle for each in cloud.find("lease", [token, "never-was"])] == [made.handle, ""]
    seen = ready(cloud, "lease", made.handle).properties
    assert (seen["name"], seen["status"]) == (life.properties["name"], "pending")
    assert seen["reservations"][0]["resource_type"] == kind
    assert {each["event_type"] for each in seen["events"]} >= {"start_lease", "end_lease"}
    remove(cloud, "lease", made.handle)
    assert not cloud.find("lease", [token])[0].present


def test_a_lost_answer_has_made_one_lease(cloud: OpenStackCloud, project: Project, host: str) -> None:
    check_lost(cloud, project, Life("OS::Blazar::Lease", lease()), "blazar-api", "/v1/leases$")


def test_a_lease_of_more_hosts_than_there_are_is_refused(cloud: OpenStackCloud, host: str) -> None:
    wanted = lease()
    wanted["reservations"] = [{**wanted["reservations"][0], "min": 2, "max": 2}]
    spec = Life("OS::Blazar::Lease", wanted).spec("l")
    (answer,) = cloud.create("lease", [Creation(f"l-{uuid.uuid4()}", spec)])
    assert isinstance(answer, Terminal)
    assert "Not enough hosts" in str(answer)
