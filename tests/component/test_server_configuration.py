"""Servers that are configured: what they get for their first boot, and what they read afterwards."""

import json
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.model.errors import Rejected
from homeostat.resources import mime
from tests.component.running import URL, Service, server
from tests.component.test_deployments import config, deployment

SCRIPT = "#!/bin/sh\ntrue\n"


def configured(**properties: Any) -> dict[str, Any]:
    return server(user_data_format="SOFTWARE_CONFIG", **properties)


def user_data(service: Service, name: str = "srv") -> str:
    """As the cloud was given it."""
    (thing,) = [each for each in service.cloud.things("server").values() if f"-{name}-" in each["name"]]
    return str(thing.get("user_data", ""))


def parts(document: str) -> dict[str, str]:
    return {part.filename: part.content for part in mime.split(document) or []}


def read(service: Service, url: str) -> Any:
    """What the agent of a server gets at its address."""
    there = urlsplit(url)
    return service.signals.metadata("GET", unquote(there.path), dict(parse_qsl(there.query)))


def test_the_format_says_what_the_server_gets() -> None:
    service = Service()
    service.create(
        {
            "raw": server(user_data=SCRIPT, user_data_format="RAW"),
            "tools": server(user_data=SCRIPT),
            "none": server(),
            "agent": configured(user_data=SCRIPT),
        }
    )
    assert user_data(service, "raw") == SCRIPT
    assert parts(user_data(service, "tools"))["cfn-userdata"] == SCRIPT
    assert user_data(service, "none") == ""
    assert json.loads(parts(user_data(service, "agent"))["cfn-init-data"])["deployments"] == []
    assert not any("user_data_format" in each for each in service.cloud.things("server").values())


@pytest.mark.parametrize("form", ["RAW", "SOFTWARE_CONFIG"])
def test_user_data_may_be_a_config(form: str) -> None:
    service = Service()
    boot = server(user_data={"get_resource": "config"}, user_data_format=form)
    service.create({"config": config(config=SCRIPT), "srv": boot})
    assert SCRIPT in user_data(service)


def test_an_agent_reads_what_is_deployed_to_its_server() -> None:
    service = Service()
    resources = {
        "srv": {**configured(software_config_transport="POLL_TEMP_URL"), "metadata": {"mine": 1}},
        "config": config(config="echo"),
        "deploy": deployment(server={"get_resource": "srv"}),
    }
    stack_id = service.create(resources)
    service.live(2)
    given = json.loads(parts(user_data(service))["cfn-init-data"])
    assert given["mine"] == 1
    assert given["os-collect-config"]["collectors"] == ["ec2", "request", "local"]
    url = given["os-collect-config"]["request"]["metadata_url"]
    assert url.startswith(f"{URL}/v1/metadata/")
    found = read(service, url)
    assert found["mine"] == 1
    (shown,) = found["deployments"]
    assert (shown["config"], shown["group"]) == ("echo", "Heat::Ungrouped")
    values = {each["name"]: each["value"] for each in shown["inputs"]}
    service.put(values["deploy_signal_id"], None, "POST")
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.attribute(stack_id, "srv", "os_collect_config") == {"os-collect-config": given["os-collect-config"]}
    with pytest.raises(Rejected, match="signature does not fit"):
        read(service, url.replace("resources/srv", "resources/deploy"))
    service.delete(stack_id)
    service.rest()
    assert service.records_of("server_agent") == []
    with pytest.raises(Rejected):
        read(service, url)


def test_the_cfn_agent_gets_a_key_of_its_own() -> None:
    service = Service()
    stack_id = service.create({"a": configured(), "b": configured()})
    keys = []
    for name in ("a", "b"):
        section = service.attribute(stack_id, name, "os_collect_config")["os-collect-config"]["cfn"]
        assert section["metadata_url"] == f"{URL}/v1/"
        assert (section["stack_name"], section["path"]) == ("web", f"{name}.Metadata")
        keys.append((section["access_key_id"], section["secret_access_key"]))
    assert len(set(keys)) == 2


def test_observed_properties_show_no_keys() -> None:
    service = Service()
    stack_id = service.create({"srv": configured(user_data=SCRIPT)})
    service.live(130)
    assert "user_data" not in service.seen(stack_id, "srv")
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_the_transport_changes_in_place() -> None:
    service = Service()
    stack_id = service.create({"srv": configured()})
    before = service.servers()
    service.update(stack_id, {"srv": configured(software_config_transport="POLL_TEMP_URL")})
    service.rest()
    assert service.servers() == before
    section = service.attribute(stack_id, "srv", "os_collect_config")["os-collect-config"]
    assert section.keys() == {"collectors", "request"}


def test_a_lost_answer_keeps_the_key_that_the_server_has() -> None:
    service = Service(CloudBehaviour(faults=Faults(lost=1.0)))
    stack_id = service.begin({"srv": configured()})
    service.work()
    service.cloud.behaviour.faults = Faults()
    service.rest()
    (agent,) = service.records_of("server_agent")
    (handle,) = service.servers()
    assert agent.link == handle == service.row(stack_id, "srv").handle
    given = json.loads(parts(user_data(service))["cfn-init-data"])["os-collect-config"]
    assert given == agent.object["collect"]


def test_a_deployed_server_is_its_own_agent() -> None:
    service = Service()
    resources = {
        "srv": {"type": "OS::Heat::DeployedServer", "properties": {"software_config_transport": "POLL_TEMP_URL"}},
        "config": config(config="echo"),
        "deploy": deployment(server={"get_resource": "srv"}),
    }
    stack_id = service.create(resources)
    section = service.attribute(stack_id, "srv", "os_collect_config")["os-collect-config"]
    assert section["collectors"] == ["request", "local"]
    found = read(service, section["request"]["metadata_url"])
    assert [each["config"] for each in found["deployments"]] == ["echo"]
    resources["srv"]["properties"] = {"software_config_transport": "POLL_SERVER_CFN"}
    service.update(stack_id, resources)
    service.live(1)
    section = service.attribute(stack_id, "srv", "os_collect_config")["os-collect-config"]
    assert section["collectors"] == ["cfn", "local"]


@pytest.mark.parametrize("transport", ["POLL_SERVER_HEAT", "ZAQAR_MESSAGE"])
def test_ways_to_get_configs_that_need_another_service(transport: str) -> None:
    shown = r"resources.srv.properties.software_config_transport: .* use POLL_SERVER_CFN or POLL_TEMP_URL"
    with pytest.raises(Rejected, match=shown):
        Service().create({"srv": configured(software_config_transport=transport)})


def test_users_have_names_and_keys() -> None:
    service = Service()
    stack_id = service.create(
        {
            "policy": {"type": "OS::Heat::AccessPolicy", "properties": {"AllowedResources": ["user"]}},
            "user": {"type": "AWS::IAM::User", "properties": {"Policies": ["policy"]}},
            "key": {"type": "AWS::IAM::AccessKey", "properties": {"UserName": {"get_resource": "user"}}},
        }
    )
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.attribute(stack_id, "key", "UserName").startswith("web-user-")
    assert len(service.attribute(stack_id, "key", "SecretAccessKey")) >= 32
    with pytest.raises(Rejected, match=r"AllowedResources\[0\]: nobody is no resource of this template"):
        service.update(
            stack_id, {"policy": {"type": "OS::Heat::AccessPolicy", "properties": {"AllowedResources": ["nobody"]}}}
        )


def test_a_delay_takes_its_time_on_the_actions_that_it_is_for() -> None:
    service = Service()
    given = {"min_wait": 10, "max_jitter": 4, "jitter_multiplier": 0.5, "actions": ["CREATE", "DELETE"]}
    delay = {"pause": {"type": "OS::Heat::Delay", "properties": given}}
    stack_id = service.create(delay)
    service.live(9.9)
    assert service.states(stack_id) == {"pause": "CREATE_IN_PROGRESS"}
    service.live(2.2)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    given["min_wait"] = 20
    service.update(stack_id, delay)
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    service.delete(stack_id)
    service.live(19)
    assert service.state(stack_id) == "DELETE_IN_PROGRESS"
    service.live(4)
    assert service.state(stack_id) == "DELETE_COMPLETE"


def launched(size: int = 2, **more: Any) -> dict[str, Any]:
    """A group with a launch configuration, and a server that is in none."""
    group = {"AvailabilityZones": ["nova"], "LaunchConfigurationName": {"get_resource": "launch"}, "Size": size}
    launch = {"ImageId": "i", "InstanceType": "small", "UserData": SCRIPT}
    return {
        "launch": {"type": "AWS::AutoScaling::LaunchConfiguration", "properties": launch},
        "fleet": {"type": "OS::Heat::InstanceGroup", "properties": {**group, **more}},
        "alone": {"type": "AWS::EC2::Instance", "properties": launch},
    }


def keys_of(service: Service) -> list[str]:
    return sorted(each.link for each in service.records_of("server_agent"))


def test_each_member_of_a_group_with_a_launch_configuration_has_a_key_of_its_own() -> None:
    service = Service()
    service.create(launched())
    found = {name: parts(each["user_data"]) for name, each in service.cloud.things("server").items()}
    alone = [each for each in found.values() if "cfn-credentials" not in each]
    members = {name: each for name, each in found.items() if "cfn-credentials" in each}
    assert (len(alone), len(members)) == (1, 2)
    assert keys_of(service) == sorted(members)
    assert len({each["cfn-credentials"] for each in members.values()}) == 2
    for each in members.values():
        section = json.loads(each["cfn-init-data"])["os-collect-config"]["cfn"]
        assert each["cfn-credentials"].splitlines() == [
            f"AWSAccessKeyId={section['access_key_id']}",
            f"AWSSecretKey={section['secret_access_key']}",
        ]


def test_the_key_of_a_member_goes_with_it() -> None:
    service = Service()
    stack_id = service.create(launched(3))
    service.update(stack_id, launched(1))
    service.rest()
    assert len(keys_of(service)) == 1
    service.delete(stack_id)
    service.rest()
    assert keys_of(service) == []


def test_what_is_seen_of_a_member_has_no_key() -> None:
    service = Service()
    service.create(launched(1))
    (record,) = service.records_of("server_agent")
    assert record.secret["key"] not in json.dumps(service.seen(service.child().id, "0"))
