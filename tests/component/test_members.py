"""Which members a group has: removed by name, shrunk and grown again, nested stacks, and deaths in between."""

from typing import Any

import pytest

from homeostat.clouds.port import Operation
from homeostat.clouds.simulated import CloudBehaviour
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.request import StackRequest
from tests.component.running import PROJECT, Service, double, group, server, template

PART = """
heat_template_version: 2018-08-31
parameters: {n: {type: string}}
resources:
  s: {type: OS::Nova::Server, properties: {image: i, flavor: f, name: {get_param: n}}}
outputs:
  OS::stack_id: {value: {get_resource: s}}
"""
PARTS = {"part.yaml": PART}
"""A template whose reference is the server in it."""


def one(kind: str) -> dict[str, Any]:
    """A definition of members that are servers called m<number>, bare or within a template."""
    return server(name="m%index%") if kind == "servers" else {"type": "part.yaml", "properties": {"n": "m%index%"}}


def grp(count: int, kind: str, *removed: Any, mode: str = "append") -> dict[str, Any]:
    policies = [{"resource_list": list(removed)}] if removed else []
    return {"grp": group(count, one(kind), removal_policies=policies, removal_policies_mode=mode)}


def names(service: Service) -> list[str]:
    return sorted(each["name"] for each in service.cloud.things("server").values())


def created(count: int, kind: str, behaviour: CloudBehaviour | None = None) -> tuple[Service, str]:
    service = Service(behaviour)
    stack_id = service.create(grp(count, kind), files=PARTS)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    return service, stack_id


def update(service: Service, stack_id: str, resources: dict[str, Any]) -> None:
    service.update(stack_id, resources, files=PARTS)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


KINDS = pytest.mark.parametrize("kind", ["servers", "nested stacks"])


@KINDS
@pytest.mark.parametrize("listed", [["1"], [1], ["server-2"], ["1", "server-2", 1]], ids=str)
def test_a_member_is_removed_by_name_number_or_reference(kind: str, listed: list[Any]) -> None:
    service, stack_id = created(3, kind)
    update(service, stack_id, grp(2, kind, *listed))
    assert names(service) == ["m0", "m2"]


@KINDS
def test_a_removed_member_is_made_up_for_when_the_count_stays(kind: str) -> None:
    service, stack_id = created(3, kind)
    update(service, stack_id, grp(3, kind, 0))
    assert names(service) == ["m1", "m2", "m3"]


@KINDS
def test_names_removed_one_after_the_other_stay_out(kind: str) -> None:
    service, stack_id = created(3, kind)
    update(service, stack_id, grp(3, kind, 0))
    update(service, stack_id, grp(3, kind, 2))
    assert names(service) == ["m1", "m3", "m4"]


@KINDS
def test_mode_update_forgets_what_was_removed_before(kind: str) -> None:
    service, stack_id = created(3, kind)
    update(service, stack_id, grp(3, kind, 0))
    update(service, stack_id, grp(3, kind, 2, mode="update"))
    assert names(service) == ["m0", "m1", "m3"]


@KINDS
def test_shrinking_takes_the_highest_and_growing_gives_their_names_again(kind: str) -> None:
    service, stack_id = created(4, kind)
    kept = service.servers()[:2]
    update(service, stack_id, grp(2, kind))
    assert names(service) == ["m0", "m1"]
    update(service, stack_id, grp(4, kind))
    assert names(service) == ["m0", "m1", "m2", "m3"]
    assert set(kept) <= set(service.servers())


@KINDS
def test_shrinking_and_growing_around_removed_names(kind: str) -> None:
    service, stack_id = created(4, kind)
    update(service, stack_id, grp(2, kind, 1))
    assert names(service) == ["m0", "m2"]
    update(service, stack_id, grp(1, kind))
    assert names(service) == ["m0"]
    update(service, stack_id, grp(3, kind))
    assert names(service) == ["m0", "m2", "m3"]


def test_the_removed_names_can_be_read() -> None:
    service, stack_id = created(3, "servers")
    reader = {"t": double(value={"list_join": [",", {"get_attr": ["grp", "removed_rsrc_list"]}]})}
    update(service, stack_id, {**grp(2, "servers", 2, 0), **reader})
    assert service.row(stack_id, "t").properties["value"] == "2,0"


def test_a_removal_carried_out_twice_removes_one_member() -> None:
    """The reference names the member; after the first time nobody has that reference any more."""
    service, stack_id = created(3, "servers", CloudBehaviour(delete_s=1.0))
    service.stack_service.update(stack_id, StackRequest(template(grp(3, "servers", "server-1"))))
    execute, calls = service.nested_stacks.execute, []

    def dies_afterwards(*arguments: Any) -> Any:
        answer = execute(*arguments)
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.nested_stacks, "execute", dies_afterwards)
        with pytest.raises(KeyboardInterrupt):
            run_pass(service.reconciler, service.claim())
        service.rest()
    assert len(calls) > 1
    assert names(service) == ["m1", "m2", "m3"]


def test_a_rollback_makes_up_for_a_member_that_was_removed_by_name() -> None:
    """Its name stays out of use: that a user asked for its removal is remembered."""
    service, stack_id = created(3, "servers")
    failing = {**grp(3, "servers", 0, mode="update"), "t": {**double(fail=True), "depends_on": "grp"}}
    service.update(stack_id, failing, disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert names(service) == ["m1", "m2", "m3"]


def test_members_in_trouble_are_healed_and_not_preferred_when_shrinking() -> None:
    service, stack_id = created(3, "servers")
    service.cloud.change("server-1", status="error")
    service.cloud.behaviour.quota = 0
    service.live(65)
    assert service.states(service.child().id)["0"] == "CREATE_FAILED"
    service.cloud.behaviour.quota = None
    update(service, stack_id, grp(2, "servers"))
    assert names(service) == ["m0", "m1"]


def test_a_member_that_cannot_go_does_not_stop_the_others() -> None:
    service, stack_id = created(4, "servers")
    service.cloud.operate("server", [Operation("server-3", "lock")])
    service.update(stack_id, grp(1, "servers"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert "resources.grp.resources[2]" in service.stack(stack_id).reason
    service.cloud.operate("server", [Operation("server-3", "unlock")])
    update(service, stack_id, grp(1, "servers"))
    assert names(service) == ["m0"]


# -- chains ----------------------------------------------------------------------------------------------------------


def chain(*types: str, concurrent: bool = False, **properties: Any) -> dict[str, Any]:
    return {
        "type": "OS::Heat::ResourceChain",
        "properties": {"resources": list(types), "concurrent": concurrent, "resource_properties": properties},
    }


TEST = "OS::Heat::TestResource"


def acted(service: Service, action: str) -> list[str]:
    return [line for line in service.story(service.child().id) if line[0].isdigit() and action in line]


def test_members_of_a_chain_are_made_one_after_the_other() -> None:
    service = Service()
    stack_id = service.create({"c": chain(TEST, TEST, TEST, value="v", wait_secs=2)})
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert acted(service, "CREATE") == [f"{n} CREATE_{s}" for n in "012" for s in ("IN_PROGRESS", "COMPLETE")]
    service.delete(stack_id)
    service.rest()
    gone = [line for line in service.story(service.stacks()[-1].id) if line[0].isdigit() and "DELETE" in line]
    assert gone == [f"{n} DELETE_{s}" for n in "210" for s in ("IN_PROGRESS", "COMPLETE")]


def test_members_of_a_concurrent_chain_are_made_side_by_side() -> None:
    service = Service()
    service.create({"c": chain(TEST, TEST, concurrent=True, wait_secs=2)})
    assert acted(service, "CREATE") == ["0 CREATE_IN_PROGRESS", "1 CREATE_IN_PROGRESS"]


def test_a_chain_fails_at_its_member_and_later_ones_are_not_begun() -> None:
    service = Service()
    stack_id = service.create({"c": chain(TEST, TEST, fail=True)})
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "resources.c.resources[0]: Test Resource failed 0" in service.stack(stack_id).reason
    assert service.states(service.child().id) == {"0": "CREATE_FAILED"}


def test_a_chain_grows_shrinks_and_changes_types_in_place() -> None:
    service = Service()
    stack_id = service.create({"c": chain(TEST, TEST, value="v")})
    first = service.row(service.child().id, "0").key
    service.update(stack_id, {"c": chain(TEST, "OS::Heat::None", TEST, value="v")})
    service.rest()
    assert {each.name: each.type for each in service.rows(service.child().id)} == {
        "0": TEST,
        "1": "OS::Heat::None",
        "2": TEST,
    }
    assert service.row(service.child().id, "0").key == first
    service.update(stack_id, {"c": chain(TEST, value="v")})
    service.rest()
    assert service.states(service.child().id) == {"0": "CREATE_COMPLETE"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["refs"], "KEYS"),
        (["output"], ["v", "v"]),
        (["attributes", "output"], {"0": "v", "1": "v"}),
        (["resource.1.output"], "v"),
        (["resource.1", "output"], "v"),
    ],
    ids=str,
)
def test_attributes_of_a_chain(path: list[str], value: Any) -> None:
    service = Service()
    reader = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["c", *path]}}}
    stack_id = service.create({"c": chain(TEST, TEST, value="v"), "t": reader})
    service.rest()
    if value == "KEYS":
        value = [service.row(service.child().id, name).key for name in "01"]
    assert service.row(stack_id, "t").properties["value"] == value


def test_a_chain_of_templates_follows_an_edited_file() -> None:
    service = Service()
    text = "heat_template_version: 2018-08-31\nresources:\n  t: {type: OS::Heat::TestResource, properties: {value: %s}}"
    stack_id = service.create({"c": chain("a.yaml", "b.yaml")}, files={"a.yaml": text % "1", "b.yaml": text % "2"})
    service.rest()
    children = [each.id for each in service.stacks()]
    service.update(stack_id, {"c": chain("a.yaml", "b.yaml")}, files={"a.yaml": text % "1", "b.yaml": text % "3"})
    service.rest()
    assert [each.id for each in service.stacks()] == children, "nothing is made anew"
    leaves = [each for each in service.stacks() if each.depth == 2]
    assert sorted(service.row(each.id, "t").properties["value"] for each in leaves) == ["1", "3"]


WRONG: list[tuple[dict[str, Any], str]] = [
    (chain(TEST, "OS::No::Such"), r"resources.c.properties.resources[1].type: The Resource Type (OS::No::Such)"),
    (chain(TEST, size=1), "resources.c.properties.resources[0].properties: Unknown Property size"),
    (chain(""), "resources.c.properties.resources[0]: the name of a resource type is needed"),
    ({"type": "OS::Heat::ResourceChain"}, "Property resources not assigned"),
]


@pytest.mark.parametrize(("resource", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_chain_is_refused_naming_the_place(resource: dict[str, Any], message: str) -> None:
    service = Service()
    with pytest.raises(Rejected) as refused:
        service.stack_service.create(PROJECT, None, "web", StackRequest(template({"c": resource})))
    assert message in str(refused.value)
