"""Who only reads neither sees addresses that act, nor has a say in rollouts."""

import time
from collections.abc import Iterator
from typing import Any

import bcrypt
import httpx
import pytest

from homeostat.api.access.auth import BasicAccess
from homeostat.clouds.simulated import SimulatedCloud
from tests.waiting import until
from tests.wire.running import database, serving, working

SERVER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "small"}}


def template(value: str) -> dict[str, Any]:
    group = {"count": 2, "metadata_update_pattern": "rolling", "resource_def": SERVER}
    handle = {"handle": {"get_resource": "handle"}, "count": 1, "timeout": 600}
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            "group": {"type": "OS::Heat::ResourceGroup", "metadata": {"v": value}, "properties": group},
            "handle": {"type": "OS::Heat::WaitConditionHandle"},
            "wait": {"type": "OS::Heat::WaitCondition", "depends_on": ["group"], "properties": handle},
        },
    }


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """A member, and a reader of the same project."""
    directory = tmp_path_factory.mktemp("site")
    secret = bcrypt.hashpw(b"x", bcrypt.gensalt(4)).decode()
    passwords = directory / "htpasswd"
    passwords.write_text(f"ada:{secret}:shop:member\nray:{secret}:shop:reader\n")
    with (
        database(directory) as db,
        serving(db, BasicAccess(passwords)) as url,
        working(db, SimulatedCloud(time.time), url=url),
        httpx.Client(base_url=f"{url}/v1/shop", auth=("ada", "x")) as member,
        httpx.Client(base_url=f"{url}/v1/shop", auth=("ray", "x")) as reader,
    ):
        yield member, reader


def test_a_reader_may_signal_a_handle_but_no_gate(clients: tuple[httpx.Client, httpx.Client]) -> None:
    member, reader = clients
    made = member.post("stacks", json={"stack_name": "web", "template": template("1")}).json()
    path = f"stacks/web/{made['stack']['id']}"
    until(lambda: "handle" in member.get(f"{path}/resources/handle").text, "the handle")
    until(
        lambda: member.get(f"{path}/resources/wait").json()["resource"]["resource_status"] == "CREATE_IN_PROGRESS",
        "the condition",
    )
    assert reader.post(f"{path}/resources/handle/signal", json={}).status_code == 200
    until(lambda: member.get(path).json()["stack"]["stack_status"] == "CREATE_COMPLETE", "the stack")
    assert member.put(path, json={"template": template("2")}).status_code == 202
    until(lambda: member.get(f"{path}/resources/group/rollout").status_code == 200, "the rollout")
    until(lambda: member.get(f"{path}/resources/group/rollout").json()["rollout"]["step"] == 1, "its first step")
    refused = reader.post(f"{path}/resources/handle/signal", json={"status": "FAILURE"})
    assert refused.status_code == 403, refused.text
    assert member.post(f"{path}/resources/handle/signal", json={"data": "nobody"}).status_code == 200


def test_a_reader_does_not_see_the_address_of_a_receiver(clients: tuple[httpx.Client, httpx.Client]) -> None:
    member, reader = clients
    base = str(member.base_url).partition("/v1/")[0] + "/clustering/v1"
    spec = {"type": "os.nova.server", "version": "1.0", "properties": {"image": "i", "flavor": "small", "name": "n"}}
    made = member.post(f"{base}/profiles", json={"profile": {"name": "p", "spec": spec}})
    assert made.status_code == 201, made.text
    wanted = {"name": "c", "profile_id": made.json()["profile"]["id"], "desired_capacity": 0}
    cluster = member.post(f"{base}/clusters", json={"cluster": wanted})
    assert cluster.status_code == 202, cluster.text
    hook = {"name": "r", "type": "webhook", "cluster_id": "c", "action": "CLUSTER_SCALE_OUT"}
    answer = member.post(f"{base}/receivers", json={"receiver": hook})
    assert "alarm_url" in answer.json()["receiver"]["channel"]
    address = f"{base}/receivers/{answer.json()['receiver']['id']}"
    for client, channel in ((member, {"alarm_url"}), (reader, set())):
        assert client.get(address).json()["receiver"]["channel"].keys() == channel
        assert client.get(f"{base}/receivers").json()["receivers"][0]["channel"].keys() == channel
