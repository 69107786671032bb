"""Agents on servers: os-collect-config itself, and what cfn-hup and cfn-signal of heat-cfntools send.

The access mode is `basic`: servers have no account, only the keys that their stacks have given them.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode
from xml.etree import ElementTree

import bcrypt
import boto3
import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from homeostat.api.access.auth import BasicAccess
from homeostat.clouds.simulated import SimulatedCloud
from tests.waiting import until
from tests.wire.running import database, serving, settled, working

AGENT = Path(sys.executable).with_name("os-collect-config")
READ = {"a": {"colours": ["red"]}, "b": {"colours": ["blue"]}, "c": {}}
STACK: dict[str, Any] = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "srv": {
            "type": "OS::Nova::Server",
            "metadata": {"mine": 1},
            "properties": {
                "image": "i",
                "flavor": "small",
                "user_data_format": "SOFTWARE_CONFIG",
                "software_config_transport": "POLL_SERVER_CFN",
            },
        },
        "other": {"type": "OS::Heat::DeployedServer"},
        "config": {
            "type": "OS::Heat::SoftwareConfig",
            "properties": {"group": "script", "config": "echo hi", "outputs": [{"name": "said"}]},
        },
        "deploy": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {"config": {"get_resource": "config"}, "server": {"get_resource": "srv"}},
        },
        "all_of_it": {"type": "OS::Heat::AccessPolicy", "properties": {"AllowedResources": ["a", "b"]}},
        "one_of_it": {"type": "OS::Heat::AccessPolicy", "properties": {"AllowedResources": ["b", "c"]}},
        **{name: {"type": "OS::Heat::TestResource", "metadata": metadata} for name, metadata in READ.items()},
        "free": {"type": "AWS::IAM::User"},
        "bound": {"type": "AWS::IAM::User", "properties": {"Policies": ["all_of_it", {"get_resource": "one_of_it"}]}},
        "free_key": {"type": "AWS::IAM::AccessKey", "properties": {"UserName": {"get_resource": "free"}}},
        "bound_key": {"type": "AWS::IAM::AccessKey", "properties": {"UserName": {"get_resource": "bound"}}},
        "stray_key": {"type": "AWS::IAM::AccessKey", "properties": {"UserName": "nobody"}},
    },
    "outputs": {
        "free": {"value": [{"get_resource": "free_key"}, {"get_attr": ["free_key", "SecretAccessKey"]}]},
        "bound": {"value": [{"get_resource": "bound_key"}, {"get_attr": ["bound_key", "SecretAccessKey"]}]},
        "stray": {"value": [{"get_resource": "stray_key"}, {"get_attr": ["stray_key", "SecretAccessKey"]}]},
        "agent": {"value": {"get_attr": ["srv", "os_collect_config"]}},
        "other": {"value": {"get_attr": ["other", "os_collect_config"]}},
        "said": {"value": {"get_attr": ["deploy", "said"]}},
    },
}
Keys = tuple[str, str]


class Site:
    """A running service with the stack `web`, whose deployment waits for its server."""

    def __init__(self, url: str, http: httpx.Client) -> None:
        self.url = url
        self.http = http
        made = http.post("stacks", json={"stack_name": "web", "template": STACK}).json()
        self.stack_id: str = made["stack"]["id"]
        until(
            lambda: self.agent("agent") and self.keys("stray")[1] and self.state("deploy") == "CREATE_IN_PROGRESS",
            "keys",
        )

    def state(self, name: str) -> str:
        shown = self.http.get(f"stacks/web/{self.stack_id}/resources/{name}").json()
        return str(shown["resource"]["resource_status"])

    def output(self, name: str) -> Any:
        return self.http.get(f"stacks/web/{self.stack_id}/outputs/{name}").json()["output"]["output_value"]

    def keys(self, name: str) -> Keys:
        access_key, secret = self.output(name) or ("", "")
        return access_key, secret

    def agent(self, name: str) -> dict[str, Any]:
        """Settings of the agent's cfn collector."""
        return dict(((self.output(name) or {}).get("os-collect-config") or {}).get("cfn") or {})

    def server_keys(self, name: str) -> Keys:
        section = self.agent(name)
        return section["access_key_id"], section["secret_access_key"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("site")
    passwords = directory / "htpasswd"
    passwords.write_text(f"ada:{bcrypt.hashpw(b'x', bcrypt.gensalt(4)).decode()}\n")
    cloud = SimulatedCloud(time.time)
    with (
        database(directory) as db,
        serving(db, BasicAccess(passwords)) as url,
        working(db, cloud, url=url),
        httpx.Client(base_url=f"{url}/v1/ada", auth=("ada", "x")) as http,
    ):
        yield Site(url, http)


class Served(Protocol):
    """What answers at a URL."""

    url: str


def boto(site: Served, keys: Keys) -> Any:
    return boto3.client(
        "cloudformation",
        endpoint_url=f"{site.url}/v1/",
        region_name="nowhere",
        aws_access_key_id=keys[0],
        aws_secret_access_key=keys[1],
        config=Config(retries={"max_attempts": 0}),
    )


def metadata(site: Served, keys: Keys, resource: str, stack: str = "web") -> Any:
    found = boto(site, keys).describe_stack_resource(StackName=stack, LogicalResourceId=resource)
    return json.loads(found["StackResourceDetail"]["Metadata"])


def refusal(site: Served, keys: Keys, action: str = "describe_stack_resource", **parameters: str) -> str:
    with pytest.raises(ClientError) as caught:
        getattr(boto(site, keys), action)(**parameters)
    error = caught.value.response
    assert error["ResponseMetadata"]["HTTPStatusCode"] == 403
    return str(error["Error"]["Code"])


def collected(section: dict[str, Any], directory: Path) -> Any:
    """What os-collect-config finds with these settings, run once as often as it gets no answer."""
    settings = "\n".join(f"{name} = {value}" for name, value in section.items())
    (directory / "agent.conf").write_text(f"[DEFAULT]\ncollectors = cfn\n[cfn]\n{settings}\n")
    places = ["--config-file", str(directory / "agent.conf"), "--cachedir", str(directory / "cache")]
    command = [str(AGENT), *places, "--one-time", "--print"]
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}

    def found() -> Any:
        """None where the service has not answered within the agent's own time: it asks again later."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert done.returncode == 0, done.stderr
        print(done.stderr)
        return json.loads(done.stdout).get("cfn")

    return until(found, "an answer to the agent")


def test_the_genuine_agent_collects_its_deployments_and_signals(site: Site, tmp_path: Path) -> None:
    found = collected(site.agent("agent"), tmp_path)
    assert found["mine"] == 1
    assert found["os-collect-config"]["cfn"] == site.agent("agent")
    (config,) = found["deployments"]
    assert (config["group"], config["config"]) == ("script", "echo hi")
    inputs = {each["name"]: each["value"] for each in config["inputs"]}
    assert (inputs["deploy_signal_transport"], inputs["deploy_signal_verb"]) == ("CFN_SIGNAL", "POST")
    signal = {"said": "hi", "deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": 0}
    answer = httpx.request(inputs["deploy_signal_verb"], inputs["deploy_signal_id"], json=signal)
    assert (answer.status_code, answer.text) == (200, "")
    assert settled(site.http, f"web/{site.stack_id}", status="CREATE_COMPLETE")
    assert site.output("said") == "hi"
    assert collected(site.agent("other"), tmp_path)["deployments"] == []


def test_a_server_reads_itself_alone(site: Site) -> None:
    keys = site.server_keys("agent")
    arn = f"arn:openstack:heat::ada:stacks/web/{site.stack_id}"
    assert metadata(site, keys, "srv", arn)["mine"] == 1
    for name in ("other", "deploy", "a", "nothing"):
        assert refusal(site, keys, StackName="web", LogicalResourceId=name) == "AccessDenied"
    assert "os-collect-config" in metadata(site, site.server_keys("other"), "other")


def test_users_read_what_their_policies_allow(site: Site) -> None:
    for name, content in READ.items():
        assert metadata(site, site.keys("free"), name) == content
    assert metadata(site, site.keys("bound"), "b") == READ["b"]
    for name in ("a", "c", "srv"):
        assert refusal(site, site.keys("bound"), StackName="web", LogicalResourceId=name) == "AccessDenied"
    assert refusal(site, site.keys("stray"), StackName="web", LogicalResourceId="b") == "AccessDenied"


@pytest.mark.parametrize("which", ["free", "agent"])
def test_keys_of_a_stack_do_nothing_else(site: Site, which: str) -> None:
    keys = site.keys("free") if which == "free" else site.server_keys("agent")
    for action in ("list_stacks", "describe_stacks"):
        assert refusal(site, keys, action) == "AccessDenied"
    for action in ("delete_stack", "describe_stack_resources", "get_template", "describe_stack_events"):
        assert refusal(site, keys, action, StackName="web") == "AccessDenied"
    another = {"heat_template_version": "2018-08-31", "resources": {"b": {"type": "OS::Heat::TestResource"}}}
    made = site.http.post("stacks", json={"stack_name": f"another-{which}", "template": another}).json()["stack"]["id"]
    settled(site.http, f"another-{which}/{made}")
    assert refusal(site, keys, StackName=f"another-{which}", LogicalResourceId="b") == "AccessDenied"


def test_keys_that_are_none(site: Site) -> None:
    access_key, secret = site.keys("free")
    wanted = {"StackName": "web", "LogicalResourceId": "b"}
    assert refusal(site, (access_key, secret + "x"), **wanted) == "SignatureDoesNotMatch"
    assert refusal(site, ("ada", "x"), **wanted) == "InvalidClientTokenId"
    assert refusal(site, (access_key[::-1], secret), **wanted) == "InvalidClientTokenId"
    handle = {"heat_template_version": "2018-08-31", "resources": {"h": {"type": "OS::Heat::SwiftSignalHandle"}}}
    made = site.http.post("stacks", json={"stack_name": "handle", "template": handle}).json()["stack"]["id"]
    settled(site.http, f"handle/{made}")
    shown = site.http.get(f"stacks/handle/{made}/resources/h").json()["resource"]["attributes"]["endpoint"]
    key = httpx.URL(shown).params["AWSAccessKeyId"]
    assert refusal(site, (key, "x"), **wanted) == "InvalidClientTokenId", "signals with it, and reads nothing"


def test_who_is_known_to_the_service_needs_no_signature(site: Site) -> None:
    url = f"{site.url}/v1/?Action=ListStacks"
    assert "<StackName>web</StackName>" in httpx.get(url, auth=("ada", "x")).text
    for answer, code, status in (
        (httpx.get(url), "IncompleteSignature", 400),
        (httpx.get(url, auth=("ada", "y")), "AccessDenied", 403),
        (httpx.get(url, headers={"x-auth-user": "ada"}), "AccessDenied", 403),
    ):
        assert (answer.status_code, f"<Code>{code}</Code>" in answer.text) == (status, True), answer.text


def hup(site: Site, keys: Keys, resource: str) -> AWSRequest:
    """The request of cfn-hup and cfn-get-metadata, by boto 2.49, which signs for a region and service of its own."""
    parameters = {
        "Action": "DescribeStackResource",
        "ContentType": "JSON",
        "LogicalResourceId": resource,
        "StackName": "web",
        "Version": "2010-05-15",
    }
    request = AWSRequest("GET", f"{site.url}/v1/?{urlencode(parameters)}")
    SigV4Auth(Credentials(*keys), "127", "0").add_auth(request)
    return request


def test_what_cfn_hup_sends(site: Site) -> None:
    request = hup(site, site.keys("free"), "a")
    answer = httpx.get(request.url, headers=dict(request.headers))
    detail = answer.json()["DescribeStackResourceResponse"]["DescribeStackResourceResult"]["StackResourceDetail"]
    assert json.loads(detail["Metadata"]) == READ["a"]
    assert (detail["LogicalResourceId"], detail["StackName"]) == ("a", "web")
    request = hup(site, site.keys("bound"), "a")
    refused = httpx.get(request.url, headers=dict(request.headers))
    assert (refused.status_code, refused.json()["ErrorResponse"]["Error"]["Code"]) == (403, "AccessDenied")


def test_what_cfn_signal_sends(site: Site) -> None:
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {
            "handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"},
            "wait": {
                "Type": "AWS::CloudFormation::WaitCondition",
                "Properties": {"Handle": {"Ref": "handle"}, "Timeout": "600", "Count": "2"},
            },
        },
        "Outputs": {"Url": {"Value": {"Ref": "handle"}}, "Data": {"Value": {"Fn::GetAtt": ["wait", "Data"]}}},
    }
    made = site.http.post("stacks", json={"stack_name": "waits", "template": template}).json()["stack"]["id"]

    def address() -> str:
        shown = site.http.get(f"stacks/waits/{made}/outputs/Url").json()["output"]["output_value"]
        return shown if str(shown).startswith("http") else ""

    url = until(address, "the address of the handle")
    for number, kind in enumerate(("application/json", "", "text/plain"), 1):
        body = json.dumps({"Status": "SUCCESS", "Reason": "done", "Data": f"d{number}", "UniqueId": f"i{number % 2}"})
        answer = httpx.put(url, content=body, headers={"content-type": kind})
        assert (answer.status_code, answer.text) == (200, "<resource>handle</resource>")
    settled(site.http, f"waits/{made}", status="CREATE_COMPLETE")
    assert ElementTree.fromstring(answer.text).text == "handle"
