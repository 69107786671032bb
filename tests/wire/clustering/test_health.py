"""Health policies of clusters: what they find is shown, and what they propose is approved."""

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.waiting import until
from tests.wire.clustering.lives import SERVER, done, made, members
from tests.wire.running import Running

DETECTION = {"interval": 60, "node_update_timeout": 0, "detection_modes": [{"type": "NODE_STATUS_POLLING"}]}


def policy(**recovery: Any) -> dict[str, Any]:
    wanted = {"actions": [{"name": "RECREATE"}], **recovery}
    return {
        "type": "senlin.policy.health",
        "version": "1.2",
        "properties": {"detection": DETECTION, "recovery": wanted},
    }


@pytest.fixture
def proposing(api: Any, profile: Any) -> Any:
    """A cluster whose health policy proposes recoveries."""
    cluster = made(api, profile)
    health = api.create_policy(name="h", spec=policy(mode="propose"))
    done(api, api.attach_policy_to_cluster(cluster, health.id, enabled=True))
    return cluster


def command(service: Running, project: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOMEOSTAT_URL": service.url, "HOMEOSTAT_PROJECT": project, "COLUMNS": "160"}
    return subprocess.run(
        [sys.executable, "-m", "homeostat", "health", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def found(service: Running, project: str, cluster: Any) -> Mapping[str, Any]:
    """Path -> what was found of each node."""
    stacks = f"{service.endpoint(project)}/stacks"
    name = httpx.get(f"{stacks}/{cluster.id}", follow_redirects=True).json()["stack"]["stack_name"]
    answer = httpx.get(f"{stacks}/{name}/{cluster.id}/health").raise_for_status().json()
    return {"/".join(each["path"]): each for each in answer["health"]}


@pytest.mark.shows("HS5", "HS26")
def test_what_is_found_is_shown_and_a_recovery_waits_for_approval(
    api: Any, proposing: Any, service: Running, project: str
) -> None:
    node = members(api, proposing)[1]
    until(lambda: len(found(service, project, proposing)) == 2, "the nodes to be looked at")
    service.cloud.change(node.physical_id, status="stopped")
    until(lambda: found(service, project, proposing)["nodes/0"]["resource_status"] == "CHECK_FAILED", "it to be found")
    assert api.get_node(node.id).status == "ERROR"
    shown = api.get_node(node.id).data["health"]
    assert (shown["finding"], shown["detected"][0]["evidence"]) == ("unhealthy", "its status is stopped")
    assert found(service, project, proposing)["nodes/0"]["finding"] == "unhealthy"
    status = command(service, project, "status", proposing.id)
    assert status.returncode == 1
    assert "its status is stopped" in status.stdout
    assert "homeostat health approve" in status.stdout
    refused = command(service, project, "approve", proposing.id, "nodes/1")
    assert (refused.returncode, "nodes/0" in refused.stderr) == (1, True)
    assert command(service, project, "approve", proposing.id, "nodes/0").returncode == 0
    until(lambda: api.get_node(node.id).status == "ACTIVE", "the node to be recovered")
    recovered = api.get_node(node.id)
    assert (recovered.name, recovered.physical_id != node.physical_id) == (node.name, True)


def test_a_policy_that_is_switched_off_finds_nothing(api: Any, proposing: Any, service: Running, project: str) -> None:
    (bound,) = api.cluster_policies(proposing.id)
    until(lambda: len(found(service, project, proposing)) == 2, "the nodes to be looked at")
    done(api, api.update_cluster_policy(proposing, bound.policy_id, enabled=False))
    assert found(service, project, proposing) == {}


def test_an_interval_below_the_setting_is_refused(api: Any) -> None:
    spec = policy()
    spec["properties"] = {**spec["properties"], "detection": {**DETECTION, "interval": 59}}
    with pytest.raises(Exception, match="health_check_interval_min of 60 seconds"):
        api.create_policy(name="h", spec=spec)


@pytest.mark.shows("HS17")
def test_a_recovery_without_an_operation_does_what_the_policy_says_first_and_shows_it(
    api: Any, profile: Any, service: Running
) -> None:
    cluster = made(api, profile)
    spec = policy(mode="observe", actions=[{"name": "REBOOT", "params": {"type": "SOFT"}}, {"name": "RECREATE"}])
    done(api, api.attach_policy_to_cluster(cluster, api.create_policy(name="h", spec=spec).id, enabled=True))
    node = members(api, cluster)[1]
    service.cloud.change(node.physical_id, status="stopped")
    until(lambda: api.get_node(node.id).status == "ERROR", "it to be found")
    action = done(api, api.recover_cluster(cluster.id))
    shown = api.get(f"/actions/{action.id}").json()["action"]["data"]["health"]
    assert [each["name"] for each in shown["recover_action"]] == ["REBOOT", "RECREATE"]
    until(lambda: api.get_node(node.id).status == "ACTIVE", "the node to be recovered")
    assert api.get_node(node.id).physical_id == node.physical_id


STACK: dict[str, Any] = {
    "type": "os.heat.stack",
    "version": "1.0",
    "properties": {
        "template": {
            "heat_template_version": "2018-08-31",
            "resources": {"web": {"type": "OS::Nova::Server", "properties": SERVER["properties"]}},
        }
    },
}


def test_a_check_of_a_node_that_is_a_stack_names_the_server_that_is_gone_inside(
    api: Any, http: httpx.Client, service: Running, project: str
) -> None:
    cluster = made(api, api.create_profile(name="stacks", spec=STACK), desired_capacity=1)
    node = members(api, cluster)[1]
    stack = f"{service.endpoint(project)}/stacks/{node.physical_id}"
    (web,) = http.get(f"{stack}/resources", follow_redirects=True).raise_for_status().json()["resources"]
    done(api, api.check_node(node))
    service.cloud.vanish(web["physical_resource_id"])

    def refused() -> str:
        ended = api.get_action(api.check_node(node)["action"])
        until(lambda: api.get_action(ended.id).status in ("SUCCEEDED", "FAILED"), "the check to end")
        return str(api.get_action(ended.id).status_reason)

    until(lambda: "web inside: it does not exist any more" in refused(), "the check to see it")
