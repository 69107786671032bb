"""Why stacks do not move, as the API tells it."""

from typing import Any

import httpx
import pytest

from tests.waiting import until
from tests.wire.running import settled

STUCK = """
heat_template_version: 2018-08-31
resources:
  slow: {type: OS::Heat::TestResource, properties: {wait_secs: -1}}
  after: {type: OS::Heat::TestResource, properties: {value: {get_attr: [slow, output]}}}
  quick: {type: OS::Heat::TestResource}
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      resource_def: {type: OS::Heat::TestResource, properties: {action_wait_secs: {create: 3600}}}
"""
FAILING = """
heat_template_version: 2018-08-31
resources:
  bad: {type: OS::Heat::TestResource, properties: {fail: true}}
  after: {type: OS::Heat::TestResource, depends_on: bad}
"""


def create(http: httpx.Client, template: str, name: str = "web") -> str:
    return str(http.post("stacks", json={"stack_name": name, "template": template}).json()["stack"]["id"])


def explained(http: httpx.Client, name: str = "web", **params: Any) -> dict[str, Any]:
    answer = http.get(f"stacks/{name}/explain", params=params, follow_redirects=True)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["explanation"])


@pytest.fixture
def stuck(http: httpx.Client) -> str:
    stack_id = create(http, STUCK)
    until(lambda: len(explained(http, nested_depth=1)["resources"]) == 5 and moved(http), "all but one to be begun")
    return stack_id


def moved(http: httpx.Client) -> bool:
    return all(each["why"] != "turn" for each in explained(http, nested_depth=1)["resources"])


@pytest.mark.shows("CV19")
def test_a_stack_says_why_it_does_not_move(http: httpx.Client, stuck: str) -> None:
    found = explained(http)
    assert (found["id"], found["stack_name"], found["stack_status"]) == (stuck, "web", "CREATE_IN_PROGRESS")
    assert found["deadline"] > found["begun_at"]
    by_name = {each["resource_name"]: each for each in found["resources"]}
    assert {name: each["why"] for name, each in by_name.items()} == {
        "slow": "building",
        "group": "building",
        "after": "requires",
    }
    slow, after = by_name["slow"], by_name["after"]
    assert slow["blocks"] == ["after"]
    assert slow["resource_status"] == "CREATE_IN_PROGRESS"
    assert slow["cause"] is None
    assert after["waits_for"] == ["slow"]
    assert after["released_by"] == "the resources it requires becoming complete"
    assert after["next"] == "create"
    assert (after["cause"]["path"], after["cause"]["why"]) == (["slow"], "building")
    assert by_name["group"]["cause"]["path"] == ["group", "0"]
    nested = next(each["href"] for each in by_name["group"]["links"] if each["rel"] == "nested")
    assert len(httpx.get(f"{nested}/explain").json()["explanation"]["resources"]) == 2


def test_waiting_for_time_alone_is_explained(http: httpx.Client, stuck: str) -> None:
    group = next(each for each in explained(http, nested_depth=1)["resources"] if each["path"] == ["group", "0"])
    assert (group["due_at"], group["next"], group["next_at"]) == (group["due_at"], "record", group["due_at"])
    assert group["due_at"] > group["since"]


def test_progress_and_estimate(http: httpx.Client, stuck: str) -> None:
    found = explained(http)
    assert found["progress"] == {"planned": 4, "done": 1, "stacks": 1}
    assert explained(http, nested_depth=5)["progress"] == {"planned": 6, "done": 1, "stacks": 2}
    path = found["critical_path"]
    assert [(each["resource_name"], each["action"]) for each in path["resources"]] == [("group", "CREATE")]
    assert 0 < path["seconds"] <= 3600
    assert found["estimate"]["seconds"] >= path["seconds"]


def test_pages_follow_each_other(http: httpx.Client, stuck: str) -> None:
    found, url = [], f"stacks/web/{stuck}/explain?limit=1"
    while url:
        answer = http.get(url).json()["explanation"]
        found += [each["resource_name"] for each in answer["resources"]]
        url = next((each["href"] for each in answer["links"] if each["rel"] == "next"), "")
    assert sorted(found) == ["after", "group", "slow"]


def test_what_is_at_rest_needs_nothing(http: httpx.Client) -> None:
    stack_id = create(http, "heat_template_version: 2018-08-31\nresources: {a: {type: OS::Heat::TestResource}}")
    settled(http, stack_id, status="CREATE_COMPLETE")
    found = explained(http)
    assert (found["resources"], found["estimate"], found["critical_path"]) == ([], None, None)
    assert found["progress"] == {"planned": 1, "done": 1, "stacks": 1}
    one = http.get(f"stacks/web/{stack_id}/resources/a/explain").json()["explanation"]
    assert (one["at_rest"], one["reasons"], one["resource"]["resource_name"]) == (True, [], "a")


def test_a_failure_is_the_cause(http: httpx.Client) -> None:
    stack_id = create(http, FAILING)
    settled(http, stack_id, status="CREATE_FAILED")
    bad, after = explained(http)["resources"]
    assert (bad["why"], bad["blocks"]) == ("failed", ["after"])
    assert "Test Resource failed bad" in bad["reason"]
    assert after["cause"]["path"] == ["bad"]
    one = http.get(f"stacks/web/{stack_id}/resources/after/explain").json()["explanation"]
    assert not one["at_rest"]
    assert [each["why"] for each in one["reasons"]] == ["requires"]


def test_a_deleted_stack_explains_nothing(http: httpx.Client) -> None:
    stack_id = create(http, "heat_template_version: 2018-08-31\nresources: {a: {type: OS::Heat::TestResource}}")
    settled(http, stack_id, status="CREATE_COMPLETE")
    http.delete(f"stacks/web/{stack_id}")
    settled(http, stack_id, status="DELETE_COMPLETE")
    found = explained(http, stack_id)
    assert (found["resources"], found["progress"]) == ([], {"planned": 0, "done": 0, "stacks": 1})


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("stacks/nobody/explain", 404, "(nobody) could not be found"),
        ("stacks/web/{id}/resources/nobody/explain", 404, "The Resource (nobody) could not be found"),
        ("stacks/web/{id}/explain?marker=x", 400, "Invalid marker 'x'"),
        ("stacks/web/{id}/explain?marker=99999999999999999999:1:a", 400, "Invalid marker"),
        ("stacks/web/{id}/explain?marker=0:7:a", 400, "Invalid marker"),
        ("stacks/web/{id}/explain?limit=0", 400, "limit"),
        ("stacks/web/{id}/explain?limit=1001", 400, "limit"),
        ("stacks/web/{id}/explain?nested_depth=-1", 400, "nested_depth"),
    ],
)
def test_mistakes_are_refused(http: httpx.Client, path: str, status: int, words: str) -> None:
    stack_id = create(http, "heat_template_version: 2018-08-31")
    answer = http.get(path.replace("{id}", stack_id))
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


def test_the_address_is_found_by_name_or_id(http: httpx.Client) -> None:
    stack_id = create(http, "heat_template_version: 2018-08-31")
    for known in ("web", stack_id):
        answer = http.get(f"stacks/{known}/explain?limit=3")
        assert answer.status_code == 302
        assert answer.headers["location"].endswith(f"/stacks/web/{stack_id}/explain?limit=3")
