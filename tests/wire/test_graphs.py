"""The graph of a stack, in few bytes."""

import httpx
import pytest

from homeostat.api.orchestration import graphs
from tests.wire.running import Running, settled

MEMBER = {"type": "OS::Heat::RandomString"}
TEMPLATE = {
    "heat_template_version": "wallaby",
    "resources": {
        "net": {"type": "OS::Neutron::Net"},
        "web": {"type": "OS::Nova::Server", "depends_on": "net", "properties": {"image": "i", "flavor": "f"}},
        "group": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": 3, "resource_def": {"type": "two.yaml"}},
        },
    },
}
TWO = """
heat_template_version: wallaby
resources:
  one: {type: OS::Heat::RandomString}
  other: {type: OS::Heat::RandomString}
"""


def test_it_says_what_requires_what_and_how_far_nested_stacks_are(service: Running, http: httpx.Client) -> None:
    body = {"stack_name": "drawn", "template": TEMPLATE, "files": {"two.yaml": TWO}}
    assert http.post("/stacks", json=body).status_code == 201
    settled(http, "drawn", status="CREATE_COMPLETE")
    graph = http.get("/stacks/drawn/graph", follow_redirects=True).json()["graph"]
    assert (graph["stack_status"], graph["planned"], graph["done"], graph["failed"]) == ("CREATE_COMPLETE", 3, 3, 0)
    net, web, group = graph["resources"]
    assert net == {"name": "net", "type": "OS::Neutron::Net", "status": "CREATE_COMPLETE", "id": net["id"]}
    assert (web["requires"], "nested" in web) == (["net"], False)
    # Three members, and two resources in each.
    nested = group["nested"]
    assert (nested["planned"], nested["done"], nested["failed"]) == (9, 9, 0)
    below = http.get(f"/stacks/{nested['stack_name']}/{nested['stack_id']}/graph").json()["graph"]
    assert [each["nested"]["done"] for each in below["resources"]] == [2, 2, 2]


def test_a_mark_is_that_of_the_list_of_resources(service: Running, http: httpx.Client) -> None:
    web = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f"}}
    template = {"heat_template_version": "wallaby", "resources": {"web": web}}
    made = http.post("/stacks", json={"stack_name": "marked", "template": template}).json()["stack"]["id"]
    settled(http, "marked", status="CREATE_COMPLETE")
    stack = f"/stacks/marked/{made}"
    assert http.patch(f"{stack}/convergence", json={"convergence": {"enabled": False}}).status_code == 200
    mark = {"mark_unhealthy": True, "resource_status_reason": "it is slow"}
    assert http.patch(f"{stack}/resources/web", json=mark).status_code == 200
    (drawn,) = http.get(f"{stack}/graph").json()["graph"]["resources"]
    (listed,) = http.get(f"{stack}/resources").json()["resources"]
    assert drawn["unhealthy"] == listed["unhealthy"]
    assert drawn["unhealthy"]["reason"] == "it is slow"


def test_a_large_stack_is_counted(service: Running, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "GRAPH_MAX", 4)
    crowd = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 5, "resource_def": MEMBER}}
    template = {"heat_template_version": "wallaby", "resources": {"crowd": crowd}}
    assert http.post("/stacks", json={"stack_name": "large", "template": template}).status_code == 201
    settled(http, "large", status="CREATE_COMPLETE")
    (group,) = http.get("/stacks/large/graph", follow_redirects=True).json()["graph"]["resources"]
    nested = group["nested"]
    found = http.get(f"/stacks/{nested['stack_name']}/{nested['stack_id']}/graph").json()["graph"]
    assert (found["planned"], found["done"], found["listed"], found["resources"]) == (5, 5, False, [])


def test_what_fails_says_why(service: Running, http: httpx.Client) -> None:
    bad = {"type": "OS::Heat::TestResource", "properties": {"fail": True, "value": "x"}}
    template = {"heat_template_version": "wallaby", "resources": {"bad": bad}}
    assert http.post("/stacks", json={"stack_name": "bad", "template": template}).status_code == 201
    settled(http, "bad", status="CREATE_FAILED")
    graph = http.get("/stacks/bad/graph", follow_redirects=True).json()["graph"]
    (shown,) = graph["resources"]
    assert (shown["status"], graph["failed"]) == ("CREATE_FAILED", 1)
    assert "Test Resource failed" in shown["reason"]
