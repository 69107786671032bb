"""The healing policy of a resource in its template: `metadata: {homeostat: {healing: ask}}` (CV13, ADR 0052)."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.model.errors import Rejected
from homeostat.services.actions import ConvergenceSettings
from homeostat.services.marks import MarkRequest, Marks
from tests.component.running import Service, double, group, server

INNER = """
heat_template_version: rocky
resources:
  srv: {type: OS::Nova::Server, properties: {image: i, flavor: small}}
"""


def saying(policy: Any, resource: dict[str, Any] | None = None) -> dict[str, Any]:
    return {**(resource or server()), "metadata": {"homeostat": {"healing": policy}}}


def lost(service: Service, stack_id: str) -> dict[str, str]:
    """What becomes of a stack all of whose servers vanish, one after the other."""
    service.rest()
    for handle in service.servers():
        service.cloud.vanish(handle)
        service.live(90.0)
    return service.states(stack_id)


def switch(service: Service, stack_id: str, **switches: Any) -> None:
    service.actions.switch(stack_id, ConvergenceSettings(**switches))


def test_a_resource_that_says_so_asks_first_and_no_other_does() -> None:
    service = Service()
    stack_id = service.create({"precious": saying("ask"), "cattle": server()})
    assert lost(service, stack_id) == {"precious": "CHECK_FAILED", "cattle": "CREATE_COMPLETE"}
    assert "homeostat converge web precious" in service.row(stack_id, "precious").reason
    service.actions.converge(stack_id, "precious")
    service.live(30.0)
    assert service.states(stack_id) == {"precious": "CREATE_COMPLETE", "cattle": "CREATE_COMPLETE"}


def test_what_vanished_while_it_was_replaced_fails_the_rollback_that_goes_back_to_it() -> None:
    """It hindered nothing, since something was to replace it, and the rollback waited for its time to be over."""
    service = Service(CloudBehaviour(build_s=30.0))
    stack_id = service.create({"srv": saying("ask")})
    service.rest()
    (handle,) = service.servers()
    service.update(stack_id, {"srv": saying("ask", server(key_name="k"))})
    service.cloud.vanish(handle)
    service.live(10.0)
    service.stack_service.cancel(stack_id, roll_back=True)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_FAILED"
    assert "homeostat converge web srv" in service.stack(stack_id).reason


def test_a_template_may_take_it_from_a_parameter_and_take_it_back() -> None:
    service = Service()
    stack_id = service.create({"srv": saying({"if": [{"equals": ["a", "a"]}, "ask", "replace"]})})
    assert lost(service, stack_id) == {"srv": "CHECK_FAILED"}
    service.update(stack_id, {"srv": saying("replace")})
    service.rest()
    assert service.states(stack_id) == {"srv": "CREATE_COMPLETE"}


@pytest.mark.parametrize(
    ("resources", "files"),
    [
        ({"g": saying("ask", group(2))}, {}),
        ({"g": group(2, saying("ask"))}, {}),
        ({"g": saying("ask", {"type": "inner.yaml"})}, {"inner.yaml": INNER}),
        ({"g": saying("ask", {"type": "outer.yaml"})}, {"inner.yaml": INNER, "outer.yaml": "OUTER"}),
    ],
    ids=["a group", "its members", "a nested template", "two levels"],
)
def test_the_setting_of_a_nested_stack_holds_for_all_in_it(resources: dict[str, Any], files: dict[str, str]) -> None:
    if "outer.yaml" in files:
        files = {**files, "outer.yaml": "heat_template_version: rocky\nresources: {inside: {type: inner.yaml}}"}
    service = Service()
    stack_id = service.create(resources, files=files)
    service.rest()
    before = service.servers()
    assert lost(service, stack_id) == {"g": "CHECK_FAILED"}
    assert service.servers() == []
    switch(service, stack_id, exceptions={"g": {"healing": "replace"}})
    service.live(200.0)
    there = 0 if resources == {"g": group(2, saying("ask"))} else len(before)
    assert len(service.servers()) == there  # what a member says itself is nearer


def test_who_switches_a_resource_by_name_is_nearer_than_its_template() -> None:
    service = Service()
    stack_id = service.create({"a": saying("ask"), "b": saying("replace"), "c": server()})
    switch(service, stack_id, healing={"policy": "ask"}, exceptions={"a": {"healing": "replace"}})
    found = lost(service, stack_id)
    assert found == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE", "c": "CHECK_FAILED"}


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (saying("never"), "resources.srv.metadata.homeostat.healing: it must be replace or ask"),
        (saying(["ask"]), "resources.srv.metadata.homeostat.healing: it must be replace or ask"),
        (saying({"get_attr": ["other", "output"]}), "resources.srv.metadata.homeostat.healing: it must be"),
        (
            {**server(), "metadata": {"homeostat": {"heal": "ask"}}},
            "resources.srv.metadata.homeostat.heal: there is no",
        ),
        ({**server(), "metadata": {"homeostat": "ask"}}, "resources.srv.metadata.homeostat: a map is needed"),
        (group(2, saying("never")), "resources.srv.properties.resource_def.metadata.homeostat.healing: it must be"),
    ],
)
def test_what_is_no_policy_is_refused_with_its_place(resource: dict[str, Any], message: str) -> None:
    with pytest.raises(Rejected) as refusal:
        Service().begin({"srv": resource, "other": double(value="x")})
    assert message in str(refusal.value)


def test_a_nested_stack_that_is_marked_is_replaced_when_a_user_agrees() -> None:
    """Found by the simulation (seed 30004146): what was in it was looked at, and it stayed as it was for ever."""
    service = Service()
    stack_id = service.create({"g": saying("ask", group(2))})
    service.rest()
    before, things = service.row(stack_id, "g").handle, service.servers()
    Marks(service.db).mark(stack_id, MarkRequest(unhealthy=True, reason="it smells"), {"": "g"})
    service.live(60.0)
    assert service.states(stack_id) == {"g": "CHECK_FAILED"}
    assert (
        "it smells. Another one is made when you agree: homeostat converge web g" in service.row(stack_id, "g").reason
    )
    assert service.servers() == things
    service.actions.converge(stack_id, "g")
    service.live(120.0)
    assert service.states(stack_id) == {"g": "CREATE_COMPLETE"}
    assert service.row(stack_id, "g").handle != before
    assert not set(service.servers()) & set(things)
