"""Servers log in as users of their own: a real Keystone, a real service."""

import json
from typing import Any

import httpx
from heatclient.client import Client
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session
from sqlalchemy import func, select

from homeostat.clouds.identity.users import DomainUsers
from homeostat.store import schema
from homeostat.store.builtin.stack_users import DEPARTED_PROJECT, DEPARTED_USER, STACK_USER, USER_PROJECT
from tests.identity.conftest import Entrusted, Person
from tests.keystone_server import Admin, KeystoneServer
from tests.waiting import until
from tests.wire.running import settled

HANDLE = {"type": "OS::Heat::WaitConditionHandle", "properties": {"signal_transport": "HEAT_SIGNAL"}}
WAITING = {
    "heat_template_version": "wallaby",
    "resources": {
        "handle": HANDLE,
        "wait": {
            "type": "OS::Heat::WaitCondition",
            "properties": {"handle": {"get_resource": "handle"}, "timeout": 600},
        },
    },
    "outputs": {"signal": {"value": {"get_attr": ["handle", "signal"]}}},
}
DEPLOYING = {
    "heat_template_version": "wallaby",
    "resources": {
        "config": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "echo hello"}},
        "server": {
            "type": "OS::Heat::DeployedServer",
            "properties": {"name": "there", "software_config_transport": "POLL_SERVER_HEAT"},
        },
        "deployment": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {
                "config": {"get_resource": "config"},
                "server": {"get_resource": "server"},
                "signal_transport": "HEAT_SIGNAL",
            },
        },
    },
    "outputs": {"collect": {"value": {"get_attr": ["server", "os_collect_config"]}}},
}


def create(http: httpx.Client, template: Any) -> str:
    answer = http.post("stacks", json={"stack_name": "s", "template": template})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["stack"]["id"])


def output(http: httpx.Client, stack_id: str, name: str) -> Any:
    """Once there is one."""

    def value() -> Any:
        answer = http.get(f"stacks/s/{stack_id}/outputs/{name}")
        return answer.json()["output"]["output_value"] if answer.is_success else None

    return until(value, f"the output {name}")


def token(login: dict[str, str]) -> str:
    """As a server asks for one."""
    who = {"user": {"id": login["user_id"], "password": login["password"]}}
    scope = {"project": {"id": login["project_id"]}}
    body = {"auth": {"identity": {"methods": ["password"], "password": who}, "scope": scope}}
    answer = httpx.post(f"{login['auth_url']}/auth/tokens", json=body)
    assert answer.status_code == 201, answer.text
    return answer.headers["x-subject-token"]


def heat(service: Entrusted, login: dict[str, str]) -> Any:
    """The genuine client, as scripts on a server use it to read configs and to signal (HEAT_SIGNAL)."""
    who: dict[str, Any] = {name: login[name] for name in ("auth_url", "user_id", "password", "project_id")}
    address = f"{service.url}/v1/{login['project_id']}"
    return Client("1", session=Session(auth=Password(**who)), endpoint_override=address)


def count_records(service: Entrusted, *kinds: str) -> int:
    with service.db.read() as tx:
        chosen = select(func.count()).where(schema.record.c.kind.in_(kinds))
        return int(tx.execute(chosen).scalar_one())


def test_a_server_signals_as_a_user_of_its_own_who_may_do_nothing_else(
    service: Entrusted, person: Person, admin: Admin
) -> None:
    with service.client(person) as http:
        stack_id = create(http, WAITING)
        login = json.loads(output(http, stack_id, "signal"))
        shown = http.get(f"stacks/s/{stack_id}").json()["stack"]
        assert shown["stack_user_project_id"] == login["project_id"] != person.project_id
        user = admin.send("GET", f"users/{login['user_id']}")["user"]
        assert (user["name"], user["domain_id"]) == (login["username"], login["domain_id"])
        own = {"x-auth-token": token(login)}
        base = login["alarm_url"].rpartition("/resources/")[0]
        assert httpx.get(f"{service.url}/v1/{login['project_id']}/stacks", headers=own).status_code == 403
        assert httpx.delete(base, headers=own).status_code == 403
        assert httpx.post(login["alarm_url"], headers=own, json={"data": "up"}).status_code == 200
        settled(http, stack_id, status="CREATE_COMPLETE")
        http.delete(f"stacks/s/{stack_id}")
        until(
            lambda: not count_records(service, STACK_USER, DEPARTED_USER, USER_PROJECT, DEPARTED_PROJECT),
            "user and project to be done with",
        )
    assert user["name"] not in {each["name"] for each in admin.send("GET", "users")["users"]}
    projects = admin.send("GET", "projects", domain_id=login["domain_id"])["projects"]
    assert login["project_id"] not in {each["id"] for each in projects}


def test_a_server_reads_its_configs_and_signals_outputs_as_a_user(service: Entrusted, person: Person) -> None:
    with service.client(person) as http:
        stack_id = create(http, DEPLOYING)
        collect = output(http, stack_id, "collect")["os-collect-config"]
        assert collect["collectors"] == ["heat", "local"]
        login = collect["heat"]
        assert login["stack_id"] == f"s/{stack_id}"
        agent = heat(service, login)

        def configs() -> Any:
            return agent.resources.metadata(login["stack_id"], login["resource_name"])["deployments"]

        (config,) = until(configs, "the config to be deployed")
        inputs = {each["name"]: each["value"] for each in config["inputs"]}
        assert inputs["deploy_signal_transport"] == "HEAT_SIGNAL"
        assert "deploy_signal_id" not in inputs
        teller = {name: inputs[f"deploy_{name}"] for name in ("auth_url", "user_id", "password", "project_id")}
        assert teller["user_id"] != login["user_id"]
        outputs = {"deploy_stdout": "hello", "deploy_status_code": 0}
        heat(service, teller).resources.signal(inputs["deploy_stack_id"], inputs["deploy_resource_name"], data=outputs)
        settled(http, stack_id, status="CREATE_COMPLETE")


def test_asked_for_twice_there_is_one_user_who_logs_in(service: Entrusted, person: Person, admin: Admin) -> None:
    users = DomainUsers(service.keystone)
    project = users.project(person.name, "of a test")
    assert users.project(person.name, "of a test") == project
    user = users.user(f"{person.name}-server", "first", project)
    assert users.user(f"{person.name}-server", "second", project) == user
    assert token({"user_id": user, "password": "second", "project_id": project, "auth_url": person.url})
    users.delete("user", user)
    users.delete("user", user)
    assert users.find("user", f"{person.name}-server") is None


def test_while_keystone_is_down_users_wait(service: Entrusted, person: Person, keystone: KeystoneServer) -> None:
    with service.client(person) as http:
        stack_id = create(http, {**WAITING, "resources": {"handle": HANDLE}})
        settled(http, stack_id, status="CREATE_COMPLETE")
        assert http.delete(f"stacks/s/{stack_id}").status_code == 204
        keystone.stop()
        try:
            until(lambda: not count_records(service, STACK_USER, USER_PROJECT), "the stack to be gone")
        finally:
            keystone.start()
    users = DomainUsers(service.keystone)
    assert users.find("project", stack_id) is not None


def test_a_key_of_a_template_signs_for_other_services_too(service: Entrusted, person: Person, admin: Admin) -> None:
    template: dict[str, Any] = {
        "heat_template_version": "wallaby",
        "resources": {
            "user": {"type": "AWS::IAM::User"},
            "key": {"type": "AWS::IAM::AccessKey", "properties": {"UserName": {"get_resource": "user"}}},
        },
        "outputs": {
            "access": {"value": {"get_resource": "key"}},
            "secret": {"value": {"get_attr": ["key", "SecretAccessKey"]}},
        },
    }
    with service.client(person) as http:
        stack_id = create(http, template)
        settled(http, stack_id, status="CREATE_COMPLETE")
        access, secret = output(http, stack_id, "access"), output(http, stack_id, "secret")
        found = [json.loads(each["blob"]) for each in admin.send("GET", "credentials", type="ec2")["credentials"]]
        assert {"access": access, "secret": secret} in found
        without = {**template, "resources": {"user": template["resources"]["user"]}, "outputs": {}}
        assert http.put(f"stacks/s/{stack_id}", json={"template": without}).status_code == 202
        settled(http, stack_id, status="UPDATE_COMPLETE")
        found = [json.loads(each["blob"]) for each in admin.send("GET", "credentials", type="ec2")["credentials"]]
        assert access not in {each["access"] for each in found}
        http.delete(f"stacks/s/{stack_id}")
        until(
            lambda: not count_records(service, STACK_USER, DEPARTED_USER, USER_PROJECT, DEPARTED_PROJECT),
            "the user to go",
        )
