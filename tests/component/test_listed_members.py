"""The own stack of a group, updated with a template that lists its members (ADR 0096)."""

import copy
from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.desired.texts import template_text
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.stacks import revisions
from tests.component.maintained import lock
from tests.component.running import Service, double, group, template

FILE = "member.yaml"
FILES = {
    FILE: """
heat_template_version: 2018-08-31
parameters: {flavor: {type: string}, image: {type: string, default: i}}
resources:
  vm: {type: OS::Nova::Server, properties: {flavor: {get_param: flavor}, image: {get_param: image}}}
outputs: {OS::stack_id: {value: {get_resource: vm}}}
"""
}


def scaling(size: int, member: dict[str, Any], **properties: Any) -> dict[str, Any]:
    bounds = {"min_size": 0, "max_size": 9, "desired_capacity": size}
    return {"type": "OS::Heat::AutoScalingGroup", "properties": {**bounds, "resource": member, **properties}}


def of_file(flavor: str) -> dict[str, Any]:
    return {"type": FILE, "properties": {"flavor": flavor}}


def created(resource: dict[str, Any], **options: Any) -> tuple[Service, str]:
    service = Service(CloudBehaviour(build_s=1.0, delete_s=1.0))
    stack_id = service.create({"grp": resource}, **options)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    return service, stack_id


def shown(service: Service) -> Any:
    """The template of the group's own stack, as a user gets it."""
    child = service.child()
    with service.db.read() as tx:
        return copy.deepcopy(template_text(revisions.content_of(tx, child.id, child.revision), {}))


def send(service: Service, changed: Any, *, patch: bool = True, **options: Any) -> None:
    service.stack_service.update(service.child().id, StackRequest(changed, **options), patch=patch)
    service.work()


def handles(service: Service) -> dict[str, str]:
    return {row.name: row.handle for row in service.rows(service.child().id) if row.action != "DELETE"}


def values(service: Service) -> dict[str, Any]:
    return {row.name: row.properties["value"] for row in service.rows(service.child().id) if row.action != "DELETE"}


def flavors(service: Service) -> list[str]:
    live = [each.id for each in service.stacks() if each.depth == 2 and each.deleted_at is None]
    return [row.properties["flavor"] for each in live for row in service.rows(each)]


@pytest.mark.parametrize("patch", [True, False])
@pytest.mark.parametrize("kind", [group, scaling])
def test_a_template_sent_back_as_it_was_changes_nothing(kind: Any, patch: bool) -> None:
    service, stack_id = created(kind(3, double(value="a")))
    before, rows = handles(service), len(service.events(service.child().id, "1"))
    send(service, shown(service), patch=patch)
    service.rest()
    assert service.state(service.child().id) == "UPDATE_COMPLETE"
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert handles(service) == before
    assert len(service.events(service.child().id, "1")) == rows
    with service.db.read() as tx:
        kept = revisions.content_of(tx, service.child().id, service.child().revision).template
    assert "own" not in kept


@pytest.mark.parametrize("kind", [group, scaling])
def test_one_member_is_defined_otherwise_until_the_group_is(kind: Any) -> None:
    service, stack_id = created(kind(3, double(value="a")))
    before = handles(service)
    changed = shown(service)
    changed["resources"]["1"]["properties"]["value"] = "b"
    send(service, changed)
    service.rest()
    assert values(service) == {"0": "a", "1": "b", "2": "a"}
    assert shown(service)["resources"] == changed["resources"]
    service.live(400)
    service.update(stack_id, {"grp": kind(3, double(value="a")), "other": double()})
    service.rest()
    assert values(service) == {"0": "a", "1": "b", "2": "a"}, "nobody has put the old definition back"
    service.update(stack_id, {"grp": kind(4, double(value="a"))})
    service.rest()
    assert values(service) == {"0": "a", "1": "b", "2": "a", "3": "a"}, "a new size is no new definition"
    service.update(stack_id, {"grp": kind(4, double(value="c"))})
    service.rest()
    assert values(service) == dict.fromkeys("0123", "c")
    assert {name: handle for name, handle in handles(service).items() if name != "3"} == before


def test_a_package_is_changed_member_by_member_and_the_update_of_the_whole_finds_it_done() -> None:
    """As a rolling change of a package does it: templates as members, one sent after the other, then the parent."""
    service, stack_id = created(scaling(3, of_file("small")), files=FILES)
    servers = service.servers()
    changed = shown(service)
    for number, name in enumerate(("2", "1", "0"), 1):
        changed["resources"][name]["properties"]["flavor"] = "large"
        send(service, changed)
        service.rest()
        assert sorted(flavors(service)) == ["large"] * number + ["small"] * (3 - number)
        assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.servers() == servers, "resized in place"
    inside = {each.id: each.revision for each in service.stacks() if each.depth == 2}
    service.update(stack_id, {"grp": scaling(3, of_file("large"))}, files=FILES)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert {each.id: each.revision for each in service.stacks() if each.depth == 2} == inside, "nothing was left to do"


def test_a_member_that_is_not_listed_leaves_and_its_name_is_not_used_again() -> None:
    service, stack_id = created(scaling(3, double(value="a")))
    before = handles(service)
    changed = shown(service)
    del changed["resources"]["1"]
    send(service, changed)
    service.rest()
    assert handles(service) == {name: before[name] for name in ("0", "2")}
    service.update(stack_id, {"grp": scaling(3, double(value="a"))})
    service.live(1)
    service.update(stack_id, {"grp": scaling(4, double(value="a"))})
    service.rest()
    assert handles(service).keys() == {"0", "2", "3", "4"}


def test_one_that_takes_a_name_again_has_the_definition_of_the_group() -> None:
    service, stack_id = created(group(3, double(value="a")))
    changed = shown(service)
    changed["resources"]["2"]["properties"]["value"] = "b"
    send(service, changed)
    service.rest()
    for size in (2, 3):
        service.update(stack_id, {"grp": group(size, double(value="a"))})
        service.rest()
    assert values(service) == dict.fromkeys("012", "a")


def test_a_new_member_is_made_as_it_is_listed() -> None:
    service, _ = created(scaling(1, double(value="a")))
    changed = shown(service)
    changed["resources"]["1"] = {"type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "v"}}}
    send(service, changed | {"parameters": {"v": {"type": "string"}}}, parameters={"v": "b"})
    service.rest()
    assert values(service) == {"0": "a", "1": "b"}


def test_members_go_in_the_batches_of_the_group() -> None:
    service, _ = created(scaling(3, double(value="a", wait_secs=4)))
    changed = shown(service)
    for one in changed["resources"].values():
        one["properties"]["value"] = "b"
    send(service, changed)
    assert sorted(values(service).values()) == ["a", "a", "b"], "one after the other, as is the default"
    service.rest()
    assert values(service) == dict.fromkeys("012", "b")


def test_an_update_under_way_goes_on_for_the_members_that_are_listed_as_they_are() -> None:
    service, stack_id = created(scaling(3, double(value="a", wait_secs=4)))
    service.update(stack_id, {"grp": scaling(3, double(value="c", wait_secs=4))})
    assert sorted(values(service).values()) == ["a", "a", "c"]
    changed = shown(service)
    name = min(name for name, one in changed["resources"].items() if one["properties"]["value"] == "a")
    changed["resources"][name]["properties"]["value"] = "b"
    send(service, changed)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert values(service) == {**dict.fromkeys("012", "c"), name: "b"}


def test_batches_that_end_during_the_check_of_a_list_delay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    service, stack_id = created(scaling(3, double(value="a", wait_secs=4)))
    service.update(stack_id, {"grp": scaling(3, double(value="b", wait_secs=4))})
    changed = shown(service)
    changed["resources"]["1"]["properties"]["value"] = "listed"
    pipeline, turns = service.stack_service._pipeline, iter(range(9))
    check = pipeline.run

    def check_slowly(*args: Any, **options: Any) -> Any:
        if next(turns) == 0:
            service.rest()
        return check(*args, **options)

    monkeypatch.setattr(pipeline, "run", check_slowly)
    send(service, changed)
    service.rest()
    assert next(turns) == 2
    assert values(service)["1"] == "listed"


def test_a_worker_that_dies_carries_it_out_once() -> None:
    service, stack_id = created(scaling(2, of_file("small")), files=FILES)
    changed = shown(service)
    changed["resources"]["0"]["properties"]["flavor"] = "large"
    service.stack_service.update(service.child().id, StackRequest(changed), patch=True)
    service.die_after_nested_act()
    service.rest()
    assert sorted(flavors(service)) == ["large", "small"]
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_what_cannot_be_made_fails_the_group_and_the_next_list_mends_it() -> None:
    service, _ = created(scaling(2, double(value="a")))
    good, bad = shown(service), shown(service)
    bad["resources"]["0"]["properties"] |= {"value": "b", "fail": True}
    send(service, bad)
    service.rest()
    service.live(10)
    assert service.state(service.child().id) == "UPDATE_FAILED"
    send(service, good)
    service.rest()
    service.live(400)
    assert service.state(service.child().id) == "UPDATE_COMPLETE"
    assert values(service) == dict.fromkeys("01", "a")


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"web": double()}, {}, "named by numbers", "a name that is no number"),
    ({"01": double()}, {}, "named by numbers", "a number written otherwise"),
    ({"9": double()}, {}, "below 3", "a number far beyond"),
    ({"0": double(value={"get_resource": "1"}), "1": double()}, {}, "stands alone", "a reference"),
    ({"0": {**double(), "depends_on": "1"}, "1": double()}, {}, "stands alone", "an order"),
    ({"0": double()}, {"outputs": {"o": {"value": 1}}}, "attributes of the group", "outputs"),
    ({"0": double()}, {"parameters": {"p": {"type": "string", "hidden": True}}}, "hidden", "a secret"),
    ({"0": {"type": "OS::Nova::Nothing"}}, {}, "OS::Nova::Nothing", "an unknown type"),
]


@pytest.mark.parametrize(("resources", "sections", "says", "reason"), REFUSED, ids=[each[3] for each in REFUSED])
def test_what_a_group_cannot_hold_is_refused(
    resources: dict[str, Any], sections: dict[str, Any], says: str, reason: str
) -> None:
    service, _ = created(group(2, double(value="a")))
    with pytest.raises(Rejected, match=says):
        send(service, {**template(resources), **sections}, parameters={"p": "x"} if "parameters" in sections else {})
    assert service.child().revision == 1, reason


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"parameters": {"a": 1}}, r"The Parameter \(a\) was not defined in template"),
        ({"files": {"b.yaml": "x"}}, "stack that the group is in"),
        ({"environment": {"resource_registry": {"a": "b"}}}, "stack that the group is in"),
    ],
)
def test_what_is_not_the_groups_own_is_refused(options: dict[str, Any], says: str) -> None:
    service, _ = created(group(2, double(value="a")))
    with pytest.raises(Rejected, match=says):
        send(service, None, **options)


def test_files_that_are_there_already_may_come_along() -> None:
    service, _ = created(scaling(1, of_file("small")), files=FILES)
    changed = shown(service)
    changed["resources"]["0"]["properties"]["flavor"] = "large"
    send(service, changed, patch=False, files=FILES)
    service.rest()
    assert flavors(service) == ["large"]


def test_a_locked_stack_keeps_its_members() -> None:
    service, stack_id = created(group(2, double(value="a")))
    lock(service, stack_id)
    with pytest.raises(Rejected, match="locked"):
        send(service, shown(service))


def test_who_reads_the_group_sees_its_new_members() -> None:
    service = Service()
    size = {"get_attr": ["grp", "current_size"]}
    stack_id = service.create({"grp": scaling(2, double(value="a")), "t": double(value=size)})
    service.rest()
    changed = shown(service)
    del changed["resources"]["0"]
    send(service, changed)
    service.rest()
    service.update(stack_id, {"grp": scaling(1, double(value="a")), "t": double(value=size), "o": double()})
    service.rest()
    assert handles(service).keys() == {"1"}
    assert service.row(stack_id, "t").properties["value"] == "1"


def test_hidden_values_stay_when_the_template_comes_back_with_asterisks() -> None:
    service = Service()
    inner = {"type": FILE, "properties": {"flavor": "small", "image": {"get_param": "secret"}}}
    hidden = {"parameters": {"secret": {"type": "string", "hidden": True}}}
    request = {**template({"grp": scaling(2, inner)}), **hidden}
    stack_id = service.stack_service.create(
        "p", None, "web", StackRequest(request, parameters={"secret": "i"}, files=FILES, disable_rollback=True)
    )
    service.rest()
    changed = shown(service)
    for one in changed["resources"].values():
        one["properties"]["image"] = "******"
    changed["resources"]["1"]["properties"]["flavor"] = "large"
    send(service, changed)
    service.rest()
    assert sorted(flavors(service)) == ["large", "small"]
    assert {one["properties"]["image"] for one in shown(service)["resources"].values()} == {"i"}
    assert service.state(stack_id) == "CREATE_COMPLETE"
