"""Hooks of deletion policies: nodes go once others have been notified, and have answered, or the time is over."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.api.access.auth import NoAccess
from homeostat.clock import Entropy
from homeostat.clouds.outbound import Outbound, Rules
from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.clustering.service.services import Clustering
from homeostat.notifications.sinks import Sinks
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.database import Database
from tests.waiting import until
from tests.wire.clustering.lives import done, made, members
from tests.wire.clustering.test_policies import attached
from tests.wire.running import Running, database, serving, working


def tidier(db: Database, cloud: SimulatedCloud) -> Any:
    services = Clustering(db, StackService(db, Entropy(), Quotas()))
    return services.hook_waits.tidier(Sinks(lambda _: cloud, Outbound(Rules())))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Its worker does what is due about hooks."""
    cloud = SimulatedCloud(time.time)
    directory: Path = tmp_path_factory.mktemp("service")
    with (
        database(directory) as db,
        serving(db, NoAccess(), cloud=cloud) as url,
        working(db, cloud, url=url, tidying=[tidier(db, cloud).tidy]),
    ):
        yield Running(url, db, cloud)


def hooked(api: Any, cluster: Any, queue: str, timeout: int = 3600) -> Any:
    hooks = {"type": "zaqar", "params": {"queue": queue}, "timeout": timeout}
    return attached(api, cluster, "deletion", "1.1", criteria="OLDEST_FIRST", hooks=hooks)


def received(service: Running, queue: str, count: int = 1) -> list[Any]:
    """The messages of a queue, once there are so many."""
    until(lambda: len(service.cloud.messages.get(queue, [])) >= count, "the messages")
    return [each["body"] for each in service.cloud.messages[queue]]


@pytest.fixture
def queue(service: Running, project: str) -> str:
    (answer,) = service.cloud.create("queue", [Creation(f"token-{project}", {"name": f"queue-{project}"})])
    return str(answer.handle)  # type: ignore[union-attr]


def act(senlin: httpx.Client, cluster: Any, **body: Any) -> httpx.Response:
    return senlin.post(f"/clusters/{cluster.id}/actions", json=body)


def test_a_node_goes_once_it_is_answered(
    api: Any, profile: Any, senlin: httpx.Client, service: Running, queue: str
) -> None:
    cluster = made(api, profile, desired_capacity=3)
    hooked(api, cluster, queue)
    nodes = members(api, cluster)
    action = api.scale_in_cluster(cluster, 2)["action"]
    bodies = received(service, queue, 2)
    waiting = {body["node_id"]: body for body in bodies}
    assert set(waiting) == {nodes[1].id, nodes[2].id}
    assert waiting[nodes[1].id]["resource_id"] == nodes[1].physical_id
    assert {body["lifecycle_transition_type"] for body in bodies} == {"termination"}
    parent = api.get_action(action)
    tokens = {body["lifecycle_action_token"] for body in bodies}
    assert (parent.status, set(parent.depends_on)) == ("WAITING", tokens)
    assert (api.get_cluster(cluster.id).status, api.get_cluster(cluster.id).desired_capacity) == ("RESIZING", 1)
    assert len(members(api, cluster)) == 3
    assert act(senlin, cluster, scale_out={}).status_code == 409
    first, second = (waiting[nodes[index].id]["lifecycle_action_token"] for index in (1, 2))
    child = api.get_action(first)
    assert (child.status, child.action, child.target_id) == (
        "WAITING_LIFECYCLE_COMPLETION",
        "NODE_DELETE",
        nodes[1].id,
    )
    answer = act(senlin, cluster, complete_lifecycle={"lifecycle_action_token": first})
    assert (answer.status_code, answer.json()) == (202, {"action": first})
    api.wait_for_status(api.get_action(first), "SUCCEEDED", wait=60)
    assert sorted(members(api, cluster)) == [2, 3]
    assert api.get_action(action).status == "WAITING"
    again = act(senlin, cluster, complete_lifecycle={"lifecycle_action_token": first})
    assert (again.status_code, again.json()) == (202, {"action": first}), "as in Senlin: it is complete already"
    act(senlin, cluster, complete_lifecycle={"lifecycle_action_token": second})
    api.wait_for_status(api.get_action(action), "SUCCEEDED", wait=60)
    assert sorted(members(api, cluster)) == [3]
    done(api, api.scale_out_cluster(cluster, 1))


def test_it_goes_by_itself_in_the_end(api: Any, profile: Any, service: Running, queue: str) -> None:
    cluster = made(api, profile, desired_capacity=2)
    hooked(api, cluster, queue, timeout=1)
    first = members(api, cluster)[1]
    done(api, api.remove_nodes_from_cluster(cluster, [first.id], destroy_after_deletion=True))
    assert sorted(members(api, cluster)) == [2]
    assert [body["node_id"] for body in received(service, queue)] == [first.id]


def test_what_waits_is_cancelled(api: Any, profile: Any, senlin: httpx.Client, service: Running, queue: str) -> None:
    cluster = made(api, profile, desired_capacity=2)
    hooked(api, cluster, queue)
    action = api.scale_in_cluster(cluster, 1)["action"]
    (body,) = received(service, queue)
    assert senlin.patch(f"/actions/{action}", json={"action": {"status": "CANCELLED"}}).status_code == 202
    assert {api.get_action(each).status for each in (action, body["lifecycle_action_token"])} == {"CANCELLED"}
    late = act(senlin, cluster, complete_lifecycle={"lifecycle_action_token": body["lifecycle_action_token"]})
    assert late.status_code == 202, "it is over: nothing comes of that"
    assert len(members(api, cluster)) == 2
    done(api, api.scale_out_cluster(cluster, 1))


def test_a_cluster_that_is_deleted_waits_for_no_one(api: Any, profile: Any, service: Running, queue: str) -> None:
    cluster = made(api, profile, desired_capacity=2)
    hooked(api, cluster, queue)
    action = api.scale_in_cluster(cluster, 1)["action"]
    received(service, queue)
    api.delete_cluster(cluster.id)
    api.wait_for_delete(cluster, wait=60)
    assert api.get_action(action).status == "CANCELLED"


def test_a_worker_that_dies_is_followed_by_another_one(
    api: Any, profile: Any, senlin: httpx.Client, service: Running, queue: str
) -> None:
    """All that it knew is in rows: one that is new goes on."""
    cluster = made(api, profile, desired_capacity=2)
    hooked(api, cluster, queue)
    action = api.scale_in_cluster(cluster, 1)["action"]
    (body,) = received(service, queue)
    another = tidier(service.db, service.cloud)
    another.tidy()
    assert len(service.cloud.messages[queue]) == 1, "it knows that others have been notified"
    act(senlin, cluster, complete_lifecycle={"lifecycle_action_token": body["lifecycle_action_token"]})
    another.tidy()
    api.wait_for_status(api.get_action(action), "SUCCEEDED", wait=60)


def test_tokens_of_others_are_not_there(api: Any, profile: Any, senlin: httpx.Client) -> None:
    cluster = made(api, profile, desired_capacity=1)
    answer = act(senlin, cluster, complete_lifecycle={"lifecycle_action_token": "none-such"})
    assert answer.status_code == 404
    old = {"OpenStack-API-Version": "clustering 1.8"}
    url, body = f"/clusters/{cluster.id}/actions", {"complete_lifecycle": {"lifecycle_action_token": "x"}}
    assert senlin.post(url, json=body, headers=old).json()["error"]["type"] == "MethodVersionNotFound"


def test_of_several_workers_one_sends_the_message(
    api: Any, profile: Any, senlin: httpx.Client, service: Running, queue: str
) -> None:
    cluster = made(api, profile, desired_capacity=2)
    hooked(api, cluster, queue)
    others = [tidier(service.db, service.cloud) for _ in range(3)]
    action = api.scale_in_cluster(cluster, 1)["action"]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda each: each.tidy(), others))
    (body,) = received(service, queue)
    for each in others:
        each.tidy()
    assert len(service.cloud.messages[queue]) == 1
    act(senlin, cluster, complete_lifecycle={"lifecycle_action_token": body["lifecycle_action_token"]})
    api.wait_for_status(api.get_action(action), "SUCCEEDED", wait=60)
