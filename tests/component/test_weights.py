"""What a template makes of values at run time weighs something: what is too heavy fails where it is made."""

from typing import Any

import pytest

from homeostat.convergence.nested_stacks import attributes, group_revisions
from homeostat.planner import evaluation_weight
from homeostat.templates import tree
from tests.component.running import Service, group, template

LIMIT = 100_000


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same limits, reached in less time."""
    monkeypatch.setattr(tree, "VALUE_MAX", LIMIT)
    monkeypatch.setattr(evaluation_weight, "VALUE_MAX", LIMIT)
    monkeypatch.setattr(evaluation_weight, "VALUES_MAX", 3 * LIMIT)


def value(content: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::Value", "properties": {"value": content, **properties}}


def attribute(name: str) -> dict[str, Any]:
    return {"get_attr": [name, "value"]}


def doubling(double: Any, first: Any, length: int = 40, **properties: Any) -> dict[str, Any]:
    """Values each of which holds the one before twice."""
    found = {"v0": value(first, **properties)}
    for number in range(1, length):
        found[f"v{number}"] = value(double(attribute(f"v{number - 1}")), **properties)
    return found


DOUBLINGS = {
    "map": doubling(lambda one: {"a": one, "b": one}, {"a": 1}, type="json"),
    "list": doubling(lambda one: [one, one], ["text"]),
    "list_concat": doubling(lambda one: {"list_concat": [one, one]}, ["text"]),
    "list_join": doubling(lambda one: {"list_join": ["", [one, one]]}, "text"),
    "str_replace": doubling(lambda one: {"str_replace": {"template": "xx", "params": {"x": one}}}, "text"),
    "repeat": doubling(lambda one: {"repeat": {"template": ["x", "x"], "for_each": {"x": one}}}, ["t"], 40),
    "yaql": doubling(lambda one: {"yaql": {"expression": "[$.data, $.data]", "data": one}}, ["text"]),
}


@pytest.mark.parametrize("resources", DOUBLINGS.values(), ids=DOUBLINGS)
def test_what_doubles_fails_where_it_becomes_too_much(resources: dict[str, Any]) -> None:
    service = Service()
    stack_id = service.create(resources)
    assert service.state(stack_id) == "CREATE_FAILED"
    (failed,) = [row for row in service.rows(stack_id) if row.status == "FAILED"]
    assert failed.name in service.stack(stack_id).reason
    assert len(failed.reason) < 1000
    service.delete(stack_id)
    assert service.state(stack_id) == "DELETE_COMPLETE"


def test_the_failure_names_the_place_and_the_limit() -> None:
    service = Service()
    stack_id = service.create(DOUBLINGS["map"])
    (failed,) = [row for row in service.rows(stack_id) if row.status == "FAILED"]
    assert f"resources.{failed.name}.properties.value.a" in failed.reason or "resources" in failed.reason
    assert str(LIMIT) in failed.reason


def test_what_nests_deeper_and_deeper_fails() -> None:
    resources = doubling(lambda one: [one], ["text"], 150)
    service = Service()
    stack_id = service.create(resources)
    (failed,) = [row for row in service.rows(stack_id) if row.status == "FAILED"]
    assert "nested more than 100 levels deep" in failed.reason


def test_metadata_is_weighed_too() -> None:
    service = Service()
    heavy = {"type": "OS::Heat::TestResource", "metadata": {"all": [attribute("v")] * 11}}
    stack_id = service.create({"v": value("x" * 10_000), "heavy": heavy})
    assert service.states(stack_id) == {"v": "CREATE_COMPLETE", "heavy": "CREATE_FAILED"}


def test_many_that_are_heavy_are_too_much_together() -> None:
    service = Service()
    many = {f"v{number}": value([attribute("one")]) for number in range(5)}
    stack_id = service.create({"one": value("x" * 90_000), **many})
    states = list(service.states(stack_id).values())
    assert states.count("CREATE_COMPLETE") == 4, "the first is written out in the template, and three more fit"
    failed = next(row for row in service.rows(stack_id) if row.status == "FAILED")
    assert "make several stacks of it" in failed.reason


def test_a_heavy_one_may_be_updated_again_and_again() -> None:
    """Its weight before does not count."""
    service = Service()
    resources = {"one": value("x" * 90_000), "two": value([attribute("one")]), "three": value([attribute("one")])}
    stack_id = service.create(resources)
    for number in range(6):
        service.update(stack_id, {**resources, "one": value(str(number) * 90_000)})
        assert service.state(stack_id) == "UPDATE_COMPLETE", service.stack(stack_id).reason


def test_what_is_written_out_in_the_template_is_weighed_by_its_own_limits() -> None:
    service = Service()
    stack_id = service.create({f"v{number}": value("x" * 90_000) for number in range(5)})
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_parameters_and_files_are_weighed_when_the_template_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from homeostat.model.errors import Rejected
    from homeostat.services.pipeline.request import StackRequest

    monkeypatch.setattr(tree, "MADE_MAX", LIMIT)
    big = {"parameters": {"big": {"type": "json"}}}
    resources = {f"v{number}": value({"get_param": "big"}) for number in range(20)}
    with pytest.raises(Rejected, match=f"make more than {LIMIT} values"):
        Service().stack_service.create(
            "p", None, "web", StackRequest({**template(resources), **big}, {"big": ["x" * 10_000]})
        )


INNER = """
heat_template_version: 2018-08-31
parameters: {given: {type: json}}
outputs:
  twice: {value: [{get_param: given}, {get_param: given}]}
"""


def test_outputs_of_nested_stacks_that_double_fail_where_they_become_too_much() -> None:
    resources = {"s0": {"type": "inner.yaml", "properties": {"given": ["text"]}}}
    for number in range(1, 20):
        given = {"get_attr": [f"s{number - 1}", "twice"]}
        resources[f"s{number}"] = {"type": "inner.yaml", "properties": {"given": given}}
    service = Service()
    stack_id = service.create(resources, files={"inner.yaml": INNER})
    assert service.state(stack_id) == "CREATE_FAILED"
    service.delete(stack_id)
    assert service.state(stack_id) == "DELETE_COMPLETE"


def test_the_attributes_of_a_nested_stack_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its members is light enough."""
    monkeypatch.setattr(attributes, "SHOWN_MAX", LIMIT)
    member = value("x" * 9_000)
    service = Service()
    reader = value({"get_attr": ["grp", "refs"]})
    stack_id = service.create({"grp": group(20, member), "reader": reader})
    assert service.states(stack_id) == {"grp": "CREATE_COMPLETE", "reader": "CREATE_FAILED"}
    assert f"resources.grp: what is inside of it weighs more than {LIMIT}" in (service.row(stack_id, "reader").reason)
    service.update(stack_id, {"grp": group(5, member), "reader": reader})
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_members_that_are_heavy_are_too_much_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_revisions, "MEMBERS_MAX", LIMIT)
    service = Service()
    stack_id = service.create({"grp": group(20, value("x" * 9_000))})
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "20 members at once" in service.row(stack_id, "grp").reason
    service.update(stack_id, {"grp": group(10, value("x" * 9_000))})
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_the_first_that_is_too_heavy_fails_the_stack_before_the_next_is_tried() -> None:
    """Each of a thousand would cost as much time."""
    service = Service()
    resources = doubling(lambda one: [one, one], ["text"], 16)
    resources |= {f"w{number}": value([attribute("v15"), attribute("v15")]) for number in range(50)}
    stack_id = service.create(resources)
    states = list(service.states(stack_id).values())
    assert states.count("CREATE_FAILED") == 1
