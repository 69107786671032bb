"""The CloudFormation API over ASGI: who may do what, and requests of all sorts that are none."""

import base64
import json
import string
from collections import defaultdict
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.api.neighbours import OTHER, OWN, Neighbours

from homeostat.api.access import rules
from homeostat.api.cloudformation.errors import CODES
from homeostat.api.cloudformation.routes import ACTIONS

MEMBER, READER = f"member@{OWN}", f"reader@{OWN}"
TEMPLATE = json.dumps({"heat_template_version": "2018-08-31"})
CHANGING = {"CancelUpdateStack", "CreateStack", "DeleteStack", "UpdateStack"}


@pytest.fixture(scope="module")
def both() -> Neighbours:
    return Neighbours()


def act(both: Neighbours, caller: str, action: str, **parameters: str) -> tuple[int, Any]:
    """HTTP code, and the result or the code of the error."""
    headers = {"x-caller": caller, "x-auth-user": "known"}
    answer = both.client.post("/v1/", headers=headers, data={"Action": action, **parameters, "ContentType": "JSON"})
    body = answer.json()
    if answer.status_code == 200:
        return 200, body[f"{action}Response"][f"{action}Result"]
    return answer.status_code, body["ErrorResponse"]["Error"]["Code"]


def test_every_action_has_a_rule() -> None:
    named = {name.partition(":")[2] for name in rules.NAMES if name.startswith("cloudformation:")}
    assert named == set(ACTIONS)


@pytest.mark.heavy
@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_who_may_act(both: Neighbours, action: str) -> None:
    """A user without permission learns nothing of what is there; a user with it gets an answer to the rest."""
    allowed = {MEMBER, READER} if action not in CHANGING else {MEMBER}
    for caller in (MEMBER, READER, f"visitor@{OWN}"):
        code, fault = act(both, caller, action, StackName="none", TemplateBody=TEMPLATE * (action != "CreateStack"))
        assert (fault == "AccessDenied") == (caller not in allowed), (caller, code, fault)


def test_stacks_of_others_are_not_there(both: Neighbours) -> None:
    theirs = both.things[OTHER]
    for name in (theirs.stack_id, f"arn:openstack:heat::{OTHER}:stacks/web/{theirs.stack_id}"):
        assert act(both, MEMBER, "DescribeStacks", StackName=name) == (400, "InvalidParameterValue")
        assert act(both, MEMBER, "DeleteStack", StackName=name) == (400, "InvalidParameterValue")
    _, listed = act(both, MEMBER, "ListStacks")
    assert [each["StackId"].rpartition("/")[2] for each in listed["StackSummaries"]] == [both.things[OWN].stack_id]
    _, events = act(both, MEMBER, "DescribeStackEvents")
    assert {each["StackName"] for each in events["StackEvents"]} == {"web"}
    admins = f"admin@{OWN}"
    code, shown = act(both, admins, "DescribeStackResource", StackName=theirs.stack_id, LogicalResourceId="handle")
    assert (code, shown["StackResourceDetail"]["PhysicalResourceId"]) == (200, theirs.handle)
    assert act(both, MEMBER, "DescribeStackResources", PhysicalResourceId=theirs.handle)[1] == "InvalidParameterValue"
    assert act(both, admins, "DescribeStackResources", PhysicalResourceId=theirs.handle)[0] == 200


def test_an_arn_is_of_one_stack(both: Neighbours) -> None:
    mine = both.things[OWN].stack_id
    assert act(both, MEMBER, "GetTemplate", StackName=f"arn:openstack:heat::{OWN}:stacks/web/{mine}")[0] == 200
    for project, name in ((OTHER, "web"), (OWN, "other")):
        arn = f"arn:openstack:heat::{project}:stacks/{name}/{mine}"
        assert act(both, MEMBER, "GetTemplate", StackName=arn)[0] == 400


def test_users_of_an_identity_service_read_what_they_were_made_for(both: Neighbours) -> None:
    mine = both.things[OWN]
    me = f"heat_stack_user/{OWN}-server@{mine.users}"
    code, shown = act(both, me, "DescribeStackResource", StackName="web", LogicalResourceId="handle")
    assert (code, shown["StackResourceDetail"]["PhysicalResourceId"]) == (200, mine.handle)
    assert act(both, me, "DescribeStackResource", StackName="web", LogicalResourceId="text")[1] == "AccessDenied"
    stranger = f"heat_stack_user/nobody@{mine.users}"
    assert (
        act(both, stranger, "DescribeStackResource", StackName="web", LogicalResourceId="handle")[1] == "AccessDenied"
    )
    signal = {"StackName": "web", "UniqueId": "m", "Status": "SUCCESS"}
    assert act(both, me, "SignalResource", **signal, LogicalResourceId="handle")[1] == "AccessDenied"
    assert act(both, me, "SignalResource", **signal, LogicalResourceId="text")[1] == "AccessDenied"
    for action in sorted(set(ACTIONS) - {"DescribeStackResource", "SignalResource"}):
        assert act(both, me, action, StackName="web") == (403, "AccessDenied"), action


def test_what_is_asked_of_a_signal_address_is_answered_by_the_same_api(both: Neighbours) -> None:
    answer = both.client.put("/v1/waitcondition/arn:openstack:heat::p:stacks/a/b/resources/c", content=b"{")
    assert (answer.status_code, ElementTree.fromstring(answer.text)[0].findtext("Code")) == (
        400,
        "InvalidParameterValue",
    )


@pytest.mark.parametrize(
    ("transport", "method", "route"),
    [("TEMP_URL_SIGNAL", "PUT", "/v1/waitcondition/{arn}"), ("CFN_SIGNAL", "POST", "/v1/signal/{arn}")],
)
def test_signal_addresses_answer_in_the_formats_that_are_documented(
    both: Neighbours, transport: str, method: str, route: str
) -> None:
    handle = {"type": "OS::Heat::WaitConditionHandle", "properties": {"signal_transport": transport}}
    stack_id = both.create(OWN, {"handle": handle}, name=transport)
    url = json.loads(both.service.attribute(stack_id, "handle", "signal"))["alarm_url"]
    path, signature = urlsplit(url).path, urlsplit(url).query
    answers = [
        both.client.request(sent, address, params=f"{query}{more}", content=body)
        for more in ("", "&ContentType=JSON")
        for sent, address, query, body in (
            (method, path, signature, b"{}"),
            (method, path, signature, b"{"),
            (method, path, "", b"{}"),
            ("DELETE", path, signature, b""),
            (method, route.replace("{arn}", "web"), "", b"{}"),
        )
    ]
    found: dict[str, set[str]] = defaultdict(set)
    for answer in answers:
        found[str(answer.status_code)].add(answer.headers["content-type"].partition(";")[0])
    assert set(found) == {"200", "400", "401", "403", "405"}
    document = both.client.get("/openapi.json", headers={"x-caller": MEMBER}).json()
    documented = document["paths"][route][method.lower()]["responses"]
    assert {code: set(documented[code]["content"]) for code in found} == found


# -- requests that are none --------------------------------------------------------------------------------------------

NAMES = (
    *("Action", "ContentType", "StackName", "LogicalResourceId", "PhysicalResourceId", "NextToken", "OnFailure"),
    *("TemplateBody", "TemplateUrl", "TimeoutInMinutes", "DisableRollback", "UsePreviousTemplate"),
    *("Parameters.member.1.ParameterKey", "Parameters.member.1.ParameterValue", "Parameters.member.1.UsePreviousValue"),
    *("AWSAccessKeyId", "Signature", "SignatureVersion", "SignatureMethod", "Timestamp", "Expires"),
    *("X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature"),
)
VALUES = (
    *ACTIONS,
    *("JSON", "web", "text", "true", "false", "2", "4", "HmacSHA256", "AWS4-HMAC-SHA256", "host;x-amz-date", "host"),
    *("2026-01-01T00:00:00Z", "20260101T000000Z", "a/20260101/r/s/aws4_request", "0" * 32, "999999999999", "-1", ""),
    *(TEMPLATE, "{}", "[]", "]", "{", "a: &a [*a]", "heat_template_version: 2018-08-31", "http://127.0.0.1:1/x"),
)
PAIRS = st.lists(st.tuples(st.sampled_from(NAMES) | st.text(), st.sampled_from(VALUES) | st.text()), max_size=8)
AUTHORIZATIONS = st.one_of(
    st.sampled_from(["Basic", "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=", "Bearer x"]),
    st.text(string.printable.strip() + " ", max_size=200).map(lambda text: f"AWS4-HMAC-SHA256 {text}"),
    st.builds(
        "AWS4-HMAC-SHA256 Credential={}/{}/r/s/aws4_request, SignedHeaders={}, Signature={}".format,
        st.sampled_from(["0" * 32, "a", ""]),
        st.sampled_from(["20260101", "2026", ""]),
        st.sampled_from(["host;x-amz-date", "host", ";", "host;;"]),
        st.sampled_from(["0", ""]),
    ),
)


def encoded(pairs: list[tuple[str, str]]) -> bytes:
    return "&".join(
        f"{quote(name, errors='replace')}={quote(value, errors='replace')}" for name, value in pairs
    ).encode()


@pytest.mark.heavy
@given(
    query=PAIRS,
    form=st.one_of(PAIRS.map(encoded), st.binary(max_size=100)),
    authorization=st.none() | AUTHORIZATIONS,
    date=st.none() | st.sampled_from(["20260101T000000Z", "20269999T000000Z", "Thu, 01 Jan 1970 00:00:00 GMT", "x"]),
    kind=st.sampled_from(
        ["application/x-www-form-urlencoded", "application/json", "multipart/form-data; boundary=x", ""]
    ),
    caller=st.sampled_from([f"admin@{OWN}", f"visitor@{OWN}", ""]),
)
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
def test_no_request_is_a_mistake_of_the_service(
    both: Neighbours, query: Any, form: bytes, authorization: str | None, date: str | None, kind: str, caller: str
) -> None:
    headers = {"x-caller": caller, "x-auth-user": "known", "content-type": kind}
    headers |= {"authorization": authorization} if authorization is not None else {}
    headers |= {"x-amz-date": date} if date is not None else {}
    given = {name: value.encode("latin-1", "replace") for name, value in headers.items()}
    answer = both.client.post(f"/v1/?{encoded(query).decode()}", content=form, headers=given)
    assert answer.status_code in {200} | {each.status for each in CODES.values() if each.status < 500}, answer.text
    if answer.headers["content-type"].startswith("text/xml"):
        root = ElementTree.fromstring(answer.content)
        code = root.findtext("Error/Code")
        assert (answer.status_code == 200) == (code is None)
        assert code is None or CODES[code].status == answer.status_code
    else:
        assert answer.json()


def test_passwords_are_for_the_access_mode(both: Neighbours) -> None:
    basic = {"authorization": f"Basic {base64.b64encode(b'a:b').decode()}", "x-caller": MEMBER}
    assert both.client.get("/v1/?Action=ListStacks", headers=basic).status_code == 200
    assert both.client.get("/v1/?Action=ListStacks", headers={"x-caller": MEMBER}).status_code == 400
