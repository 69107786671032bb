"""Clusters in templates: deployed by python-heatclient, scaled by their webhooks, seen by openstacksdk."""

from typing import Any

import httpx
import pytest
from heatclient.v1.client import Client as HeatClient

from tests.waiting import until
from tests.wire.running import settled

TEMPLATE = """
heat_template_version: 2021-04-16
parameters:
  size: {type: number, default: 2}
  flavor: {type: string, default: m1.small}
resources:
  profile:
    type: OS::Senlin::Profile
    properties:
      type: os.nova.server-1.0
      properties:
        flavor: {get_param: flavor}
        image: cirros
        networks: [{network: net}]
        user_data: {str_replace: {template: "#!/bin/sh\\necho $name", params: {$name: {get_param: "OS::stack_name"}}}}
  out_by_two:
    type: OS::Senlin::Policy
    properties:
      type: senlin.policy.scaling-1.0
      properties: {event: CLUSTER_SCALE_OUT, adjustment: {type: CHANGE_IN_CAPACITY, number: 2, best_effort: true}}
  oldest_go:
    type: OS::Senlin::Policy
    properties:
      type: senlin.policy.deletion-1.1
      properties: {criteria: OLDEST_FIRST, destroy_after_deletion: true}
  cluster:
    type: OS::Senlin::Cluster
    properties:
      profile: {get_resource: profile}
      desired_capacity: {get_param: size}
      min_size: 1
      max_size: 5
      metadata: {tier: web}
      policies:
        - policy: {get_resource: out_by_two}
        - policy: {get_resource: oldest_go}
          enabled: true
  out:
    type: OS::Senlin::Receiver
    properties: {cluster: {get_resource: cluster}, action: CLUSTER_SCALE_OUT, type: webhook}
  in:
    type: OS::Senlin::Receiver
    properties: {cluster: {get_resource: cluster}, action: CLUSTER_SCALE_IN, params: {count: 1}}
outputs:
  nodes: {value: {get_attr: [cluster, nodes]}}
  capacity: {value: {get_attr: [cluster, desired_capacity]}}
  addresses: {value: {get_attr: [cluster, collect, "$.details.name"]}}
  out: {value: {get_attr: [out, channel, alarm_url]}}
  in: {value: {get_attr: [in, channel, alarm_url]}}
"""


@pytest.fixture
def stack_id(heat: HeatClient, http: httpx.Client) -> str:
    created = heat.stacks.create(stack_name="web", template=TEMPLATE, disable_rollback=True)["stack"]["id"]
    settled(http, created, status="CREATE_COMPLETE")
    return str(created)


def outputs(heat: HeatClient, stack_id: str) -> dict[str, Any]:
    return {each["output_key"]: each["output_value"] for each in heat.stacks.get(stack_id).outputs}


def test_a_cluster_of_a_template_lives_as_its_template_and_its_alarms_say(
    heat: HeatClient, http: httpx.Client, api: Any, stack_id: str
) -> None:
    (cluster,) = api.clusters()
    assert (cluster.status, cluster.metadata, cluster.desired_capacity) == ("ACTIVE", {"tier": "web"}, 2)
    assert sorted(each.policy_name.split("-")[1] for each in api.cluster_policies(cluster)) == [
        "oldest_go",
        "out_by_two",
    ]
    shown = outputs(heat, stack_id)
    assert sorted(shown["nodes"]) == sorted(each.id for each in api.nodes(cluster_id=cluster.id))
    assert len(shown["addresses"]) == 2

    begun = httpx.post(shown["out"]).json()["action"]
    api.wait_for_status(api.get_action(begun), "SUCCEEDED", wait=60)
    assert api.get_cluster(cluster.id).desired_capacity == 4, "as its policy says"
    until(lambda: outputs(heat, stack_id)["capacity"] == 4, "the stack to see it")
    begun = httpx.post(shown["in"]).json()["action"]
    api.wait_for_status(api.get_action(begun), "SUCCEEDED", wait=60)
    assert len(list(api.nodes(cluster_id=cluster.id))) == 3

    heat.stacks.update(stack_id, existing=True, parameters={"flavor": "m1.large"})
    settled(http, stack_id, status="UPDATE_COMPLETE")
    assert len(list(api.nodes(cluster_id=cluster.id))) == 3, "what alarms did is left alone"
    heat.stacks.update(stack_id, existing=True, parameters={"size": 1})
    settled(http, stack_id, status="UPDATE_COMPLETE")
    (node,) = api.nodes(cluster_id=cluster.id)
    assert node.profile_id == next(iter(api.profiles())).id
    assert {each.id for each in api.clusters()} == {cluster.id}

    heat.stacks.delete(stack_id)
    settled(http, stack_id, status="DELETE_COMPLETE")
    left = [list(each) for each in (api.clusters(), api.nodes(), api.profiles(), api.policies(), api.receivers())]
    assert left == [[]] * 5


def test_its_resources_are_shown_with_their_attributes(heat: HeatClient, stack_id: str, api: Any) -> None:
    shown = heat.resources.get(stack_id, "cluster", with_attr=["nodes"])
    assert shown.physical_resource_id == next(iter(api.clusters())).id
    assert (shown.resource_type, shown.attributes["status"]) == ("OS::Senlin::Cluster", "active")
    assert len(shown.attributes["nodes"]) == 2
    assert heat.resources.get(stack_id, "out").attributes["channel"]["alarm_url"].endswith("trigger?V=2")


def test_a_cluster_that_is_deleted_by_its_own_api_is_made_again(
    heat: HeatClient, http: httpx.Client, api: Any, stack_id: str
) -> None:
    (before,) = api.clusters()
    api.delete_cluster(before.id)
    http.post(f"stacks/web/{stack_id}/actions", json={"observe": None}).raise_for_status()

    def again() -> bool:
        http.post(f"stacks/web/{stack_id}/actions", json={"observe": None})
        found = [each for each in api.clusters() if each.id != before.id]
        return len(found) == 1 and found[0].status == "ACTIVE"

    until(again, "another cluster")
    (after,) = (each.id for each in api.clusters() if each.id != before.id)
    until(lambda: [each.cluster_id for each in api.receivers()] == [after] * 2, "its receivers to be made again")


def test_the_types_are_listed_and_shown(heat: HeatClient) -> None:
    listed = {each.resource_type for each in heat.resource_types.list() if "Senlin" in each.resource_type}
    names = ("Cluster", "Node", "Policy", "Profile", "Receiver")
    assert listed == {f"OS::Senlin::{name}" for name in names}
    shown = heat.resource_types.get("OS::Senlin::Cluster")
    assert shown["support_status"] == {
        "status": "SUPPORTED",
        "version": "6.0.0",
        "message": None,
        "previous_status": None,
    }
    assert shown["properties"]["policies"]["schema"]["*"]["schema"]["policy"]["constraints"] == [
        {"custom_constraint": "senlin.policy"}
    ]
    assert sorted(shown["attributes"]) == [
        *("collect", "desired_capacity", "max_size", "metadata", "min_size", "name", "nodes", "policies", "show"),
    ]


def test_a_template_with_a_wrong_spec_is_not_valid(heat: HeatClient) -> None:
    wrong = TEMPLATE.replace("event: CLUSTER_SCALE_OUT, adj", "event: CLUSTER_SCALE_UP, adj")
    with pytest.raises(Exception, match="CLUSTER_SCALE_UP"):
        heat.stacks.validate(template=wrong)
