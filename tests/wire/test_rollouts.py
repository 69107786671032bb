"""Rollouts of metadata as agents on servers see them: over REST, and over CloudFormation with the keys of servers."""

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
from tests.wire.test_server_agents import Keys, collected, metadata, refusal

MEMBERS = 3


def template(value: str, pattern: str = "rolling") -> dict[str, Any]:
    member = {
        "image": "i",
        "flavor": "small",
        "user_data_format": "SOFTWARE_CONFIG",
        "software_config_transport": "POLL_SERVER_CFN",
    }
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            "group": {
                "type": "OS::Heat::ResourceGroup",
                "metadata": {"v": value},
                "properties": {
                    "count": MEMBERS,
                    "resource_def": {"type": "OS::Nova::Server", "properties": member},
                    "metadata_update_pattern": pattern,
                },
            },
            "handle": {"type": "AWS::CloudFormation::WaitConditionHandle"},
            "wait": {
                "type": "AWS::CloudFormation::WaitCondition",
                "depends_on": ["group"],
                "properties": {"Handle": {"get_resource": "handle"}, "Timeout": 600},
            },
        },
        "outputs": {
            "url": {"value": {"get_resource": "handle"}},
            "members": {"value": {"get_attr": ["group", "refs"]}},
            "agents": {"value": {"get_attr": ["group", "attributes", "os_collect_config"]}},
        },
    }


class Rolling:
    """A running service with a group whose members read their metadata."""

    def __init__(self, url: str, http: httpx.Client) -> None:
        self.url, self.http = url, http
        made = http.post("stacks", json={"stack_name": "web", "template": template("1")}).json()
        self.path = f"stacks/web/{made['stack']['id']}"
        until(lambda: self.output("url") and len(self.agents()) == MEMBERS, "the members")
        self.signal("first")
        self.wait_for("CREATE_COMPLETE")

    def output(self, name: str) -> Any:
        return self.http.get(f"{self.path}/outputs/{name}").json()["output"]["output_value"]

    def agents(self) -> dict[str, dict[str, Any]]:
        """Settings of the agents of the members, by name."""
        shown = self.output("agents") or {}
        return {name: each["os-collect-config"]["cfn"] for name, each in sorted(shown.items()) if each}

    def keys(self, number: int) -> Keys:
        agent = self.agents()[str(number)]
        return agent["access_key_id"], agent["secret_access_key"]

    def members(self) -> list[str]:
        return list(self.output("members"))

    def change(self, value: str, pattern: str = "rolling") -> None:
        assert self.http.put(self.path, json={"template": template(value, pattern)}).status_code == 202

    def signal(self, member: str, status: str = "SUCCESS", reason: str = "done") -> None:
        body = {"Status": status, "Reason": reason, "Data": "", "UniqueId": member}
        assert httpx.put(self.output("url"), json=body).status_code == 200

    def location(self, number: int) -> Any:
        """What a user reads at the virtual location of a member."""
        answer = self.http.get(f"{self.path}/resources/group/instances/{self.members()[number]}/metadata")
        assert answer.status_code == 200, answer.text
        return answer.json()["metadata"]

    def values(self) -> str:
        return "".join(self.location(number)["v"] for number in range(MEMBERS))

    def state(self) -> str:
        return str(self.http.get(self.path).json()["stack"]["stack_status"])

    def wait_for(self, state: str) -> None:
        until(lambda: self.state() == state, f"{state}; it is {self.state()}")


@pytest.fixture(scope="module")
def rolling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rolling]:
    directory = tmp_path_factory.mktemp("rolling")
    passwords = directory / "htpasswd"
    passwords.write_text(f"ada:{bcrypt.hashpw(b'x', bcrypt.gensalt(4)).decode()}\n")
    with (
        database(directory) as db,
        serving(db, BasicAccess(passwords)) as url,
        working(db, SimulatedCloud(time.time), url=url),
        httpx.Client(base_url=f"{url}/v1/ada", auth=("ada", "x")) as http,
    ):
        yield Rolling(url, http)


def test_members_read_and_report_step_by_step(rolling: Rolling, tmp_path: Any) -> None:
    assert rolling.values() == "111"
    rolling.change("2")
    until(lambda: rolling.values() == "211", "the first member")
    found = collected(rolling.agents()["0"], tmp_path)
    assert (found["v"], found["deployments"]) == ("2", [])
    rolling.signal(rolling.members()[0])
    until(lambda: rolling.values() == "221", "the second member")
    rolling.signal(rolling.members()[1], "FAILURE", "it does not start")
    until(lambda: rolling.values() == "111", "the old metadata")
    rolling.wait_for("UPDATE_FAILED")
    reason = rolling.http.get(f"{rolling.path}/resources/group").json()["resource"]["resource_status_reason"]
    assert f"{rolling.members()[1]}: it does not start" in reason


def test_a_server_reads_its_own_place_in_its_group_and_no_other(rolling: Rolling) -> None:
    first, second = rolling.members()[:2]
    keys = rolling.keys(0)
    value = rolling.location(0)["v"]
    # cfn-hup asks for the second part of Resources.group.Instances.<id>.Metadata.
    assert metadata(rolling, keys, "group")["v"] == value
    assert metadata(rolling, keys, f"group.Instances.{first}")["v"] == value
    for name in (f"group.Instances.{second}", "wait", "handle"):
        code = refusal(rolling, keys, StackName="web", LogicalResourceId=name)
        assert code == "AccessDenied"


def test_a_user_reads_any_place_over_cloudformation_too(rolling: Rolling) -> None:
    url = f"{rolling.url}/v1/?Action=DescribeStackResource&StackName=web&LogicalResourceId=group.Instances."
    found = httpx.get(url + rolling.members()[2], auth=("ada", "x"))
    assert (found.status_code, '"v"' in found.text) == (200, True), found.text


@pytest.mark.parametrize("name", ["nobody", "group", "0"])
def test_what_is_no_member_has_no_place(rolling: Rolling, name: str) -> None:
    answer = rolling.http.get(f"{rolling.path}/resources/group/instances/{name}/metadata")
    assert answer.status_code == 404
    assert f"with the member {name} could not be found" in answer.text
    query = f"Action=DescribeStackResource&StackName=web&LogicalResourceId=group.Instances.{name}"
    described = httpx.get(f"{rolling.url}/v1/?{query}", auth=("ada", "x"))
    assert (described.status_code, "could not be found" in described.text) == (400, True)
