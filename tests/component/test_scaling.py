"""Groups that scale, from end to end: their size, who leaves, how members change; the addresses of policies."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.nested_stacks.attributes import show_members
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.model.world import World
from homeostat.planner.scope import thing_of
from homeostat.resources.instance_signals import duration_s
from homeostat.resources.registry import resource_type
from homeostat.store.shards import shard_state
from homeostat.store.stacks import stacks
from tests.component.previewed import changes, preview
from tests.component.running import URL, Service, server


def scaling(low: int, high: int, member: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    bounds = {"min_size": low, "max_size": high, "resource": member or server()}
    return {"group": {"type": "OS::Heat::AutoScalingGroup", "properties": {**bounds, **properties}}}


def members(service: Service) -> list[str]:
    return sorted(service.states(service.child().id), key=int)


def shown(service: Service, stack_id: str, name: str, *path: Any) -> Any:
    """An attribute of the group, as a template reads it."""
    facts = stacks.facts(service.stack(stack_id))
    with service.db.read() as tx:
        rows, seen = shard_state.load_rows(tx, stack_id, 0)
        world = World(facts, 0, {}, rows, seen)
        show_members(tx, world, {"group"})
    row = next(each for each in rows.values() if each.name == "group")
    kind = resource_type(row.type)
    return kind.resolve(thing_of(world, row, kind), name, path)


@pytest.mark.parametrize(("desired", "size"), [({}, 2), ({"desired_capacity": 3}, 3), ({"desired_capacity": 0}, 2)])
def test_a_group_begins_with_its_wanted_size_else_its_least(desired: dict[str, int], size: int) -> None:
    service = Service()
    stack_id = service.create(scaling(2, 5, None, **desired))
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert len(service.servers()) == size
    assert shown(service, stack_id, "current_size") == size
    assert shown(service, stack_id, "refs") == [row.handle for row in service.rows(service.child().id)]


def test_without_a_wanted_size_a_group_stays_as_it_is_within_its_bounds() -> None:
    service = Service()
    stack_id = service.create(scaling(1, 5, desired_capacity=3))
    service.rest()
    first = service.servers()
    service.update(stack_id, scaling(1, 6))
    service.rest()
    assert service.servers() == first
    service.update(stack_id, scaling(4, 6))
    service.rest()
    assert (len(service.servers()), set(first) <= set(service.servers())) == (4, True)
    service.update(stack_id, scaling(1, 2))
    service.rest()
    assert len(service.servers()) == 2


def test_the_oldest_leave_and_their_names_are_never_used_again() -> None:
    service = Service()
    stack_id = service.create(scaling(0, 5, desired_capacity=3))
    service.rest()
    service.update(stack_id, scaling(0, 5, desired_capacity=1))
    service.rest()
    assert members(service) == ["2"]
    service.update(stack_id, scaling(0, 5, desired_capacity=3))
    service.rest()
    assert members(service) == ["2", "3", "4"]
    refs = shown(service, stack_id, "refs_map")
    assert list(refs) == ["2", "3", "4"]
    assert shown(service, stack_id, "resource.0") == refs["2"]
    assert shown(service, stack_id, "resource.2.name") == shown(service, stack_id, "outputs", "name")["4"]
    with pytest.raises(Rejected, match="Member '3' not found in group resource 'group'"):
        shown(service, stack_id, "resource.3")


def test_members_change_one_after_the_other_by_default() -> None:
    service = Service()
    slow = {"type": "OS::Heat::TestResource", "properties": {"value": "one", "wait_secs": 5}}
    stack_id = service.create(scaling(3, 3, slow))
    service.rest()
    changed = {**slow, "properties": {"value": "two", "wait_secs": 5}}
    service.update(stack_id, scaling(3, 3, changed))
    service.live(2)
    states = list(service.states(service.child().id).values())
    assert states.count("UPDATE_IN_PROGRESS") == 1
    service.rest()
    assert shown(service, stack_id, "outputs_list", "output") == ["two"] * 3
    assert shown(service, stack_id, "outputs", "output") == {"0": "two", "1": "two", "2": "two"}


def test_index_of_a_resource_group_inside_a_member_is_its_own() -> None:
    service = Service()
    inner = {"type": "OS::Heat::TestResource", "properties": {"value": "v%index%"}}
    member = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": inner}}
    service.create(scaling(1, 1, member))
    service.rest()
    (innermost,) = [each.id for each in service.stacks() if each.depth == 2]
    assert sorted(row.properties["value"] for row in service.rows(innermost)) == ["v0", "v1"]


def nested(value: str) -> dict[str, str]:
    resource = f"{{type: OS::Heat::TestResource, properties: {{value: {value}}}}}"
    output = "{value: {get_attr: [one, output]}}"
    return {
        "member.yaml": f"heat_template_version: 2018-08-31\nresources: {{one: {resource}}}\noutputs: {{told: {output}}}"
    }


def test_members_may_be_templates_and_an_edit_of_the_file_changes_them() -> None:
    service = Service()
    group = scaling(2, 2, {"type": "member.yaml"})
    stack_id = service.create(group, files=nested("one"))
    service.rest()
    assert shown(service, stack_id, "outputs_list", "told") == ["one", "one"]
    refs = shown(service, stack_id, "refs")
    service.update(stack_id, group, files=nested("two"))
    service.rest()
    assert shown(service, stack_id, "outputs_list", "told") == ["two", "two"]
    assert shown(service, stack_id, "refs") == refs
    with pytest.raises(Rejected, match=r"member\.yaml"):
        service.update(stack_id, group, files={})


def test_a_group_goes_with_its_members() -> None:
    service = Service()
    stack_id = service.create(scaling(2, 2))
    service.rest()
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.servers() == []


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        (scaling(3, 2), "MinSize can not be greater than MaxSize"),
        (scaling(1, 3, desired_capacity=4), "DesiredCapacity must be between MinSize and MaxSize"),
        (scaling(1, 3, {"properties": {}}), "Property type not assigned"),
        (scaling(1, 3, {**server(), "external_id": "s"}), "external_id is not supported in members of a group"),
        (scaling(1, 3, {**server(), "depends_on": "other"}), "let the group itself depend on it"),
        (scaling(1, 3, {**server(), "deletion_policy": "Keep"}), 'Invalid deletion policy "Keep": use Delete'),
        (scaling(1, 3, {**server(), "deletion_policy": ["Retain"]}), "Invalid deletion policy"),
        (
            scaling(1, 3, {"type": "OS::Heat::TestResource", "deletion_policy": "Snapshot"}),
            '"Snapshot" deletion policy not supported',
        ),
        (scaling(1, 3, {**server(), "update_policy": "rolling"}), "A map is needed"),
        (scaling(1, 3, {**server(), "update_policy": {"rolling_update": {}}}), "Unknown Property rolling_update"),
        (scaling(1, 3, {"type": "OS::Heat::TestResource", "properties": {"no": 1}}), "Unknown Property no"),
        (scaling(1, 3, {"type": "OS::No::Such"}), "could not be found"),
    ],
)
def test_what_no_group_can_be_is_refused(properties: dict[str, Any], problem: str) -> None:
    with pytest.raises(Rejected, match=problem) as refused:
        Service().create(properties)
    assert refused.value.path[:2] == ("resources", "group")


# -- further sections of members ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["Retain", "retain"])
def test_members_are_kept_where_their_deletion_policy_says_so(policy: str) -> None:
    service = Service()
    stack_id = service.create(scaling(1, 5, server(), desired_capacity=3))
    service.rest()
    first = service.servers()
    kept = {**server(), "deletion_policy": policy, "depends_on": [], "description": "worth keeping"}
    service.update(stack_id, scaling(1, 5, kept, desired_capacity=3))
    service.rest()
    assert service.servers() == first, "another policy makes no other servers"
    service.update(stack_id, scaling(1, 5, kept, desired_capacity=1))
    service.rest()
    assert (len(members(service)), service.servers()) == (1, first)
    service.update(stack_id, scaling(1, 5, server(), desired_capacity=1))
    service.rest()
    service.delete(stack_id)
    service.rest()
    assert len(service.servers()) == 2, "the one that was left is deleted again"


def test_members_are_saved_before_they_go() -> None:
    service = Service()
    member = {"type": "OS::Cinder::Volume", "properties": {"size": 1}, "deletion_policy": "Snapshot"}
    stack_id = service.create(scaling(0, 5, member, desired_capacity=2))
    service.rest()
    volumes = sorted(service.cloud.things("volume"))
    service.update(stack_id, scaling(0, 0, member))
    service.rest()
    assert (service.state(stack_id), service.cloud.things("volume")) == ("UPDATE_COMPLETE", {})
    assert [each["status"] for id in volumes for each in service.cloud.snapshots(id)] == ["available"] * 2


def test_members_that_are_groups_have_an_update_policy() -> None:
    def batched(image: str) -> dict[str, Any]:
        policy = {"rolling_update": {"max_batch_size": 1, "pause_time": 60}}
        properties = {"count": 3, "resource_def": server(image=image)}
        return {"type": "OS::Heat::ResourceGroup", "properties": properties, "update_policy": policy}

    service = Service()
    stack_id = service.create(scaling(1, 1, batched("old")))
    service.rest()
    service.update(stack_id, scaling(1, 1, batched("new")))
    service.live(90)
    assert sorted(each["image"] for each in service.cloud.things("server").values()) == ["new", "new", "old"]
    service.rest()
    assert {each["image"] for each in service.cloud.things("server").values()} == {"new"}


# -- groups of servers -------------------------------------------------------------------------------------------------

LAUNCH: dict[str, Any] = {
    "type": "AWS::AutoScaling::LaunchConfiguration",
    "properties": {"ImageId": "debian", "InstanceType": "small", "KeyName": "me", "UserData": "#!/bin/sh"},
}


def instances(kind: str, launch: dict[str, Any] = LAUNCH, **properties: Any) -> dict[str, Any]:
    common = {"AvailabilityZones": ["nova"], "LaunchConfigurationName": {"get_resource": "launch"}}
    return {"launch": launch, "group": {"type": kind, "properties": {**common, **properties}}}


AWS = "AWS::AutoScaling::AutoScalingGroup"
SIZES = [("OS::Heat::InstanceGroup", {"Size": 2}), (AWS, {"MinSize": 2, "MaxSize": 3, "VPCZoneIdentifier": ["left"]})]


@pytest.mark.parametrize(("kind", "size"), SIZES, ids=[each[0] for each in SIZES])
def test_servers_of_a_group_are_as_its_launch_configuration_says(kind: str, size: dict[str, Any]) -> None:
    service = Service()
    tags = [{"Key": "role", "Value": "web"}]
    stack_id = service.create(instances(kind, **size, Tags=tags))
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    made = list(service.cloud.things("server").values())
    assert [each["flavor"] for each in made] == ["small", "small"]
    assert {each["image"] for each in made} == {"debian"}
    assert {each["availability_zone"] for each in made} == {"nova"}
    group = service.row(stack_id, "group").handle
    meters = {"metering.groupname": group, **({"metering.AutoScalingGroupName": group} if kind == AWS else {})}
    assert [each["metadata"] for each in made] == [{"role": "web", **meters}] * 2
    if kind == AWS:
        assert [each["networks"] for each in made] == [[{"subnet": "left"}]] * 2
    assert shown(service, stack_id, "InstanceList") == ",".join(each["address"] for each in made)


MEMBER = """
heat_template_version: rocky
parameters:
  ImageId: {type: string}
  InstanceType: {type: string}
  KeyName: {type: string}
  UserData: {type: string}
  Tags: {type: json}
resources:
  told: {type: OS::Heat::Value, properties: {value: {get_param: [Tags, 0, Value]}}}
"""


@pytest.mark.parametrize("zone", ["", "  AvailabilityZone: {type: string}\n"], ids=["without a zone", "with a zone"])
def test_a_template_in_the_place_of_servers_gets_what_it_has_parameters_for(zone: str) -> None:
    service = Service()
    files = {"member.yaml": MEMBER.replace("resources:", f"{zone}resources:")}
    environment = {"resource_registry": {"OS::Heat::ScaledResource": "member.yaml"}}
    group = instances("OS::Heat::InstanceGroup", Size=2)
    stack_id = service.create(group, name="a-stack-with-a-long-name" * 4, files=files, environment=environment)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.row(stack_id, "group").reason
    named = service.row(stack_id, "group").properties["LaunchConfigurationName"]
    assert named.startswith("a-stack-with-a-long-name" * 4 + "-launch-")
    members = service.rows(service.row(stack_id, "group").handle)
    assert [each.properties.get("AvailabilityZone") for each in members] == ["nova" if zone else None] * 2
    tag = {"Key": "metering.groupname", "Value": service.row(stack_id, "group").handle}
    assert [each.properties["Tags"] for each in members] == [[tag]] * 2


def test_a_new_launch_configuration_replaces_the_servers_in_batches() -> None:
    service = Service()
    policy = {"AutoScalingRollingUpdate": {"MinInstancesInService": 1, "MaxBatchSize": 1, "PauseTime": "PT1M"}}
    resources = instances(AWS, MinSize=2, MaxSize=3)
    resources["group"]["update_policy"] = policy
    stack_id = service.create(resources)
    service.rest()
    first = service.servers()
    other = {**LAUNCH, "properties": {**LAUNCH["properties"], "ImageId": "fedora"}}
    after = instances(AWS, other, MinSize=2, MaxSize=3)
    after["group"]["update_policy"] = policy
    service.update(stack_id, after)
    service.live(30)
    assert len(set(first) & set(service.servers())) == 1, "the second batch comes after the pause"
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert {each["image"] for each in service.cloud.things("server").values()} == {"fedora"}
    assert len(service.servers()) == 2


def test_a_launch_configuration_that_is_not_there_is_named() -> None:
    service = Service()
    resources = instances("OS::Heat::InstanceGroup", Size=1)
    resources["group"]["properties"]["LaunchConfigurationName"] = "elsewhere"
    stack_id = service.create(resources)
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "no launch configuration elsewhere in this stack" in service.row(stack_id, "group").reason


# -- servers that are made like another one ----------------------------------------------------------------------------

GIVEN = {"image": "debian", "flavor": "small", "key_name": "me", "security_groups": ["web"]}
FIELDS = ("image", "flavor", "key_name", "security_groups")


def like(service: Service, **properties: Any) -> str:
    """The id of a server of another stack, to be like."""
    service.create({"model": server(**GIVEN, **properties)}, name="other")
    service.rest()
    (model,) = service.servers()
    return model


def group_like(model: str, **properties: Any) -> dict[str, Any]:
    sizes = {"AvailabilityZones": ["nova"], "MinSize": 1, "MaxSize": 5}
    return {"group": {"type": AWS, "properties": {**sizes, "InstanceId": model, **properties}}}


def made_beside(service: Service, *others: str) -> list[dict[str, Any]]:
    made = {id: each for id, each in service.cloud.things("server").items() if id not in others}
    return [{field: each.get(field) for field in FIELDS} for each in made.values()]


def test_the_servers_of_a_group_are_like_another_one() -> None:
    service = Service()
    model = like(service)
    stack_id = service.create(group_like(model, DesiredCapacity=2))
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.row(stack_id, "group").reason
    assert made_beside(service, model) == [GIVEN, GIVEN]


def test_what_becomes_of_the_server_later_does_not_concern_the_group() -> None:
    service = Service()
    model = like(service)
    stack_id = service.create(group_like(model))
    service.rest()
    (other,) = [each.id for each in service.stacks() if each.name == "other"]
    service.update(other, {"model": server(**{**GIVEN, "flavor": "large"})})
    service.update(stack_id, group_like(model, DesiredCapacity=2))
    service.rest()
    assert made_beside(service, model) == [GIVEN] * 2
    service.delete(other)
    service.rest()
    service.update(stack_id, group_like(model, DesiredCapacity=3))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE", service.row(stack_id, "group").reason
    assert made_beside(service) == [GIVEN] * 3


def test_a_plan_knows_what_was_taken_over() -> None:
    service = Service()
    model = like(service)
    stack_id = service.create(group_like(model))
    service.rest()
    larger = changes(preview(service, stack_id, group_like(model, DesiredCapacity=2)))
    assert larger == {("group",): "updated", ("group", "1"): "added"}


def test_a_launch_configuration_says_what_it_does_not_take_over() -> None:
    service = Service()
    model = like(service)
    launch = {**LAUNCH, "properties": {"InstanceId": model, "InstanceType": "large", "UserData": "#!/bin/sh"}}
    stack_id = service.create(instances("OS::Heat::InstanceGroup", launch, Size=1))
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.row(stack_id, "group").reason
    assert made_beside(service, model) == [{**GIVEN, "flavor": "large"}]
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    service.update(stack_id, instances("OS::Heat::InstanceGroup", launch, Size=2))
    service.rest()
    assert made_beside(service, model) == [{**GIVEN, "flavor": "large"}] * 2, "a check forgets nothing of it"


@pytest.mark.parametrize("in_launch", [False, True], ids=["group", "launch configuration"])
def test_a_server_without_an_image_is_no_model_unless_one_is_named(in_launch: bool) -> None:
    service = Service()
    devices = [{"boot_index": 0, "volume_size": 1, "image": "debian"}]
    disk = {"type": "OS::Nova::Server", "properties": {"flavor": "small", "block_device_mapping_v2": devices}}
    service.create({"model": disk}, name="other")
    service.rest()
    (model,) = service.servers()
    if in_launch:
        launch = {**LAUNCH, "properties": {"InstanceId": model, "ImageId": "fedora"}}
        stack_id = service.create(instances(AWS, launch, MinSize=1, MaxSize=1))
    else:
        stack_id = service.create(group_like(model))
    service.rest()
    if in_launch:
        assert [each["image"] for each in made_beside(service, model)] == ["fedora"]
    else:
        assert f"The server {model} has nothing for ImageId" in service.row(stack_id, "group").reason
        assert service.servers() == [model]


def test_a_server_that_is_gone_by_then_fails_the_group() -> None:
    service = Service()
    model = like(service)
    stack_id = service.begin(
        {"wait": {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 30}}}
        | {"group": {**group_like(model)["group"], "depends_on": "wait"}}
    )
    service.live(5)
    service.cloud.vanish(model)
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert f"There is no server {model} to be like" in service.row(stack_id, "group").reason


def test_the_look_at_the_server_is_repeated_while_the_cloud_is_away() -> None:
    service = Service(CloudBehaviour(build_s=1.0, faults=Faults(refused=0.4)))
    model = like(service)
    launch = {**LAUNCH, "properties": {"InstanceId": model}}
    stack_id = service.create({**instances(AWS, launch, MinSize=1, MaxSize=1), "other": group_like(model)["group"]})
    service.rest(3600)
    assert service.state(stack_id) == "CREATE_COMPLETE", service.states(stack_id)
    assert made_beside(service, model) == [GIVEN, GIVEN]


@pytest.mark.parametrize(
    ("text", "seconds"), [("PT0S", 0), ("PT1M30S", 90), ("PT1H", 3600), ("PT", None), ("1M", None), ("PT2H", None)]
)
def test_pauses(text: str, seconds: int | None) -> None:
    if seconds is None:
        with pytest.raises(Rejected):
            duration_s(text, "PauseTime")
    else:
        assert duration_s(text, "PauseTime") == seconds


# -- policies ----------------------------------------------------------------------------------------------------------


def policy(**properties: Any) -> dict[str, Any]:
    common = {"auto_scaling_group_id": {"get_resource": "group"}, "scaling_adjustment": 1}
    given = {**common, "adjustment_type": "change_in_capacity", **properties}
    return {**scaling(1, 3), "policy": {"type": "OS::Heat::ScalingPolicy", "properties": given}}


def test_a_policy_has_addresses() -> None:
    service = Service()
    stack_id = service.create(policy())
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    alarm = service.attribute(stack_id, "policy", "alarm_url")
    assert alarm.startswith(f"{URL}/v1/signal/arn")
    assert "Signature=" in alarm
    assert service.attribute(stack_id, "policy", "signal_url").endswith(f"/{stack_id}/resources/policy/signal")
    assert "Signature" not in str(service.attribute(stack_id, "policy", "show"))
    service.update(stack_id, policy(scaling_adjustment=2, cooldown=60))
    service.rest()
    assert service.attribute(stack_id, "policy", "alarm_url") == alarm
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"


def test_steps_are_for_adjustments_in_per_cent() -> None:
    with pytest.raises(Rejected, match="min_adjustment_step is only for adjustments in per cent"):
        Service().create(policy(min_adjustment_step=2))
    Service().create(policy(min_adjustment_step=2, adjustment_type="percent_change_in_capacity"))


def test_the_reference_of_an_aws_policy_is_its_address() -> None:
    service = Service()
    given = {"AutoScalingGroupName": {"get_resource": "group"}, "ScalingAdjustment": 1}
    resources = {
        **scaling(1, 3),
        "policy": {
            "type": "AWS::AutoScaling::ScalingPolicy",
            "properties": {**given, "AdjustmentType": "ChangeInCapacity"},
        },
        "value": {"type": "OS::Heat::Value", "properties": {"value": {"get_resource": "policy"}}},
    }
    stack_id = service.create(resources)
    service.rest()
    assert service.attribute(stack_id, "value", "value") == service.attribute(stack_id, "policy", "AlarmUrl")
