"""How many resources a stack with all that is nested in it may have is held at run time, too."""

from typing import Any

from tests.unit.convergence.running import Service, group

COUNTED = """
heat_template_version: 2018-08-31
parameters: {count: {type: number}}
resources:
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: {get_param: count}, resource_def: {type: OS::Heat::RandomString}}
"""
MEMBER = {"type": "OS::Heat::RandomString"}


def later(count: int) -> dict[str, Any]:
    """A value that nobody knows before it is there."""
    return {"type": "OS::Heat::Value", "properties": {"value": count}}


OF = {"get_attr": ["n", "value"]}


def limited(resources_max: int) -> Service:
    service = Service()
    service.children.resources_max = resources_max
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
    inner = {"type": "counted.yaml", "properties": {"count": OF}}
    stack_id = service.create({"n": later(10), "grp": group(OF, inner)}, files={"counted.yaml": COUNTED})
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "at most 60 are allowed" in service.stack(stack_id).reason
    assert sum(len(service.rows(each.id)) for each in service.stacks()) <= 60
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
