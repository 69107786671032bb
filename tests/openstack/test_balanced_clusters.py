"""Clusters behind load balancers of a real Octavia, whose nodes are in a server group of a real Nova."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.openstack.balanced_farms import farm
from tests.openstack.projects import Project
from tests.openstack.running import eventually
from tests.openstack.serving import Served, serving

pytestmark = [pytest.mark.services("octavia")]
NAME = "farm"


@pytest.fixture(scope="module")
def served(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    with serving(project, folder / "state", "--health-interval-min", "1") as found:
        yield found


def at_rest(served: Served, status: str) -> None:
    found = served.at_rest(NAME)
    assert found["stack_status"] == status, (found, served.failures(NAME))


def test_nodes_are_members_of_a_pool_and_of_a_server_group(served: Served, project: Project) -> None:
    with contextlib.closing(project.connection()) as user:

        def pooled() -> list[str]:
            pools: list[Any] = list(user.load_balancer.pools(project_id=project.id))
            return sorted(each.address for pool in pools for each in user.load_balancer.members(pool.id))

        def addresses() -> list[str]:
            servers = user.compute.servers()
            return sorted(each["addr"] for one in servers for found in one.addresses.values() for each in found)

        served.create(NAME, farm(1, "leaving"))
        at_rest(served, "CREATE_COMPLETE")
        (first,) = [each.id for each in user.compute.servers()]
        assert pooled() == []
        served.update(NAME, farm(2, "leaving", "balancing", "apart"))
        at_rest(served, "UPDATE_COMPLETE")
        assert (len(pooled()), pooled()) == (2, addresses()), "the first one has entered the pool as it is"
        assert first in {each.id for each in user.compute.servers()}
        (balancer,) = user.load_balancer.load_balancers(project_id=project.id)
        assert balancer.name.startswith("senlin-lb-")
        (monitor,) = user.load_balancer.health_monitors(project_id=project.id)
        assert (monitor.type, monitor.delay, monitor.max_retries) == ("TCP", 5, 2)
        served.update(NAME, farm(1, "leaving", "balancing", "apart"))
        at_rest(served, "UPDATE_COMPLETE")
        assert (len(pooled()), pooled()) == (1, addresses())
        (left,) = user.compute.servers()
        (group,) = user.compute.server_groups()
        assert (left.id == first, group.member_ids) == (False, [left.id]), "the newer one is in the group"
        served.update(NAME, farm(1, "leaving"))
        at_rest(served, "UPDATE_COMPLETE")
        assert list(user.load_balancer.load_balancers(project_id=project.id)) == []
        assert list(user.compute.server_groups()) == []
        assert [each.id for each in user.compute.servers()] == [left.id]
        id = served.stack(NAME)["id"]
        served.delete(NAME)
        assert served.at_rest(id)["stack_status"] == "DELETE_COMPLETE", served.failures(id)
        assert list(user.compute.servers()) == []


@pytest.mark.shows("HP6", "HS28")
def test_a_node_that_its_load_balancer_finds_dead_is_made_again(served: Served, project: Project) -> None:
    with contextlib.closing(project.connection()) as user:

        def pooled() -> dict[str, str]:
            """Address -> operating status."""
            pools: list[Any] = list(user.load_balancer.pools(project_id=project.id))
            found = [each for pool in pools for each in user.load_balancer.members(pool.id)]
            return {each.address: each.operating_status for each in found}

        def health() -> list[str]:
            below = served.path(served.handles(NAME)["cluster"], "health")
            return [each["finding"] for each in served.http.get(below).json()["health"]]

        served.create(NAME, farm(2, "leaving", "balancing", "health"))
        at_rest(served, "CREATE_COMPLETE")
        eventually(lambda: health() == ["healthy"] * 2, "healthy nodes")
        before, (dead, left) = {each.id for each in user.compute.servers()}, sorted(pooled())
        project.cloud.member("down", dead)
        eventually(lambda: {each.id for each in user.compute.servers()} - before, "another server")
        eventually(lambda: len(pooled()) == 2 and set(pooled().values()) == {"ONLINE"}, "two members that are online")
        assert dead not in pooled()
        assert left in pooled()
        assert len({each.id for each in user.compute.servers()} & before) == 1
        eventually(lambda: health() == ["healthy"] * 2, "healthy nodes")
        id = served.stack(NAME)["id"]
        served.delete(NAME)
        assert served.at_rest(id)["stack_status"] == "DELETE_COMPLETE", served.failures(id)
