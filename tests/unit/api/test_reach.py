"""How far callers reach: admins into all projects, stack users to what is meant for them; types for admins alone."""

from typing import Any

import pytest
from tests.unit.api.neighbours import OTHER, OWN, TEMPLATE, Neighbours

from homeostat.api.access.enforcer import Policy
from homeostat.services.quotas import Quotas

MEMBER, READER, ADMIN = f"member@{OWN}", f"reader@{OWN}", f"admin@{OWN}"
FLAVOR = {"type": "OS::Nova::Flavor", "properties": {"ram": 512, "vcpus": 1, "disk": 1}}
USER = {"type": "OS::Keystone::User", "properties": {"name": "eve"}}


@pytest.fixture(scope="module")
def both() -> Neighbours:
    return Neighbours()


def refused(answer: Any, what: str) -> bool:
    error = answer.json()["error"]
    return (answer.status_code, error["type"], error["message"]) == (
        403,
        "Forbidden",
        f"You are not authorized to use {what}.",
    )


# -- admins ------------------------------------------------------------------------------------------------------------


def test_lists_of_members_have_what_is_in_the_project(both: Neighbours) -> None:
    for path in ("/stacks", "/stacks/detail", "/stacks?show_nested=true&show_deleted=true", f"/stacks?tenant={OTHER}"):
        shown = both.send("GET", path, MEMBER, OWN).json()["stacks"]
        assert {each["id"] for each in shown if each["parent"] is None} <= {both.things[OWN].stack_id}
        assert all(f"/v1/{OWN}/" in each["links"][0]["href"] and "project" not in each for each in shown)
    assert both.send("GET", f"/stacks?id={both.things[OTHER].stack_id}", MEMBER, OWN).json()["stacks"] == []
    assert refused(both.send("GET", "/stacks?global_tenant=true", ADMIN, OWN), "global_index")
    assert refused(both.send("GET", "/software_configs?global_tenant=true", ADMIN, OWN), "global_index")


def test_a_marker_of_others_counts_as_none(both: Neighbours) -> None:
    """It would tell when their stacks were made."""
    shown = both.send("GET", f"/stacks?sort_dir=asc&marker={both.things[OTHER].stack_id}", MEMBER, OWN).json()["stacks"]
    assert [each["id"] for each in shown] == [both.things[OWN].stack_id]


def test_lists_of_admins_have_what_is_in_all_projects(both: Neighbours) -> None:
    for path in ("/stacks", "/stacks/detail"):
        shown = both.send("GET", path, ADMIN, OWN).json()["stacks"]
        assert {each["project"] for each in shown} == {OWN, OTHER}
    only = both.send("GET", f"/stacks?tenant={OTHER}&with_count=true", ADMIN, OWN).json()
    assert (only["count"], [each["id"] for each in only["stacks"]]) == (1, [both.things[OTHER].stack_id])
    configs = both.send("GET", "/software_configs", ADMIN, OWN).json()["software_configs"]
    assert {each["project"] for each in configs} == {OWN, OTHER}
    deployments = both.send("GET", "/software_deployments", ADMIN, OWN).json()["software_deployments"]
    assert {each["id"] for each in deployments} >= {each.deployment_id for each in both.things.values()}


def test_admins_reach_stacks_of_others(both: Neighbours) -> None:
    there = both.things[OTHER]
    found = both.send("GET", f"/stacks/{there.stack_id}", ADMIN, OWN)
    assert (found.status_code, f"/v1/{OTHER}/stacks/web/" in found.headers["location"]) == (302, True)
    for project in (OWN, OTHER):
        assert both.send("GET", f"/stacks/web/{there.stack_id}", ADMIN, project).status_code == 200
    assert both.send("GET", f"/software_configs/{there.config_id}", ADMIN, OWN).status_code == 200
    assert both.send("GET", f"/stacks/{there.stack_id}", MEMBER, OWN).status_code == 404
    assert both.send("GET", "/stacks/web", f"member@{OWN}", OTHER).json()["error"]["type"] == "InvalidTenant"


def test_admins_may_have_any_number_of_stacks() -> None:
    world = Neighbours()
    world.service.stack_service.quotas = Quotas(stacks_max=1)
    sent = {"stack_name": "more", "template": TEMPLATE}
    refusal = world.send("POST", "/stacks", MEMBER, OWN, sent)
    assert (refusal.status_code, refusal.json()["error"]["type"]) == (400, "RequestLimitExceeded")
    assert world.send("POST", "/stacks", ADMIN, OWN, sent).status_code == 201


def test_locks_are_broken_by_admins_alone() -> None:
    world = Neighbours()
    web = f"/stacks/web/{world.things[OWN].stack_id}"
    assert world.send("POST", f"{web}/actions", f"member/ada@{OWN}", OWN, {"lock": None}).status_code == 200
    world.service.work()
    for caller, code in ((f"member/bob@{OWN}", 403), (f"admin/root@{OTHER}", 200)):
        assert world.send("POST", f"{web}/actions", caller, OWN, {"unlock": None}).status_code == code


def test_a_policy_may_let_others_list_everything(tmp_path: Any) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text('"stacks:global_index": "role:auditor"\n"stacks:index": "role:auditor"\n')
    shown = Neighbours(Policy(path)).send("GET", "/stacks?global_tenant=true", f"auditor@{OWN}", OWN).json()["stacks"]
    assert {each["project"] for each in shown} == {OWN, OTHER}


# -- stack users -------------------------------------------------------------------------------------------------------


def test_stack_users_reach_their_resource_alone(both: Neighbours) -> None:
    mine = both.things[OWN]
    me, stack = f"heat_stack_user/{OWN}-server@{mine.users}", f"/stacks/web/{mine.stack_id}"
    found = both.send("GET", "/stacks/web", me, mine.users)
    assert (found.status_code, f"/v1/{OWN}{stack}" in found.headers["location"]) == (302, True)
    assert both.send("GET", f"{stack}/resources/handle/metadata", me, mine.users).status_code == 200
    assert both.send("POST", f"{stack}/resources/handle/signal", me, mine.users, {"id": "1"}).status_code == 200
    metadata = both.send("GET", f"/software_deployments/metadata/{mine.handle}", me, mine.users)
    assert [each["id"] for each in metadata.json()["metadata"]] == [f"{OWN}-deployed"]
    assert refused(both.send("GET", f"{stack}/resources/text/metadata", me, mine.users), "text")
    assert refused(both.send("POST", f"{stack}/resources/text/signal", me, mine.users), "text")
    assert refused(both.send("GET", f"{stack}/resources/handle", me, mine.users), "show")
    assert refused(both.send("GET", stack, me, mine.users), "show")
    assert refused(both.send("GET", "/software_deployments/metadata/another", me, mine.users), "another")


def test_stack_users_do_not_reach_other_projects(both: Neighbours) -> None:
    mine, there = both.things[OWN], both.things[OTHER]
    stranger = f"heat_stack_user/nobody@{mine.users}"
    path = f"/stacks/web/{mine.stack_id}/resources/handle/metadata"
    assert refused(both.send("GET", path, stranger, mine.users), "handle")
    me = f"heat_stack_user/{OWN}-server@{mine.users}"
    theirs = f"/stacks/web/{there.stack_id}/resources/handle/metadata"
    assert both.send("GET", theirs, me, mine.users).status_code == 404
    assert both.send("GET", f"/software_deployments/metadata/{there.handle}", me, mine.users).status_code == 403
    for project in (OWN, OTHER, there.users):
        assert both.send("GET", theirs, me, project).json()["error"]["type"] == "InvalidTenant"


# -- resource types ----------------------------------------------------------------------------------------------------


def body(resources: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"stack_name": "typed", "template": {**TEMPLATE, "resources": resources, "outputs": {}}, **more}


@pytest.fixture
def fresh() -> Neighbours:
    return Neighbours()


WAYS = {
    "in the template": body({"a": FLAVOR}),
    "in a group": body({"a": {"type": "OS::Heat::ResourceGroup", "properties": {"resource_def": FLAVOR}}}),
    "in a chain": body(
        {
            "a": {
                "type": "OS::Heat::ResourceChain",
                "properties": {"resources": ["OS::Nova::Flavor"], "resource_properties": FLAVOR["properties"]},
            }
        }
    ),
    "under another name": body(
        {"a": {**FLAVOR, "type": "Our::Size"}},
        environment={"resource_registry": {"Our::Size": "OS::Nova::Flavor"}},
    ),
    "adopted": body(
        {"a": FLAVOR},
        adopt_stack_data={"action": "CREATE", "resources": {}, "template": {**TEMPLATE, "resources": {"a": FLAVOR}}},
    ),
    "in a nested template": body(
        {"a": {"type": "size.yaml"}},
        files={"size.yaml": str({"heat_template_version": "2021-04-16", "resources": {"f": FLAVOR}})},
    ),
}


@pytest.mark.heavy
@pytest.mark.parametrize("way", WAYS)
def test_stacks_with_types_for_admins(fresh: Neighbours, way: str) -> None:
    """In whatever way the type comes in, only an admin may make, change and delete such a stack."""
    sent = WAYS[way]
    preview = fresh.send("POST", "/stacks/preview", READER, OWN, sent)
    assert refused(preview, "OS::Nova::Flavor"), preview.text
    assert refused(fresh.send("POST", "/stacks", MEMBER, OWN, sent), "OS::Nova::Flavor")
    assert refused(fresh.send("POST", "/validate", MEMBER, OWN, sent), "OS::Nova::Flavor")
    web = f"/stacks/web/{fresh.things[OWN].stack_id}"
    for method, path in (("PUT", web), ("PATCH", web), ("PUT", f"{web}/preview")):
        assert refused(fresh.send(method, path, MEMBER, OWN, sent), "OS::Nova::Flavor")
    made = fresh.send("POST", "/stacks", ADMIN, OWN, sent)
    assert made.status_code == 201, made.text
    fresh.service.work()
    typed = f"/stacks/typed/{made.json()['stack']['id']}"
    assert refused(fresh.send("DELETE", typed, MEMBER, OWN), "OS::Nova::Flavor")
    assert refused(fresh.send("PUT", typed, MEMBER, OWN, {"template": TEMPLATE}), "OS::Nova::Flavor"), "it would go"
    for action in ("suspend", "resume"):
        assert refused(fresh.send("POST", f"{typed}/actions", MEMBER, OWN, {action: None}), "OS::Nova::Flavor")
    assert refused(fresh.send("POST", f"{typed}/snapshots/any/restore", MEMBER, OWN), "OS::Nova::Flavor")
    assert fresh.send("GET", typed, READER, OWN).status_code == 200
    assert fresh.send("DELETE", typed, ADMIN, OWN).status_code == 204


def test_a_type_that_a_template_stands_for_is_for_all_projects(fresh: Neighbours) -> None:
    environment = {"resource_registry": {"OS::Nova::Flavor": "flavor.yaml"}}
    declared = {name: {"type": "number"} for name in ("ram", "vcpus", "disk")}
    inner = str({"heat_template_version": "2021-04-16", "parameters": declared, "resources": {}})
    sent = body({"a": FLAVOR}, environment=environment, files={"flavor.yaml": inner})
    made = fresh.send("POST", "/stacks", MEMBER, OWN, sent)
    assert made.status_code == 201, made.text
    fresh.service.work()
    assert fresh.send("DELETE", f"/stacks/typed/{made.json()['stack']['id']}", MEMBER, OWN).status_code == 204


def test_types_for_admins_are_not_listed(both: Neighbours) -> None:
    for caller, seen in ((READER, False), (ADMIN, True)):
        listed = both.send("GET", "/resource_types", caller, OWN).json()["resource_types"]
        assert ("OS::Nova::Flavor" in listed, "OS::Heat::RandomString" in listed) == (seen, True)
        shown = both.send("GET", "/resource_types/OS::Nova::Flavor", caller, OWN)
        assert shown.status_code == (200 if seen else 403)
    assert refused(both.send("GET", "/resource_types/OS::Nova::Flavor/template", MEMBER, OWN), "OS::Nova::Flavor")
