"""How many resources a stack with all that is nested in it may have is held at run time, too."""

from typing import Any

from homeostat.convergence.jobs.conductor import run_pass
from tests.component.running import Service, group

COUNTED = """
heat_template_version: 2018-08-31
parameters: {count: {type: number}}
resources:
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: {get_param: count}, resource_def: {type: OS::Heat::RandomString}}
"""
SURPRISING = """
heat_template_version: 2018-08-31
parameters: {count: {type: number}}
resources:
  n: {type: OS::Heat::Value, properties: {value: {get_param: count}}}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: {get_attr: [n, value]}, resource_def: {type: OS::Heat::RandomString}}
"""
FILES = {"counted.yaml": COUNTED, "surprising.yaml": SURPRISING}
MEMBER = {"type": "OS::Heat::RandomString"}


def later(count: int) -> dict[str, Any]:
    """A value that nobody knows before it is there."""
    return {"type": "OS::Heat::Value", "properties": {"value": count}}


OF = {"get_attr": ["n", "value"]}


def limited(resources_max: int) -> Service:
    service = Service()
    service.nested_stacks.trees.resources_max = resources_max
    return service


def test_a_count_that_comes_later_is_held_to_the_quota() -> None:
    service = limited(50)
    stack_id = service.create({"n": later(10**12), "grp": group(OF, MEMBER)})
    assert service.states(stack_id) == {"n": "CREATE_COMPLETE", "grp": "CREATE_FAILED"}
    assert "would have 1000000000002 resources, at most 50 are allowed" in service.row(stack_id, "grp").reason
    assert len(service.stacks()) == 1
    service.update(stack_id, {"n": later(48), "grp": group(OF, MEMBER)})
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_nested_stacks_count_together() -> None:
    service = limited(60)
    inner = {"type": "surprising.yaml", "properties": {"count": OF}}
    stack_id = service.create({"n": later(10), "grp": group(OF, inner)}, files=FILES)
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "at most 60 are allowed" in service.stack(stack_id).reason
    assert sum(len(service.rows(each.id)) for each in service.stacks()) <= 60
    assert {each.status for each in service.stacks()} == {"FAILED"}
    service.delete(stack_id)
    service.rest()
    assert all(each.deleted_at is not None for each in service.stacks())


def test_what_shrinks_makes_room() -> None:
    service = limited(50)
    stack_id = service.create({"n": later(40), "grp": group(OF, MEMBER)})
    service.update(stack_id, {"n": later(2), "grp": group(OF, MEMBER)})
    service.live(10.0)
    more = {
        "n": later(2),
        "grp": group(OF, MEMBER),
        "m": later(40),
        "more": group({"get_attr": ["m", "value"]}, MEMBER),
    }
    service.update(stack_id, more)
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    more["n"] = later(20)
    service.update(stack_id, more)
    assert service.state(stack_id) == "UPDATE_FAILED"


def test_once_a_tree_is_too_large_nothing_more_is_made_in_it() -> None:
    """The refusal does not wait until the nested stacks that were allowed are made."""
    service = limited(100)
    inner = {"type": "surprising.yaml", "properties": {"count": OF}}
    stack_id = service.begin({"n": later(20), "grp": group(OF, inner)}, files=FILES)
    while service.state(stack_id) == "CREATE_IN_PROGRESS":
        run_pass(service.reconciler, service.claim())
    assert "would have 1" in service.stack(stack_id).reason
    assert "--resources-max" in service.stack(stack_id).reason
    before = sorted(each.id for each in service.stacks())
    service.rest()
    assert sorted(each.id for each in service.stacks()) == before
    assert not any(row.type == "OS::Heat::RandomString" for each in service.stacks() for row in service.rows(each.id))
    assert service.state(stack_id) == "CREATE_FAILED"
    service.update(stack_id, {"n": later(2), "grp": group(OF, inner)}, files=FILES)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_a_group_of_groups_is_counted_before_any_of_it_is_made() -> None:
    service = limited(1000)
    stack_id = service.create({"n": later(40), "grp": group(OF, group(10, group(2, MEMBER)))})
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "would have 1242 resources" in service.row(stack_id, "grp").reason
    assert len(service.stacks()) == 1
    inner = {"type": "counted.yaml", "properties": {"count": OF}}
    stack_id = service.create({"n": later(40), "grp": group(OF, inner)}, name="templates", files=FILES)
    assert "would have 1682 resources" in service.row(stack_id, "grp").reason


def test_a_tree_that_grows_too_large_goes_back_to_what_it_was() -> None:
    service = limited(50)
    stack_id = service.create({"n": later(2), "grp": group(OF, MEMBER)}, disable_rollback=False)
    inner = {"type": "surprising.yaml", "properties": {"count": OF}}
    more = {"n": later(20), "grp": group(OF, inner)}
    service.update(stack_id, more, files=FILES, disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert sum(len(service.rows(each.id)) for each in service.stacks() if each.deleted_at is None) == 4


def test_a_stack_at_rest_is_left_alone_by_a_group_in_it_that_grows_too_large() -> None:
    """Only what is being made by the same request ends."""
    service = limited(50)
    grown = {"type": "counted.yaml", "properties": {"count": OF}}
    stack_id = service.create({"n": later(20), "m": grown, "one": group(3, MEMBER)}, files=FILES)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    service.update(stack_id, {"n": later(60), "m": grown, "one": group(3, MEMBER)}, files=FILES)
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    (one,) = [each for each in service.stacks() if each.parent_name == "one"]
    assert (one.action, one.status) == ("CREATE", "COMPLETE")
