"""Ports of machines with a real Ironic, whose machines are of its own fake hardware."""

import contextlib
import secrets
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Creation
from homeostat.model.errors import Terminal
from homeostat.model.observed import Observation
from tests.openstack.lives import Life, check_life, check_lost, check_never, make, remove
from tests.openstack.one_thing import adapter
from tests.openstack.projects import Project

pytestmark = pytest.mark.services("ironic")
LINK = {"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Ethernet3/1", "switch_info": "switch1"}


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    """As the administrator sees it: machines are for administrators."""
    with adapter(project, tmp_path_factory.mktemp("cloud"), admin=True) as found:
        yield found


@pytest.fixture(scope="module")
def machines(project: Project) -> Iterator[list[Any]]:
    """Two of them."""
    with contextlib.closing(project.admin()) as admin:
        made = [admin.baremetal.create_node(name=f"m-{uuid.uuid4()}", driver="fake-hardware") for _ in range(2)]
        yield made
        for each in made:
            admin.baremetal.delete_node(each)


@pytest.fixture(scope="module")
def group(project: Project, machines: list[Any]) -> Iterator[Any]:
    """A group of ports of the first."""
    with contextlib.closing(project.admin()) as admin:
        made = admin.baremetal.create_port_group(name=f"g-{uuid.uuid4()}", node_uuid=machines[0].id)
        yield made
        admin.baremetal.delete_port_group(made)


def address() -> str:
    return "52:54:00:" + ":".join(secrets.token_hex(1) for _ in range(3))


def life_of(machines: list[Any], group: Any) -> Life:
    first = machines[0]
    return Life(
        "OS::Ironic::Port",
        {"node": first.name, "address": address(), "extra": {"a": 1}, "pxe_enabled": False},
        (
            {"address": address(), "extra": {"b": [2]}, "local_link_connection": LINK},
            {"pxe_enabled": True, "physical_network": "physnet1", "extra": None},
            {"portgroup": group.name},
            {"portgroup": group.id},
            {"portgroup": None},
        ),
    )


def test_it_lives_and_dies(cloud: OpenStackCloud, machines: list[Any], group: Any) -> None:
    life = life_of(machines, group)
    check_never(cloud, "baremetal_port", life.handle)
    check_life(cloud, life)


def test_a_lost_answer_has_made_one(cloud: OpenStackCloud, project: Project, machines: list[Any], group: Any) -> None:
    check_lost(cloud, project, life_of(machines, group), "ironic-api", "/v1/ports$")


def test_many_are_one_list(cloud: OpenStackCloud, machines: list[Any]) -> None:
    made = [make(cloud, "OS::Ironic::Port", {"node": machines[1].name, "address": address()}) for _ in range(5)]
    looks = cloud.observe("baremetal_port", [*made, str(uuid.uuid4())])
    assert [each.present for each in looks] == [True] * 5 + [False]
    assert {each.properties["node_uuid"] for each in looks[:5]} == {machines[1].id}
    for each in made:
        remove(cloud, "baremetal_port", each)


def test_machines_and_groups_are_known_by_name(cloud: OpenStackCloud, machines: list[Any], group: Any) -> None:
    assert cloud.resolve("baremetal_node", [machines[0].name, machines[0].id, "never"]) == [*[machines[0].id] * 2, None]
    assert cloud.resolve("baremetal_port_group", [group.name, "never"]) == [group.id, None]
    assert "baremetal_node" not in cloud.kinds


def test_what_is_taken_or_unknown_is_said(cloud: OpenStackCloud, machines: list[Any]) -> None:
    life = Life("OS::Ironic::Port", {"node": machines[0].name, "address": address()})
    specs = [life.spec("p"), life.spec("p", {"node": "no-such-machine"})]
    made, unknown = cloud.create("baremetal_port", [Creation(f"p-{uuid.uuid4()}", each) for each in specs])
    assert isinstance(made, Observation)
    assert isinstance(unknown, Terminal)
    assert "no-such-machine" in str(unknown)
    (taken,) = cloud.create("baremetal_port", [Creation(f"p-{uuid.uuid4()}", specs[0])])
    assert isinstance(taken, Terminal)
    assert "already exists" in str(taken)
    remove(cloud, "baremetal_port", made.handle)
