"""What is not shown of properties."""

from typing import Any

import pytest

from homeostat.desired.redaction import NOT_YET, Redaction
from homeostat.model.desired import Identity
from homeostat.templates import HIDDEN, UNKNOWN, compile_template

TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  secret: {type: string, hidden: true, default: swordfish}
  list: {type: comma_delimited_list, hidden: true, default: "alpha,beta"}
  pin: {type: number, hidden: true, default: 42}
  open: {type: string, default: plain}
resources:
  a:
    type: OS::Heat::Value
    properties: {value: {digest: [sha256, {get_param: secret}]}}
  b:
    type: OS::Heat::Value
    properties: {value: {get_param: open}}
"""
CFN = """
HeatTemplateFormatVersion: 2012-12-12
Parameters: {Secret: {Type: String, NoEcho: true, Default: swordfish}}
Resources:
  a: {Type: OS::Heat::Value, Properties: {value: {"Fn::Base64": {Ref: Secret}}}}
"""
IDENTITY = Identity("id", "name", "project")


@pytest.fixture
def redaction() -> Redaction:
    return Redaction().of(compile_template(TEMPLATE, identity=IDENTITY))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "plain"),
        ("swordfish", HIDDEN),
        ("user:swordfish@host", HIDDEN),
        (["x", "alpha"], ["x", HIDDEN]),
        ({"deep": {"er": "the beta"}}, {"deep": {"er": HIDDEN}}),
        (42, HIDDEN),
        (1042, 1042),
        ("page 42", "page 42"),
        (True, True),
        (None, None),
        (UNKNOWN, NOT_YET),
        ({"x": UNKNOWN}, {"x": NOT_YET}),
        ({"admin_password": "other", "size": 1}, {"admin_password": HIDDEN, "size": 1}),
    ],
)
def test_hidden_values_are_hidden_wherever_they_stand(redaction: Redaction, value: Any, shown: Any) -> None:
    assert redaction.shown("b", "value", value) == shown


@pytest.mark.parametrize("name", ["admin_pass", "password", "private_key", "secret", "payload", "credential_secret_id"])
def test_secrets_are_known_by_their_names(redaction: Redaction, name: str) -> None:
    assert redaction.shown("b", name, "anything") == HIDDEN
    assert redaction.shown("b", name, None) is None


def test_what_is_made_from_a_hidden_parameter_is_hidden(redaction: Redaction) -> None:
    assert redaction.shown("a", "value", "0a1b2c") == HIDDEN
    assert redaction.shown("b", "value", "0a1b2c") == "0a1b2c"
    assert Redaction().of(compile_template(CFN, identity=IDENTITY)).shown("a", "value", "c3dvcmRmaXNo") == HIDDEN


def test_sentences_do_not_show_hidden_values(redaction: Redaction) -> None:
    assert redaction.text("the value swordfish is wrong") == f"the value {HIDDEN} is wrong"


def test_properties_of_the_service_are_not_shown(redaction: Redaction) -> None:
    one = {"type": "inner.yaml", "properties": {"x": 1, "(content)": "abc"}}
    assert redaction.shown("b", "resource_def", one) == {"type": "inner.yaml", "properties": {"x": 1}}


MADE = """
heat_template_version: 2018-08-31
resources:
  word: {type: OS::Heat::RandomString}
  pair: {type: OS::Nova::KeyPair, properties: {name: pair, save_private_key: true}}
  handle: {type: OS::Heat::WaitConditionHandle}
  signed: {type: "AWS::CloudFormation::WaitConditionHandle"}
  a:
    type: OS::Heat::Value
    properties: {value: %s}
"""
MADE_CFN = """
HeatTemplateFormatVersion: 2012-12-12
Resources:
  word: {Type: OS::Heat::RandomString}
  signed: {Type: "AWS::CloudFormation::WaitConditionHandle"}
  a: {Type: OS::Heat::Value, Properties: {value: %s}}
"""


@pytest.mark.parametrize(
    ("template", "snippet", "shown"),
    [
        (MADE, "{get_attr: [word, value]}", HIDDEN),
        (MADE, "{get_attr: [word, show]}", HIDDEN),
        (MADE, "{get_resource: word}", HIDDEN),
        (MADE, "{list_join: [':', [a, {get_attr: [word, value, 0]}]]}", HIDDEN),
        (MADE, "{str_replace: {template: pw=$PW, params: {$PW: {get_attr: [word, value]}}}}", HIDDEN),
        (MADE, "{get_attr: [pair, private_key]}", HIDDEN),
        (MADE, "{get_attr: [pair, public_key]}", "it"),
        (MADE, "{get_resource: pair}", "it"),
        (MADE, "{get_attr: [handle, curl_cli]}", HIDDEN),
        (MADE, "{get_resource: handle}", "it"),
        (MADE, "{get_resource: signed}", HIDDEN),
        (MADE_CFN, "{'Fn::GetAtt': [word, value]}", HIDDEN),
        (MADE_CFN, "{Ref: signed}", HIDDEN),
        (MADE_CFN, "{Ref: a2}", "it"),
    ],
)
def test_what_is_made_from_secrets_that_resources_make_is_hidden(template: str, snippet: str, shown: str) -> None:
    other = "  a2: {Type: OS::Heat::Value, Properties: {value: x}}\n" if "Ref: a2" in snippet else ""
    redaction = Redaction().of(compile_template(template % snippet + other, identity=IDENTITY))
    assert redaction.shown("a", "value", "it") == shown
    assert redaction.shown("other", "value", "it") == "it"
