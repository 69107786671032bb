"""What lets its bearer act is hidden from readers, wherever an answer has it."""

import base64
import json
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.unit.api.neighbours import OWN, Neighbours

from homeostat.api.hidden_addresses import HELD_MAX, _Redactor, without_secrets
from homeostat.resources.signing import signed_url

URL = signed_url("http://api.test", "/v1/signal/arn:a", "POST", "a" * 32, "key", "b" * 32)
KEY = "Ab-_" * 8
TOKEN = f"{'0123456789abcdef' * 2}.{KEY}"
LOGIN = {"user_id": "u", "password": KEY, "secret_access_key": KEY}
WHOLE = {"url": URL, "curl": f"-H 'X-Auth-Token: {TOKEN}' '{URL}'", "text": json.dumps(LOGIN), **LOGIN}
HARMLESS = {
    "Signature": "Signature=of the author",
    "password": "a password of 32 characters, no key",
    "version": f"{'0' * 32}.1",
    "digest": f"{'0' * 32}.{'f' * 64}",
    "host": "a.very-long-name-of-some-host-in-a-zone.test",
}
SIGNED = {
    "cfn": {"type": "OS::Heat::WaitConditionHandle", "properties": {"signal_transport": "TEMP_URL_SIGNAL"}},
    "aws": {"type": "AWS::CloudFormation::WaitConditionHandle"},
    "swift": {"type": "OS::Heat::SwiftSignalHandle"},
    "token": {"type": "OS::Heat::WaitConditionHandle"},
}


def test_its_length_and_all_else_of_an_answer_stay() -> None:
    answer = json.dumps(WHOLE | HARMLESS).encode()
    hidden = without_secrets(answer)
    assert len(hidden) == len(answer)
    assert KEY.encode() not in hidden
    assert URL.rpartition("Signature=")[2].encode() not in hidden
    read = json.loads(hidden)
    assert {name: read[name] for name in HARMLESS if name != "password"} == {
        name: HARMLESS[name] for name in HARMLESS if name != "password"
    }
    assert read["url"].startswith(URL.partition("Signature=")[0])
    assert without_secrets(json.dumps(HARMLESS).encode()) == json.dumps(HARMLESS).encode()


def test_it_is_found_where_an_answer_comes_in_pieces() -> None:
    answer = json.dumps([WHOLE, "x" * 100]).encode()
    for place in range(1, len(answer)):
        hiding = _Redactor()
        assert hiding(answer[:place], True) + hiding(answer[place:], False) == without_secrets(answer)


def test_no_more_is_held_back_than_a_value_may_have() -> None:
    assert _Redactor()(b"x" * (HELD_MAX + 1), True) == b"x" * (HELD_MAX + 1)
    assert _Redactor()(b'data: {"id": 1}\n\n', True) == b'data: {"id": 1}\n\n', "an event is sent at once"


class World(Neighbours):
    def __init__(self) -> None:
        super().__init__()
        outputs = {
            "signed": {"get_attr": ["cfn", "signal"]},
            "reference": {"get_resource": "aws"},
            "swift": {"get_attr": ["swift", "curl_cli"]},
            "token": {"get_attr": ["token", "token"]},
            "made": {"str_replace": {"template": "see URL!", "params": {"URL": {"get_attr": ["policy", "alarm_url"]}}}},
            "inside": {"get_attr": ["inner", "address"]},
        }
        inner = {
            "heat_template_version": "2021-04-16",
            "resources": {"handle": SIGNED["cfn"]},
            "outputs": {"address": {"value": {"get_attr": ["handle", "signal"]}}},
        }
        group = {"min_size": 0, "max_size": 1, "resource": {"type": "OS::Heat::RandomString"}}
        policy = {
            "auto_scaling_group_id": {"get_resource": "scaled"},
            "adjustment_type": "change_in_capacity",
            "scaling_adjustment": 1,
        }
        template = {
            "heat_template_version": "2021-04-16",
            "resources": {
                **SIGNED,
                "scaled": {"type": "OS::Heat::AutoScalingGroup", "properties": group},
                "policy": {"type": "OS::Heat::ScalingPolicy", "properties": policy},
                "inner": {"type": "inner.yaml"},
            },
            "outputs": {name: {"value": value} for name, value in outputs.items()},
        }
        sent = {"stack_name": "acts", "template": template, "files": {"inner.yaml": json.dumps(inner)}}
        made = self.send("POST", "/stacks", f"member@{OWN}", OWN, sent)
        assert made.status_code == 201, made.text
        self.path = f"/stacks/acts/{made.json()['stack']['id']}"
        self.service.rest()

    def text(self, role: str, path: str) -> str:
        answer = self.send("GET", path, f"{role}@{OWN}", OWN)
        assert answer.status_code == 200, answer.text
        return str(answer.text)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def acts(text: str) -> bool:
    """Whether there is something in a text that lets its bearer act."""
    return without_secrets(text.encode()) != text.encode()


PLACES = [
    "",
    *(f"/outputs/{name}" for name in ("signed", "reference", "swift", "token", "made", "inside")),
    *(f"/resources/{name}" for name in ("cfn", "swift", "token", "policy")),
    "/resources/inner?with_attr=address",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_reader_sees_of_what_acts_that_it_is_there(world: World, place: str) -> None:
    by_member, by_reader = (world.text(role, f"{world.path}{place}") for role in ("member", "reader"))
    assert acts(by_member)
    assert "****" not in by_member
    assert without_secrets(by_member.encode()).decode() == by_reader


def described(world: World, role: str) -> dict[str, Any]:
    query = {"Action": "DescribeStacks", "Version": "2010-05-15", "StackName": "acts"}
    basic = {"authorization": f"Basic {base64.b64encode(b'a:b').decode()}"}
    answer = world.client.get("/v1/", params=query, headers={**basic, "x-caller": f"{role}@{OWN}"})
    assert answer.status_code == 200, answer.text
    assert ElementTree.fromstring(answer.text) is not None
    return {"acts": acts(answer.text), "hidden": "****" in answer.text}


def test_nor_by_the_cloudformation_api(world: World) -> None:
    assert described(world, "member") == {"acts": True, "hidden": False}
    assert described(world, "reader") == {"acts": False, "hidden": True}
