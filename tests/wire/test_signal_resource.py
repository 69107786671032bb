"""`SignalResource` as boto3 sends it, and the signal of the `openstack` command: members report to their group."""

import json
import time
from collections.abc import Iterator
from typing import Any

import bcrypt
import httpx
import pytest

from homeostat.api.access.auth import BasicAccess
from homeostat.clouds.simulated import SimulatedCloud
from tests.waiting import until
from tests.wire.commands import OpenStack
from tests.wire.running import database, serving, working
from tests.wire.test_boto3 import OFTEN, boto, refusal
from tests.wire.test_server_agents import Keys

GROUP = "AWS::AutoScaling::AutoScalingGroup"
MEMBER = """
heat_template_version: 2018-08-31
parameters:
  ImageId: { type: string }
  InstanceType: { type: string }
  Tags: { type: json }
resources:
  server:
    type: OS::Nova::Server
    properties:
      image: { get_param: ImageId }
      flavor: { get_param: InstanceType }
      user_data_format: SOFTWARE_CONFIG
      software_config_transport: POLL_SERVER_CFN
outputs:
  OS::stack_id: { value: { get_resource: server } }
  agent: { value: { get_attr: [server, os_collect_config] } }
"""


def template(image: str, size: int = 2, count: int | None = None) -> dict[str, Any]:
    waits = {"WaitOnResourceSignals": "true", "PauseTime": "PT10M", "MaxBatchSize": "1"}
    group: dict[str, Any] = {
        "Type": GROUP,
        "Properties": {
            "AvailabilityZones": ["nova"],
            "LaunchConfigurationName": {"Ref": "launch"},
            "MinSize": str(size),
            "MaxSize": "9",
        },
        "UpdatePolicy": {"AutoScalingRollingUpdate": waits},
    }
    if count is not None:
        group["CreationPolicy"] = {"ResourceSignal": {"Count": str(count), "Timeout": "PT10M"}}
    launch = {"ImageId": image, "InstanceType": "small"}
    resources = {"launch": {"Type": "AWS::AutoScaling::LaunchConfiguration", "Properties": launch}, "group": group}
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}


def members(http: httpx.Client, stack_id: str) -> list[str]:
    """Ids of the members of the group that stay, in the order of their numbers."""
    listed = http.get(f"stacks/web/{stack_id}/resources?nested_depth=1").json()["resources"]
    inside = [each for each in listed if each["resource_name"].isdigit() and each["physical_resource_id"]]
    ordered = sorted(inside, key=lambda each: int(each["resource_name"]))
    return [each["physical_resource_id"] for each in ordered if not each["resource_status"].startswith("DELETE")]


def state(http: httpx.Client, stack_id: str) -> str:
    return str(http.get(f"stacks/web/{stack_id}").json()["stack"]["stack_status"])


def say(cfn: Any, member: str, status: str = "SUCCESS") -> None:
    cfn.signal_resource(StackName="web", LogicalResourceId="group", UniqueId=member, Status=status)


@pytest.fixture
def cfn(service: Any, project: str) -> Iterator[Any]:
    made = boto(service.url, project)
    yield made
    made.close()


def test_a_group_is_created_and_updated_as_its_members_signal(cfn: Any, http: httpx.Client) -> None:
    made = cfn.create_stack(StackName="web", TemplateBody=json.dumps(template("one", count=2)))
    stack_id = made["StackId"].rpartition("/")[2]
    until(lambda: len(members(http, stack_id)) == 2, "the members")
    first = members(http, stack_id)
    say(cfn, first[0])
    assert state(http, stack_id) == "CREATE_IN_PROGRESS"
    say(cfn, first[1])
    cfn.get_waiter("stack_create_complete").wait(StackName="web", WaiterConfig=OFTEN)

    cfn.update_stack(StackName="web", TemplateBody=json.dumps(template("two")))
    until(lambda: set(members(http, stack_id)) - set(first), "the first batch")
    assert len(set(members(http, stack_id)) & set(first)) == 1
    say(cfn, *(set(members(http, stack_id)) - set(first)))
    until(lambda: not set(members(http, stack_id)) & set(first), "the second batch")
    say(cfn, members(http, stack_id)[0], "FAILURE")
    until(lambda: state(http, stack_id) == "UPDATE_FAILED", "the failure")
    (shown,) = cfn.describe_stacks(StackName="web")["Stacks"]
    assert "Received 1 SUCCESS signal(s) out of 2. Unable to satisfy 100%" in shown["StackStatusReason"]


def test_what_is_wrong_with_a_signal(cfn: Any, http: httpx.Client) -> None:
    cfn.create_stack(StackName="web", TemplateBody=json.dumps(template("one")))
    cfn.get_waiter("stack_create_complete").wait(StackName="web", WaiterConfig=OFTEN)
    good = {"StackName": "web", "LogicalResourceId": "group", "UniqueId": "m", "Status": "SUCCESS"}
    for wrong, said in (
        ({"StackName": "none"}, "could not be found"),
        ({"LogicalResourceId": "none"}, "could not be found"),
        ({"LogicalResourceId": "launch"}, "not supported"),
        ({"UniqueId": "x" * 1001}, "printable characters"),
        ({"UniqueId": "a\nb"}, "printable characters"),
    ):
        code, kind, message = refusal(cfn.signal_resource, **{**good, **wrong})
        assert (code, kind) == (400, "InvalidParameterValue"), message
        assert said in message


def test_the_openstack_command_signals_a_group(openstack: OpenStack) -> None:
    made = openstack.http.post("stacks", json={"stack_name": "web", "template": template("one", 1, 1)}).json()
    stack_id = made["stack"]["id"]
    until(lambda: members(openstack.http, stack_id), "the member")
    (member,) = members(openstack.http, stack_id)
    openstack("stack", "resource", "signal", "web", "group", "--data", json.dumps({"id": member, "status": "SUCCESS"}))
    until(lambda: state(openstack.http, stack_id) == "CREATE_COMPLETE", "the group")
    for body in ({"status": "SUCCESS"}, {"id": "m", "status": "GOOD"}, {"id": "a\0b"}, {"id": "m", "colour": "red"}):
        answer = openstack.http.post(f"stacks/web/{stack_id}/resources/group/signal", json=body)
        assert answer.status_code == 400, body


# -- with the keys of members ------------------------------------------------------------------------------------------


class Fleet:
    """A running service with a group whose members have keys of their own."""

    def __init__(self, url: str, http: httpx.Client) -> None:
        self.url, self.http = url, http
        environment = {"resource_registry": {"OS::Heat::ScaledResource": "member.yaml"}}
        body = {"template": template("one", count=2), "files": {"member.yaml": MEMBER}, "environment": environment}
        made = http.post("stacks", json={"stack_name": "web", **body}).json()
        self.id = made["stack"]["id"]
        until(lambda: len(self.agents()) == 2, "the keys of the members")

    def agents(self) -> list[tuple[str, Keys]]:
        """Id of each server with its key, in the order of their numbers."""
        found = []
        for member in members(self.http, self.id):
            inner = self.http.get(f"stacks/{member}", follow_redirects=True)
            if inner.status_code != 200:
                return []
            path = f"stacks/{inner.json()['stack']['stack_name']}/{inner.json()['stack']['id']}/resources/server"
            shown = self.http.get(path).json().get("resource", {})
            collect = (shown.get("attributes") or {}).get("os_collect_config") or {}
            agent = (collect.get("os-collect-config") or collect).get("cfn")
            if agent:
                found.append((shown["physical_resource_id"], (agent["access_key_id"], agent["secret_access_key"])))
        return found


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    directory = tmp_path_factory.mktemp("fleet")
    passwords = directory / "htpasswd"
    passwords.write_text(f"ada:{bcrypt.hashpw(b'x', bcrypt.gensalt(4)).decode()}\n")
    with (
        database(directory) as db,
        serving(db, BasicAccess(passwords)) as url,
        working(db, SimulatedCloud(time.time), url=url),
        httpx.Client(base_url=f"{url}/v1/ada", auth=("ada", "x")) as http,
    ):
        yield Fleet(url, http)


def test_a_member_reports_for_itself_alone(fleet: Fleet) -> None:
    (first, key), (second, other) = fleet.agents()
    mine, theirs = (boto(fleet.url, *each) for each in (key, other))
    about = {"StackName": "web", "LogicalResourceId": "group", "Status": "SUCCESS"}
    assert refusal(mine.signal_resource, **about, UniqueId=second)[:2] == (403, "AccessDenied")
    elsewhere = {**about, "LogicalResourceId": "launch"}
    assert refusal(mine.signal_resource, **elsewhere, UniqueId=first)[:2] == (403, "AccessDenied")
    mine.signal_resource(**about, UniqueId=first)
    assert state(fleet.http, fleet.id) == "CREATE_IN_PROGRESS"
    theirs.signal_resource(**about, UniqueId=second)
    until(lambda: state(fleet.http, fleet.id) == "CREATE_COMPLETE", "the group")
    mine.close()
    theirs.close()
