"""boto3's client for CloudFormation. Where nobody is asked who he is, the access key names the project."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, WaiterError

from tests.wire.running import Running, settled

HELLO: dict[str, Any] = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Description": "Says hello",
    "Parameters": {
        "Word": {"Type": "String", "Default": "hello", "Description": "To say"},
        "Key": {"Type": "String", "NoEcho": "true", "Default": "swordfish"},
    },
    "Resources": {
        "speaker": {
            "Type": "OS::Heat::TestResource",
            "Properties": {"value": {"Ref": "Word"}},
            "Metadata": {"colours": ["red", "blue"]},
        }
    },
    "Outputs": {"Said": {"Description": "What it says", "Value": {"Fn::GetAtt": ["speaker", "output"]}}},
}
BODY = json.dumps(HELLO)
OFTEN = {"Delay": 0.05, "MaxAttempts": 600}


def boto(url: str, access_key: str, secret: str = "any") -> Any:
    return boto3.client(
        "cloudformation",
        endpoint_url=f"{url}/v1/",
        region_name="nowhere",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret,
        config=Config(retries={"max_attempts": 0}),
    )


@pytest.fixture
def cfn(service: Running, project: str) -> Iterator[Any]:
    made = boto(service.url, project)
    yield made
    made.close()


def refusal(call: Any, **parameters: Any) -> tuple[int, str, str]:
    """HTTP code, code and message of an error."""
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    error = caught.value.response["Error"]
    assert error["Type"] == "Sender"
    return caught.value.response["ResponseMetadata"]["HTTPStatusCode"], error["Code"], error["Message"]


def words(stack: dict[str, Any]) -> dict[str, str]:
    return {each["ParameterKey"]: each["ParameterValue"] for each in stack["Parameters"]}


def test_a_life_of_a_stack(cfn: Any, http: httpx.Client, project: str) -> None:
    made = cfn.create_stack(
        StackName="web",
        TemplateBody=BODY,
        Parameters=[{"ParameterKey": "Key", "ParameterValue": "s & <t>"}],
        OnFailure="DO_NOTHING",
        TimeoutInMinutes=7,
        Capabilities=["CAPABILITY_IAM"],
    )
    arn = made["StackId"]
    stack_id = arn.rpartition("/")[2]
    assert arn == f"arn:openstack:heat::{project}:stacks/web/{stack_id}"
    cfn.get_waiter("stack_create_complete").wait(StackName="web", WaiterConfig=OFTEN)
    (shown,) = cfn.describe_stacks(StackName="web")["Stacks"]
    assert shown["StackId"] == arn
    assert (shown["StackStatus"], shown["Description"]) == ("CREATE_COMPLETE", "Says hello")
    assert (shown["DisableRollback"], shown["TimeoutInMinutes"]) == (True, 7)
    assert (shown["Capabilities"], shown["NotificationARNs"]) == ([], [])
    assert shown["Outputs"] == [{"OutputKey": "Said", "OutputValue": "hello", "Description": "What it says"}]
    assert (words(shown)["Word"], words(shown)["Key"]) == ("hello", "******")
    assert "LastUpdatedTime" not in shown

    assert cfn.update_stack(StackName=arn, TemplateBody=BODY, Parameters=[word("bye")])["StackId"] == arn
    cfn.get_waiter("stack_update_complete").wait(StackName="web", WaiterConfig=OFTEN)
    (shown,) = cfn.describe_stacks()["Stacks"]
    assert shown["Outputs"][0]["OutputValue"] == "bye"
    assert shown["LastUpdatedTime"] >= shown["CreationTime"]
    (listed,) = cfn.list_stacks()["StackSummaries"]
    assert (listed["StackId"], listed["StackName"], listed["StackStatus"]) == (arn, "web", "UPDATE_COMPLETE")

    cfn.delete_stack(StackName="web")
    cfn.get_waiter("stack_delete_complete").wait(StackName=arn, WaiterConfig=OFTEN)
    (shown,) = cfn.describe_stacks(StackName=arn)["Stacks"]
    assert shown["StackStatus"] == "DELETE_COMPLETE"
    assert refusal(cfn.describe_stacks, StackName="web")[:2] == (400, "InvalidParameterValue")
    assert refusal(cfn.delete_stack, StackName=arn)[:2] == (400, "InvalidParameterValue")
    assert cfn.list_stacks()["StackSummaries"] == cfn.describe_stacks()["Stacks"] == []


def word(value: str) -> dict[str, str]:
    return {"ParameterKey": "Word", "ParameterValue": value}


def test_resources_and_events(cfn: Any, http: httpx.Client) -> None:
    arn = cfn.create_stack(StackName="web", TemplateBody=BODY)["StackId"]
    settled(http, arn.rpartition("/")[2], status="CREATE_COMPLETE")
    detail = cfn.describe_stack_resource(StackName="web", LogicalResourceId="speaker")["StackResourceDetail"]
    assert json.loads(detail["Metadata"]) == {"colours": ["red", "blue"]}
    assert (detail["StackId"], detail["StackName"], detail["ResourceType"]) == (arn, "web", "OS::Heat::TestResource")
    assert (detail["ResourceStatus"], detail["ResourceStatusReason"]) == ("CREATE_COMPLETE", "state changed")
    handle = detail["PhysicalResourceId"]
    for which in (
        {"StackName": arn},
        {"PhysicalResourceId": handle},
        {"StackName": "web", "LogicalResourceId": "speaker"},
    ):
        (found,) = cfn.describe_stack_resources(**which)["StackResources"]
        assert found["PhysicalResourceId"] == handle
        assert found["Timestamp"] == detail["LastUpdatedTimestamp"]
    (summary,) = cfn.list_stack_resources(StackName=arn)["StackResourceSummaries"]
    assert summary["LogicalResourceId"] == "speaker"
    assert "StackId" not in summary

    events = cfn.describe_stack_events(StackName="web")["StackEvents"]
    reported = [(each["LogicalResourceId"], each["ResourceStatus"]) for each in reversed(events)]
    assert reported == [
        ("web", "CREATE_IN_PROGRESS"),
        ("speaker", "CREATE_IN_PROGRESS"),
        ("speaker", "CREATE_COMPLETE"),
        ("web", "CREATE_COMPLETE"),
    ]
    assert json.loads(events[1]["ResourceProperties"]) == {"value": "hello"}
    assert {each["StackId"] for each in events} == {arn}
    assert refusal(cfn.describe_stack_resource, StackName="web", LogicalResourceId="x")[1] == "InvalidParameterValue"
    assert refusal(cfn.describe_stack_resources, PhysicalResourceId="x")[1] == "InvalidParameterValue"
    both = {"StackName": "web", "PhysicalResourceId": handle}
    assert refusal(cfn.describe_stack_resources, **both)[1] == "InvalidParameterCombination"
    assert refusal(cfn.describe_stack_resources)[1] == "MissingParameter"


def test_templates(cfn: Any) -> None:
    cfn.create_stack(StackName="web", TemplateBody=BODY)
    assert json.loads(json.dumps(cfn.get_template(StackName="web")["TemplateBody"])) == HELLO
    found = cfn.validate_template(TemplateBody=BODY)
    assert found["Description"] == "Says hello"
    by_key = {each.pop("ParameterKey"): each for each in found["Parameters"]}
    assert by_key["Word"] == {"DefaultValue": "hello", "NoEcho": False, "Description": "To say"}
    assert by_key["Key"]["NoEcho"] is True
    assert cfn.estimate_template_cost(TemplateBody=BODY)["Url"].startswith("http")


def test_what_is_wrong_with_a_template_is_no_error_of_validation(service: Running, project: str, cfn: Any) -> None:
    bad = {"Type": "OS::Heat::TestResource", "Properties": {"colour": "red"}}
    wrong = {**HELLO, "Resources": {"x": bad}, "Outputs": {}}
    assert cfn.validate_template(TemplateBody=json.dumps(wrong)).keys() == {"ResponseMetadata"}
    answer = act(service, project, Action="ValidateTemplate", TemplateBody=json.dumps(wrong))
    assert answer.status_code == 200
    assert "Resources.x.Properties: Unknown Property colour" in answer.text
    assert refusal(cfn.validate_template, TemplateBody="]")[1] == "InvalidParameterValue"
    assert refusal(cfn.create_stack, StackName="x", TemplateBody=json.dumps(wrong))[1] == "InvalidParameterValue"


def test_what_stays_in_an_update(cfn: Any, http: httpx.Client) -> None:
    arn = cfn.create_stack(StackName="web", TemplateBody=BODY, Parameters=[word("one")])["StackId"]

    def word_after(**parameters: Any) -> str:
        settled(http, arn.rpartition("/")[2])
        cfn.update_stack(StackName="web", **parameters)
        return words(cfn.describe_stacks(StackName=arn)["Stacks"][0])["Word"]

    previous = {"ParameterKey": "Word", "UsePreviousValue": True}
    assert word_after(UsePreviousTemplate=True, Parameters=[previous]) == "one"
    assert word_after(TemplateBody=BODY, Parameters=[previous]) == "one"
    assert word_after(UsePreviousTemplate=True, Parameters=[word("two")]) == "two"
    assert word_after(UsePreviousTemplate=True) == "hello"
    assert word_after(TemplateBody=BODY, Parameters=[word("three")]) == "three"
    assert word_after(TemplateBody=BODY) == "hello"
    both = {"StackName": "web", "UsePreviousTemplate": True, "TemplateBody": BODY}
    assert refusal(cfn.update_stack, **both)[1] == "InvalidParameterCombination"
    assert refusal(cfn.update_stack, StackName="web")[1] == "MissingParameter"


def test_an_update_that_is_cancelled(cfn: Any, http: httpx.Client) -> None:
    arn = cfn.create_stack(StackName="web", TemplateBody=BODY)["StackId"]
    stack_id = arn.rpartition("/")[2]
    settled(http, stack_id)
    assert refusal(cfn.cancel_update_stack, StackName="web")[1] == "InvalidParameterValue"
    waits = {
        "Type": "AWS::CloudFormation::WaitCondition",
        "Properties": {"Handle": {"Ref": "handle"}, "Timeout": "600"},
    }
    more = {"handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}, "condition": waits}
    longer = {**HELLO, "Resources": {**HELLO["Resources"], **more}}
    cfn.update_stack(StackName="web", TemplateBody=json.dumps(longer), DisableRollback=False)
    cfn.cancel_update_stack(StackName="web")
    assert settled(http, stack_id)["stack_status"] == "ROLLBACK_COMPLETE"
    assert [
        each["LogicalResourceId"] for each in cfn.list_stack_resources(StackName="web")["StackResourceSummaries"]
    ] == ["speaker"]


def test_a_waiter_that_sees_a_failure(cfn: Any) -> None:
    wrong = {"Type": "OS::Heat::TestResource", "Properties": {"fail": True}}
    cfn.create_stack(StackName="web", TemplateBody=json.dumps({**HELLO, "Resources": {"x": wrong}, "Outputs": {}}))
    with pytest.raises(WaiterError, match="CREATE_FAILED"):
        cfn.get_waiter("stack_create_complete").wait(StackName="web", WaiterConfig=OFTEN)


def test_mistakes(cfn: Any) -> None:
    cfn.create_stack(StackName="web", TemplateBody=BODY)
    assert refusal(cfn.create_stack, StackName="web", TemplateBody=BODY)[:2] == (400, "AlreadyExists")
    code, kind, message = refusal(cfn.create_stack, StackName="1", TemplateBody=BODY)
    assert (code, kind) == (400, "InvalidParameterValue")
    assert "Invalid stack name 1" in message
    assert refusal(cfn.create_stack, StackName="x")[:2] == (400, "MissingParameter")
    given = {"StackName": "x", "TemplateBody": BODY}
    both = {"DisableRollback": True, "OnFailure": "DELETE"}
    assert refusal(cfn.create_stack, **given, **both)[:2] == (400, "InvalidParameterCombination")
    tags = [{"Key": "a", "Value": "b"}]
    assert "Tags is not supported" in refusal(cfn.create_stack, **given, Tags=tags)[2]
    strange = [{"ParameterKey": "Strange", "ParameterValue": "x"}]
    assert refusal(cfn.create_stack, **given, Parameters=strange)[1] == "InvalidParameterValue"
    assert refusal(cfn.create_stack, **given, TimeoutInMinutes=2**40)[1] == "InvalidParameterValue"
    assert refusal(cfn.get_template, StackName="none")[:2] == (400, "InvalidParameterValue")
    assert refusal(cfn.list_stack_sets)[:2] == (400, "InvalidAction")
    url = "http://169.254.169.254/template"
    assert refusal(cfn.create_stack, StackName="x", TemplateURL=url)[1] == "InvalidParameterValue"


def test_paginators_come_to_an_end(cfn: Any, monkeypatch: pytest.MonkeyPatch, http: httpx.Client) -> None:
    monkeypatch.setattr("homeostat.api.cloudformation.paging.PAGE", 2)
    for name in ("a", "b", "c", "d"):
        settled(http, cfn.create_stack(StackName=name, TemplateBody=BODY)["StackId"].rpartition("/")[2])
    for operation, key in (("list_stacks", "StackSummaries"), ("describe_stacks", "Stacks")):
        pages = list(cfn.get_paginator(operation).paginate())
        assert [[each["StackName"] for each in page[key]] for page in pages] == [["d", "c"], ["b", "a"], []]
    pages = list(cfn.get_paginator("describe_stack_events").paginate(StackName="a"))
    assert [len(page["StackEvents"]) for page in pages] == [2, 2, 0]
    pages = list(cfn.get_paginator("list_stack_resources").paginate(StackName="a"))
    assert [len(page["StackResourceSummaries"]) for page in pages] == [1]
    assert refusal(cfn.describe_stack_events, StackName="a", NextToken="x")[1] == "InvalidParameterValue"
    everything = cfn.get_paginator("describe_stacks").paginate().build_full_result()
    assert len(everything["Stacks"]) == 4


def test_long_pages_end_early_and_long_lists_are_refused(
    cfn: Any, monkeypatch: pytest.MonkeyPatch, http: httpx.Client
) -> None:
    for name in ("a", "b", "c"):
        settled(http, cfn.create_stack(StackName=name, TemplateBody=BODY)["StackId"].rpartition("/")[2])
    for limit, least in (("PAGE_BYTES", 1), ("PAGE_S", 0.0)):
        with monkeypatch.context() as patch:
            patch.setattr(f"homeostat.api.cloudformation.paging.{limit}", least)
            for operation, key in (("list_stacks", "StackSummaries"), ("describe_stacks", "Stacks")):
                pages = list(cfn.get_paginator(operation).paginate())
                assert [[each["StackName"] for each in page[key]] for page in pages] == [["c"], ["b"], ["a"]]
    monkeypatch.setattr("homeostat.api.cloudformation.paging.XML_BYTES_MAX", 10)
    for ask in (cfn.describe_stack_resources, cfn.list_stack_resources):
        status, code, message = refusal(ask, StackName="a")
        assert (status, code) == (400, "RequestLimitExceeded")
        assert "NextToken" in message
    monkeypatch.setattr("homeostat.api.cloudformation.responses.XML_BYTES_MAX", 10)
    assert refusal(cfn.get_template, StackName="a")[:2] == (400, "RequestLimitExceeded")


# -- plain requests ----------------------------------------------------------------------------------------------------


def act(service: Running, project: str, **parameters: str) -> httpx.Response:
    """Unsigned but for the name of the key."""
    credential = f"{project}/20260101/r/s/aws4_request"
    authorization = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host;x-amz-date, Signature=none"
    headers = {"authorization": authorization, "x-amz-date": "20260101T000000Z"}
    return httpx.post(f"{service.url}/v1/", data=parameters, headers=headers)


def test_the_same_as_json(service: Running, project: str) -> None:
    made = act(service, project, Action="CreateStack", StackName="web", TemplateBody=BODY, ContentType="JSON").json()
    arn = made["CreateStackResponse"]["CreateStackResult"]["StackId"]
    found = act(service, project, Action="DescribeStacks", ContentType="JSON").json()
    (stack,) = found["DescribeStacksResponse"]["DescribeStacksResult"]["Stacks"]
    assert stack["StackId"] == arn
    assert stack["LastUpdatedTime"] is None
    gone = act(service, project, Action="DescribeStacks", ContentType="JSON", StackName="x")
    assert gone.status_code == 400
    assert gone.json()["ErrorResponse"]["Error"]["Code"] == "InvalidParameterValue"


def test_outputs_of_all_kinds(service: Running, project: str, cfn: Any) -> None:
    template = {
        "heat_template_version": "2018-08-31",
        "parameters": {"given": {"type": "json", "default": {"a:b": {"c:d": [1, {"e:f": "g"}]}, "1 x": True}}},
        "outputs": {
            "map": {"value": {"get_param": "given"}},
            "text": {"value": "bell \a, cut \ud7ff <&> ü 世"},
            "none": {"value": None},
        },
    }
    cfn.create_stack(StackName="web", TemplateBody=json.dumps(template))
    shown = act(service, project, Action="DescribeStacks").text
    assert (
        "<OutputValue><a.b><c.d><member>1</member><member><e.f>g</e.f></member></c.d></a.b><_1_x>true</_1_x>" in shown
    )
    outputs = {each["OutputKey"]: each.get("OutputValue") for each in cfn.describe_stacks()["Stacks"][0]["Outputs"]}
    assert outputs["text"] == "bell \ufffd, cut \ud7ff <&> ü 世"
    assert outputs["none"] is None


def test_version_and_actions_share_an_address(service: Running, project: str) -> None:
    for path in ("/v1", "/v1/", "/v1.0/"):
        shown = httpx.get(f"{service.url}{path}")
        assert shown.json()["version"]["id"] == "v1.0"
        listed = httpx.get(f"{service.url}{path}?Action=ListStacks")
        assert listed.headers["content-type"].startswith("text/xml")
        assert listed.text.startswith("<ListStacksResponse><ListStacksResult><StackSummaries")
        unknown = httpx.post(f"{service.url}{path}")
        assert (unknown.status_code, "<Code>InvalidAction</Code>" in unknown.text) == (400, True)


@pytest.mark.parametrize(
    ("query", "body", "code", "status"),
    [
        ("Action=ListStacks&Action=DeleteStack", "", "InvalidParameterCombination", 400),
        ("Action=ListStacks&a=%00", "", "InvalidParameterValue", 400),
        ("Action=ListStacks", "a=%ff", "MalformedQueryString", 404),
        ("Action=ListStacks&Signature=x", "", "MissingAuthenticationToken", 403),
        ("Action=ListStacks&NextToken=%F0%9F%98%80", "", "", 200),
        ("Action=DescribeStacks&StackName=%F0%9F%98%80%0A", "", "InvalidParameterValue", 400),
        ("Action=CreateStack&StackName=x", "TemplateBody=%5B1%5D", "InvalidParameterValue", 400),
        (
            "Action=CreateStack&StackName=x&TemplateBody=%7B%7D&Parameters.member.1.ParameterValue=x",
            "",
            "MissingParameter",
            400,
        ),
        ("Action=CreateStack&StackName=x&TemplateBody=%7B%7D&OnFailure=x", "", "InvalidParameterValue", 400),
        ("Action=CreateStack&StackName=x&TemplateBody=%7B%7D&DisableRollback=x", "", "InvalidParameterValue", 400),
        ("Action=DescribeStackResource&StackName=x", "", "MissingParameter", 400),
        ("Action=__init__", "", "InvalidAction", 400),
    ],
)
def test_requests_that_are_wrong(service: Running, query: str, body: str, code: str, status: int) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = httpx.post(f"{service.url}/v1/?{query}", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    if code:
        assert f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>" in answer.text


def test_large_forms(service: Running, project: str) -> None:
    """What counts is the size of the template, not what its encoding makes of it."""
    large = json.dumps({**HELLO, "Description": "ü" * 150_000}, ensure_ascii=False)
    created = act(service, project, Action="CreateStack", StackName="large", TemplateBody=large)
    assert created.status_code == 200, created.text
    too_large = act(service, project, Action="CreateStack", StackName="larger", TemplateBody="x" * 4_000_000)
    assert too_large.status_code == 400
    assert "<Code>RequestLimitExceeded</Code>" in too_large.text
