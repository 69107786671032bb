"""The CloudFormation API with keys and tokens of a real Keystone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from homeostat.api.access.keystone import KeystoneAccess
from homeostat.api.cloudformation.ec2 import KeystoneEc2
from homeostat.api.server import ApiSettings
from homeostat.clouds.identity.config import read_config
from homeostat.clouds.identity.keystone import Keystone
from tests.identity.conftest import Person, login
from tests.keystone_server import Admin
from tests.unit.api.test_cloudformation_signatures import signed_v2
from tests.wire import templates
from tests.wire.running import database, serving

Keys = tuple[str, str]


def verifying(settings: Path) -> ApiSettings:
    return ApiSettings(ec2=KeystoneEc2(Keystone(read_config(settings))))


@pytest.fixture
def url(settings: Path, tmp_path: Path) -> Iterator[str]:
    with database(tmp_path) as db, serving(db, KeystoneAccess(settings), verifying(settings)) as there:
        yield there


@pytest.fixture
def keys(admin: Admin, person: Person) -> Keys:
    """As `openstack ec2 credentials create` makes them."""
    made = admin.send("POST", f"users/{person.id}/credentials/OS-EC2", {"tenant_id": person.project_id})["credential"]
    return made["access"], made["secret"]


def boto(url: str, keys: Keys) -> Any:
    return boto3.client(
        "cloudformation",
        endpoint_url=f"{url}/v1/",
        region_name="nowhere",
        aws_access_key_id=keys[0],
        aws_secret_access_key=keys[1],
        config=Config(retries={"max_attempts": 0}),
    )


def refusal(url: str, keys: Keys, action: str = "list_stacks", **parameters: str) -> str:
    with pytest.raises(ClientError) as caught:
        getattr(boto(url, keys), action)(**parameters)
    return str(caught.value.response["Error"]["Code"])


def test_a_key_acts_in_its_project(url: str, person: Person, keys: Keys) -> None:
    arn = boto(url, keys).create_stack(StackName="web", TemplateBody=str(templates.HELLO))["StackId"]
    assert f":{person.project_id}:" in arn
    (shown,) = boto(url, keys).list_stacks()["StackSummaries"]
    assert shown["StackId"] == arn
    headers = {"x-auth-token": person.token()}
    (same,) = httpx.get(f"{url}/v1/{person.project_id}/stacks", headers=headers).json()["stacks"]
    assert (same["stack_name"], same["stack_owner"]) == ("web", person.name)
    listed = httpx.get(f"{url}/v1/?Action=ListStacks", headers=headers)
    assert arn in listed.text, "a token does as well"


def test_old_signatures(url: str, keys: Keys) -> None:
    answer = httpx.get(f"{url}/v1/", params=signed_v2(*keys, "GET", f"{url}/v1/", {"Action": "ListStacks"}))
    assert answer.status_code == 200, answer.text
    wrong = httpx.get(f"{url}/v1/", params=signed_v2(keys[0], "x", "GET", f"{url}/v1/", {"Action": "ListStacks"}))
    assert (wrong.status_code, "<Code>AccessDenied</Code>" in wrong.text) == (403, True)


def test_keys_that_are_wrong(url: str, keys: Keys) -> None:
    assert refusal(url, (keys[0], "x")) == "AccessDenied"
    assert refusal(url, (keys[0][::-1], keys[1])) == "InvalidClientTokenId"
    assert httpx.get(f"{url}/v1/?Action=ListStacks").status_code == 400
    assert httpx.get(f"{url}/v1/?Action=ListStacks", headers={"x-auth-token": "x"}).status_code == 403


def test_a_reader_changes_nothing(url: str, admin: Admin, person: Person, keys: Keys) -> None:
    admin.grant(person.id, person.project_id, "reader")
    admin.withdraw(person.id, person.project_id, "member")
    assert boto(url, keys).list_stacks()["StackSummaries"] == []
    assert refusal(url, keys, "create_stack", StackName="web", TemplateBody=str(templates.HELLO)) == "AccessDenied"


def test_a_keystone_that_is_away(settings: Path, tmp_path: Path, keys: Keys) -> None:
    away = tmp_path / "away.ini"
    away.write_text(login("http://127.0.0.1:9/v3", "-1"))
    with database(tmp_path) as db, serving(db, KeystoneAccess(settings), verifying(away)) as url:
        assert refusal(url, keys) == "ServiceUnavailable"
