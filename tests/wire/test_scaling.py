"""Types of EC2 in a HOT template and groups that scale, as the genuine client sees them."""

import httpx
from heatclient.v1.client import Client as HeatClient

from tests.waiting import until
from tests.wire.running import settled

TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  size: {type: number, default: 2}
resources:
  launch:
    type: AWS::AutoScaling::LaunchConfiguration
    properties: {ImageId: debian, InstanceType: m1.small, UserData: "#!/bin/sh"}
  instances:
    type: OS::Heat::InstanceGroup
    properties:
      AvailabilityZones: [nova]
      LaunchConfigurationName: {get_resource: launch}
      Size: {get_param: size}
  group:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 0
      max_size: 5
      desired_capacity: {get_param: size}
      resource: {type: OS::Heat::TestResource, properties: {value: ready}}
  up:
    type: OS::Heat::ScalingPolicy
    properties:
      auto_scaling_group_id: {get_resource: group}
      adjustment_type: change_in_capacity
      scaling_adjustment: 1
  rules:
    type: AWS::EC2::SecurityGroup
    properties:
      GroupDescription: web
      SecurityGroupIngress: [{IpProtocol: tcp, FromPort: "22", ToPort: "22", CidrIp: 0.0.0.0/0}]
  single:
    type: AWS::EC2::Instance
    properties: {ImageId: debian, InstanceType: m1.small, SecurityGroups: [{get_resource: rules}]}
  address:
    type: AWS::EC2::EIP
    properties: {InstanceId: {get_resource: single}}
outputs:
  instances: {value: {get_attr: [instances, InstanceList]}}
  values: {value: {get_attr: [group, outputs_list, output]}}
  size: {value: {get_attr: [group, current_size]}}
  second: {value: {get_attr: [group, resource.1, output]}}
  inside: {value: {get_attr: [single, PrivateIp]}}
  outside: {value: {get_resource: address}}
  policy: {value: {get_attr: [up, signal_url]}}
"""


def outputs(heat: HeatClient, stack_id: str) -> dict[str, object]:
    return {each["output_key"]: each["output_value"] for each in heat.stacks.get(stack_id).outputs}


def test_groups_and_ec2_in_a_hot_template(heat: HeatClient, http: httpx.Client) -> None:
    stack_id = heat.stacks.create(stack_name="web", template=TEMPLATE)["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    reported = outputs(heat, stack_id)
    assert (reported["values"], reported["size"], reported["second"]) == (["ready", "ready"], 2, "ready")
    assert len(str(reported["instances"]).split(",")) == 2
    assert str(reported["inside"]).startswith("10.")
    assert str(reported["outside"]).startswith("203.")
    assert str(reported["policy"]).endswith("/resources/up/signal")
    group = heat.resources.get(stack_id, "group")
    child = heat.stacks.template(group.physical_resource_id)
    assert [each["type"] for each in child["resources"].values()] == ["OS::Heat::TestResource"] * 2
    heat.stacks.update(stack_id, template=TEMPLATE, parameters={"size": 1})
    settled(http, stack_id, status="UPDATE_COMPLETE")
    assert outputs(heat, stack_id)["values"] == ["ready"]
    assert len(str(outputs(heat, stack_id)["instances"]).split(",")) == 1
    heat.resources.signal(stack_id, "up")
    until(lambda: outputs(heat, stack_id)["size"] == 2, "another member")
    heat.stacks.delete(stack_id)
    settled(http, stack_id, status="DELETE_COMPLETE")
