"""Receivers of messages on a real Zaqar: what is posted to their queue begins actions of clusters."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from tests.openstack import lives
from tests.openstack.projects import Project
from tests.openstack.running import eventually
from tests.openstack.serving import Served, serving

pytestmark = pytest.mark.services("zaqar")
SERVER = {"flavor": "m1.tiny", "image": "mini", "name": "n", "networks": []}


@pytest.fixture(scope="module")
def served(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(project, tmp_path_factory.mktemp("service") / "state") as found:
        # Messaging names no project: its token does, where a service asks for one.
        base = str(found.http.base_url).replace("/v1/own", "/v1/default")
        with httpx.Client(base_url=base, timeout=60.0, follow_redirects=True) as http:
            yield replace(found, http=http)


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with lives.adapter(project, tmp_path_factory.mktemp("cloud")) as found:
        yield found


@pytest.fixture(scope="module")
def senlin(served: Served) -> Iterator[httpx.Client]:
    base = str(served.http.base_url).replace("/v1/default", "/clustering/v1")
    with httpx.Client(base_url=base, timeout=60.0) as http:
        yield http


def made(senlin: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = senlin.post(path, json=body)
    assert answer.status_code in (201, 202), answer.text
    return dict(next(iter(answer.json().values())))


def test_a_message_in_the_queue_scales_a_cluster(served: Served, senlin: httpx.Client, cloud: OpenStackCloud) -> None:
    spec = {"type": "os.nova.server", "version": "1.0", "properties": SERVER}
    profile = made(senlin, "/profiles", {"profile": {"name": "p", "spec": spec}})
    wanted = {"name": "c", "profile_id": profile["id"], "desired_capacity": 1, "max_size": 3}
    cluster = made(senlin, "/clusters", {"cluster": wanted})

    def is_active(nodes: int) -> bool:
        found = senlin.get(f"/clusters/{cluster['id']}").json()["cluster"]
        return found["status"] == "ACTIVE" and len(found["nodes"]) == nodes

    receiver = made(senlin, "/receivers", {"receiver": {"name": "r", "type": "message", "params": {"count": 1}}})
    try:
        eventually(lambda: is_active(1), "the cluster")
        queue = receiver["channel"]["queue_name"]
        name = f"receiver-{receiver['id']}"
        assert served.at_rest(name)["stack_status"] == "CREATE_COMPLETE", served.failures(name)
        messaging = cloud.service("message")
        asked = {"cluster": cluster["id"], "action": "CLUSTER_SCALE_OUT", "params": {}}
        posted = {"messages": [{"ttl": 300, "body": asked}]}
        messaging.request("POST", f"/queues/{queue}/messages", posted)
        eventually(lambda: is_active(2), "another node")
        actions = senlin.get("/actions", params={"target": cluster["id"]}).json()["actions"]
        assert f"receiver_{receiver['id'][:8]}_{cluster['id'][:8]}" in [each["name"] for each in actions]
    finally:
        senlin.delete(f"/receivers/{receiver['id']}")
        senlin.delete(f"/clusters/{cluster['id']}")
        eventually(lambda: senlin.get(f"/clusters/{cluster['id']}").status_code == 404, "the cluster to be gone")
    eventually(lambda: queue not in str(messaging.get("/queues")), "the queue to be gone")
