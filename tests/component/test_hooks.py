"""Hooks, restricted actions and things of others: what is held back from resources (environment.md section 3)."""

from typing import Any

import pytest
from sqlalchemy import select

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.model.waiting import Why
from homeostat.services.explainer import Explainer
from homeostat.store import schema
from tests.component.running import Service, double, group, server, volume

INNER = "heat_template_version: rocky\nresources: {leaf: {type: OS::Cinder::Volume, properties: {size: 1}}}"


def hooked(name: str = "a", *hooks: str, **more: Any) -> dict[str, Any]:
    """An environment."""
    return {"resource_registry": {"resources": {name: {"hooks": list(hooks), **more}}}}


def restricted(name: str, *actions: str) -> dict[str, Any]:
    return {"resource_registry": {"resources": {name: {"restricted_actions": list(actions)}}}}


def clear(service: Service, stack_id: str, hook: str, name: str = "a") -> None:
    service.actions.clear_hook(stack_id, name, hook)
    service.work()


def events_of(service: Service, stack_id: str, name: str = "a") -> list[str]:
    """State and reason of each event of a resource."""
    table = schema.event
    with service.db.read() as tx:
        rows = tx.execute(select(table).where(table.c.stack_id == stack_id, table.c.name == name).order_by(table.c.seq))
        return [f"{each.action}_{each.status}: {each.reason}" for each in rows]


def reason_to_wait(service: Service, stack_id: str, name: str = "a") -> str:
    with service.db.read() as tx:
        found = Explainer(tx, DesiredGraphs(), service.clock.now()).of_resource(service.stack(stack_id), name)
    return "; ".join(f"{each.explanation.why}: {each.explanation.reason}" for each in found)


def chain() -> dict[str, Any]:
    """Two volumes, the second after the first."""
    return {"a": volume(), "b": {**volume(), "depends_on": "a"}}


def test_before_creation() -> None:
    service = Service()
    stack_id = service.create(chain(), environment=hooked("a", "pre-create"))
    assert service.states(stack_id) == {"a": "INIT_COMPLETE"}
    assert service.cloud.things() == {}
    assert reason_to_wait(service, stack_id) == "hook: CREATE paused until Hook pre-create is cleared"
    service.live(120.0)
    assert service.states(stack_id) == {"a": "INIT_COMPLETE"}, "time alone changes nothing"
    clear(service, stack_id, "pre-create")
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert events_of(service, stack_id) == [
        "INIT_COMPLETE: CREATE paused until Hook pre-create is cleared",
        "INIT_COMPLETE: Hook pre-create is cleared",
        "CREATE_IN_PROGRESS: state changed",
        "CREATE_COMPLETE: state changed",
    ]


@pytest.mark.parametrize("behaviour", [CloudBehaviour(), CloudBehaviour(build_s=3.0)], ids=["at once", "slow"])
def test_after_creation_what_requires_it_waits(behaviour: CloudBehaviour) -> None:
    service = Service(behaviour)
    stack_id = service.create(chain(), environment=hooked("*", "post-create"))
    service.live(20.0)
    assert service.states(stack_id) == {"a": "CREATE_COMPLETE"}
    assert service.state(stack_id) == "CREATE_IN_PROGRESS"
    assert events_of(service, stack_id)[-1] == "CREATE_COMPLETE: CREATE paused until Hook post-create is cleared"
    clear(service, stack_id, "post-create")
    service.live(20.0)
    assert service.states(stack_id) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    clear(service, stack_id, "post-create", "b")
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.story(stack_id, "a").count("a CREATE_COMPLETE") == 3


def test_before_an_update_even_where_nothing_changes() -> None:
    service = Service()
    stack_id = service.create(chain())
    service.update(stack_id, chain(), environment=hooked("a", "pre-update"))
    assert service.state(stack_id) == "UPDATE_IN_PROGRESS"
    assert events_of(service, stack_id)[-1] == "CREATE_COMPLETE: UPDATE paused until Hook pre-update is cleared"
    clear(service, stack_id, "pre-update")
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert events_of(service, stack_id)[-1] == "CREATE_COMPLETE: Hook pre-update is cleared"


def test_before_an_update_that_replaces() -> None:
    service = Service()
    stack_id = service.create({"a": server()})
    service.update(stack_id, {"a": server(availability_zone="z")}, environment=hooked("a", "pre-update", "pre-create"))
    assert service.servers() == ["server-1"]
    clear(service, stack_id, "pre-update")
    service.rest()
    assert service.servers() == ["server-2"], "hooks of creation are for stacks that are created"


def test_after_an_update_in_place_alone() -> None:
    service = Service()
    both = {"a": double(value="x"), "r": server()}
    stack_id = service.create(both)
    after = {"a": double(value="y"), "r": server(availability_zone="z")}
    service.update(stack_id, after, environment=hooked("*", "post-update"))
    service.live(5.0)
    assert events_of(service, stack_id)[-1] == "UPDATE_COMPLETE: UPDATE paused until Hook post-update is cleared"
    assert not any("paused" in each for each in events_of(service, stack_id, "r"))
    clear(service, stack_id, "post-update")
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_before_and_after_a_deletion() -> None:
    service = Service(CloudBehaviour(delete_s=2.0))
    stack_id = service.create(chain(), environment=hooked("b", "pre-delete", "post-delete"))
    service.rest()
    service.delete(stack_id)
    service.live(10.0)
    assert len(service.cloud.things("volume")) == 2
    assert reason_to_wait(service, stack_id, "b") == "hook: DELETE paused until Hook pre-delete is cleared"
    clear(service, stack_id, "pre-delete", "b")
    service.live(10.0)
    assert len(service.cloud.things("volume")) == 1, "what b required waits"
    assert service.states(stack_id) == {"a": "CREATE_COMPLETE", "b": "DELETE_COMPLETE"}
    clear(service, stack_id, "post-delete", "b")
    service.rest()
    assert service.cloud.things("volume") == {}
    assert service.stack(stack_id).deleted_at is not None
    assert events_of(service, stack_id, "b")[2:] == [
        "CREATE_COMPLETE: DELETE paused until Hook pre-delete is cleared",
        "CREATE_COMPLETE: Hook pre-delete is cleared",
        "DELETE_IN_PROGRESS: state changed",
        "DELETE_COMPLETE: state changed",
        "DELETE_COMPLETE: DELETE paused until Hook post-delete is cleared",
        "DELETE_COMPLETE: Hook post-delete is cleared",
    ]


def test_hooks_of_deletion_given_by_an_update_hold() -> None:
    service = Service()
    stack_id = service.create(chain())
    service.update(stack_id, chain(), environment=hooked("a", "pre-delete"))
    service.delete(stack_id)
    service.live(5.0)
    assert service.states(stack_id) == {"a": "CREATE_COMPLETE"}


def test_what_is_removed_from_the_template_does_not_stop() -> None:
    service = Service()
    stack_id = service.create(chain(), environment=hooked("b", "pre-delete", "post-delete"))
    service.update(stack_id, {"a": volume()}, environment=hooked("b", "pre-delete", "post-delete"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.cloud.things("volume")) == 1


def test_a_newer_update_wins_over_waiting() -> None:
    service = Service()
    stack_id = service.create(chain(), environment=hooked("a", "pre-create"))
    service.update(stack_id, chain())
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert events_of(service, stack_id)[1] == "INIT_COMPLETE: Failure occurred while waiting."


@pytest.mark.parametrize("hook", ["pre-create", "post-create"])
def test_a_deletion_wins_over_waiting(hook: str) -> None:
    service = Service()
    stack_id = service.create(chain(), environment=hooked("a", hook))
    service.delete(stack_id)
    service.rest()
    assert service.stack(stack_id).deleted_at is not None
    assert service.cloud.things() == {}
    assert any("Failure occurred while waiting." in each for each in events_of(service, stack_id))


def test_an_update_wins_over_a_deletion_that_waits_at_its_end() -> None:
    service = Service()
    stack_id = service.create(chain(), environment=hooked("b", "post-delete"))
    service.delete(stack_id)
    service.live(5.0)
    service.update(stack_id, chain())
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.states(stack_id) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}


def test_a_stack_that_waits_too_long_fails_and_nothing_is_made() -> None:
    service = Service()
    stack_id = service.create(chain(), environment=hooked("a", "pre-create"), timeout_mins=1)
    service.live(90.0)
    assert service.state(stack_id) == "CREATE_FAILED"
    assert service.cloud.things() == {}
    assert events_of(service, stack_id)[-1] == "INIT_COMPLETE: Failure occurred while waiting."
    with pytest.raises(Rejected, match='The "pre-create" hook is not defined on a'):
        clear(service, stack_id, "pre-create")


def test_hooks_in_nested_stacks_and_groups() -> None:
    environment = hooked("n", leaf={"hooks": "pre-create"})
    environment["resource_registry"]["resources"]["grp"] = {"1": {"hooks": "post-create"}}
    service = Service()
    grp = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": volume()}}
    resources = {"n": {"type": "inner.yaml"}, "grp": grp}
    stack_id = service.create(resources, environment=environment, files={"inner.yaml": INNER})
    service.live(5.0)
    nested, members = (service.row(stack_id, name).handle for name in ("n", "grp"))
    assert service.states(nested) == {"leaf": "INIT_COMPLETE"}
    clear(service, nested, "pre-create", "leaf")
    clear(service, members, "post-create", "1")
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("hook", "message"),
    [("noon", "Invalid hook type 'noon'"), (7, "Invalid hook type 7"), ("pre-delete", "not defined")],
)
def test_only_what_it_waits_at_can_be_cleared(hook: Any, message: str) -> None:
    service = Service()
    stack_id = service.create(chain(), environment=hooked("a", "pre-create"))
    with pytest.raises(Rejected, match=message) as caught:
        clear(service, stack_id, hook)
    assert caught.value.fault == "InvalidBreakPointHook"


def test_a_hook_is_cleared_once() -> None:
    service = Service()
    stack_id = service.create(chain(), environment=hooked("a", "pre-create"))
    clear(service, stack_id, "pre-create")
    with pytest.raises(Rejected, match="it does not wait there"):
        clear(service, stack_id, "pre-create")


# -- restricted actions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "action"),
    [
        (volume(size=1), volume(size=2), "update"),
        (server(), server(availability_zone="z"), "replace"),
        (volume(), double(), "replace"),
    ],
    ids=["update", "replace", "type"],
)
def test_what_is_restricted_fails_the_stack_and_touches_neither_the_thing_nor_its_status(
    before: dict[str, Any], after: dict[str, Any], action: str
) -> None:
    service = Service()
    stack_id = service.create({"a": before})
    things = service.cloud.things()
    for attempt in (1, 2):
        service.update(stack_id, {"a": after}, environment=restricted("a", action))
        service.rest()
        assert service.state(stack_id) == "UPDATE_FAILED"
        assert service.states(stack_id) == {"a": "CREATE_COMPLETE"}
        events = events_of(service, stack_id)
        assert events[2:] == [f"UPDATE_FAILED: {action} is restricted for resource."] * attempt, "told once an update"
        reason = f"Resource UPDATE failed: ResourceActionRestricted: resources.a: {action} is restricted for resource."
        assert service.stack(stack_id).reason == reason
        assert service.cloud.things() == things
    assert reason_to_wait(service, stack_id) == f"halted: {reason}"
    service.live(300.0)
    assert service.state(stack_id) == "UPDATE_FAILED", "time alone changes nothing"
    assert len(events_of(service, stack_id)) == 4
    service.update(stack_id, {"a": before}, environment=restricted("a", action))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE", "as it was it may stay"
    service.update(stack_id, {"a": after})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_a_restricted_change_rolls_the_stack_back_where_that_was_requested() -> None:
    service = Service()
    stack_id = service.create({"a": volume(description="old"), "b": volume(description="old")})
    after = {"a": volume(description="new"), "b": {**volume(description="new"), "depends_on": "a"}}
    service.update(stack_id, after, environment=restricted("b", "update"), disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert service.states(stack_id) == {"a": "UPDATE_COMPLETE", "b": "CREATE_COMPLETE"}
    assert {each["description"] for each in service.cloud.things("volume").values()} == {"old"}


def test_the_other_action_and_removal_are_not_restricted() -> None:
    service = Service()
    stack_id = service.create({"a": volume()})
    service.update(stack_id, {"a": volume(size=2)}, environment=restricted("a", "replace"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    service.update(stack_id, {}, environment=restricted("a", "replace", "update"))
    service.rest()
    assert service.cloud.things() == {}


def test_what_is_restricted_is_not_mended_but_made_anew_once_it_is_gone() -> None:
    service = Service()
    environment = restricted("a", "replace", "update")
    stack_id = service.create({"a": volume()}, environment=environment)
    service.rest()
    handle = service.row(stack_id, "a").handle
    service.cloud.change(handle, size=5)
    service.live(65.0)
    assert service.cloud.things("volume")[handle]["size"] == 5
    service.cloud.vanish(handle)
    service.live(65.0)
    assert len(service.cloud.things("volume")) == 1


# -- things of others ------------------------------------------------------------------------------------------------


def taken(**more: Any) -> dict[str, Any]:
    """A volume of another owner's."""
    return {**volume(**more), "external_id": "volume-1"}


def with_theirs(behaviour: CloudBehaviour | None = None) -> Service:
    """A service beside a volume that another stack has made."""
    service = Service(behaviour)
    service.create({"v": volume(size=3)}, name="theirs")
    service.rest()
    assert list(service.cloud.things("volume")) == ["volume-1"]
    return service


def test_what_is_another_owners_is_taken_and_let_go_of_as_it_is() -> None:
    service = with_theirs(CloudBehaviour(build_s=1.0))
    before = service.cloud.things()
    resources = {"a": taken(size=9), "t": double(value={"get_resource": "a"})}
    stack_id = service.create(resources, name="mine")
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.row(stack_id, "t").properties["value"] == "volume-1"
    assert events_of(service, stack_id) == ["CREATE_IN_PROGRESS: state changed", "CREATE_COMPLETE: state changed"]
    resources["a"] = taken(size=10)
    service.update(stack_id, resources)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    service.delete(stack_id)
    service.rest()
    assert service.stack(stack_id).deleted_at is not None
    assert service.cloud.things() == before


def test_what_is_another_owners_needs_no_properties() -> None:
    service = with_theirs()
    stack_id = service.create({"a": {"type": "OS::Cinder::Volume", "external_id": "volume-1"}})
    service.rest()
    assert (service.state(stack_id), service.row(stack_id, "a").handle) == ("CREATE_COMPLETE", "volume-1")


def test_what_is_not_there_cannot_be_taken() -> None:
    service = Service()
    stack_id = service.create({"a": taken()})
    service.rest()
    reason = "NotFound: resources.a: The OS::Cinder::Volume (volume-1) could not be found."
    assert service.stack(stack_id).reason == f"Resource CREATE failed: {reason}"
    service.create({"v": volume()}, name="theirs")
    service.update(stack_id, {"a": taken()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE", "it is looked for again"


@pytest.mark.parametrize("after", [{**volume(), "external_id": "volume-1"}, volume()], ids=["another", "its own"])
def test_what_never_stood_for_anything_may_stand_for_something_else(after: dict[str, Any]) -> None:
    service = with_theirs()
    stack_id = service.create({"a": {**volume(), "external_id": "misspelt"}}, name="mine")
    service.rest()
    service.update(stack_id, {"a": after})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.row(stack_id, "a").handle == after.get("external_id", "volume-2")


@pytest.mark.parametrize(
    ("before", "after"),
    [(taken(), {**volume(), "external_id": "volume-2"}), (taken(), volume()), (volume(), taken())],
    ids=["changed", "removed", "added"],
)
def test_whose_it_is_does_not_change(before: dict[str, Any], after: dict[str, Any]) -> None:
    service = with_theirs()
    stack_id = service.create({"a": before}, name="mine")
    service.rest()
    things = service.cloud.things()
    service.update(stack_id, {"a": after})
    service.rest()
    reason = "NotSupported: resources.a: Update to property external_id of a (OS::Cinder::Volume) is not supported."
    assert service.stack(stack_id).reason == f"Resource UPDATE failed: {reason}"
    assert service.cloud.things() == things
    service.update(stack_id, {"a": before})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


@pytest.mark.parametrize("policy", ["Delete", "Snapshot"])
def test_what_is_another_owners_stays_whatever_policy_the_deletion_is_given(policy: str) -> None:
    """An update that could not make it the stack's own is the newest that says something of policies."""
    service = with_theirs(CloudBehaviour(delete_s=60.0))
    user = server(metadata={"disk": {"get_resource": "a"}})
    stack_id = service.create({"a": taken(), "user": user}, name="mine")
    service.rest()
    ours = {"a": {**volume(), "deletion_policy": "Retain"}, "user": user}
    service.update(stack_id, ours)
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    service.delete(stack_id)
    service.work()
    assert service.states(stack_id)["user"] == "DELETE_IN_PROGRESS"
    service.update(stack_id, {**ours, "a": {**volume(), "deletion_policy": policy}})
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert (list(service.cloud.things("volume")), service.cloud.snapshots("volume-1")) == (["volume-1"], [])


def test_what_a_creation_without_an_answer_has_made_is_found_before_it_is_another_owners() -> None:
    service = Service(CloudBehaviour(faults=Faults(lost=1.0)))
    stack_id = service.begin({"a": volume()})
    service.work()
    assert (len(service.cloud.things("volume")), service.row(stack_id, "a").handle) == (1, "")
    service.cloud.behaviour.faults.lost = 0.0
    service.update(stack_id, {"a": {**volume(), "external_id": "other"}})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things("volume") == {}


def test_changes_of_things_of_others_are_reported_and_nothing_is_made() -> None:
    service = with_theirs()
    stack_id = service.create({"a": taken()}, name="mine")
    service.rest()
    service.cloud.change("volume-1", size=7)
    service.live(65.0)
    assert service.states(stack_id) == {"a": "CREATE_COMPLETE"}
    with service.db.read() as tx:
        theirs = tx.execute(select(schema.stack.c.id).where(schema.stack.c.name == "theirs")).scalar_one()
    service.delete(theirs)
    service.live(65.0)
    assert service.states(stack_id) == {"a": "CHECK_FAILED"}
    assert service.cloud.things() == {}
    assert reason_to_wait(service, stack_id).startswith(Why.FAILED)


@pytest.mark.parametrize("kind", ["TestResource", "RandomString", "Value", "None", "Delay"])
def test_what_lives_in_the_service_alone_may_have_the_id_of_something_else(kind: str) -> None:
    service = Service()
    properties = {"value": "v"} if kind == "Value" else {}
    resource = {"type": f"OS::Heat::{kind}", "properties": properties}
    mine = {"a": {**resource, "external_id": "foobar"}, "t": double(value={"get_resource": "a"})}
    stack_id = service.create(mine)
    service.rest()
    assert service.states(stack_id) == {"a": "CREATE_COMPLETE", "t": "CREATE_COMPLETE"}
    assert service.row(stack_id, "a").handle == "foobar"
    assert service.row(stack_id, "t").properties["value"] == ("a" if kind == "RandomString" else "foobar")
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert service.state(stack_id) == "CHECK_COMPLETE"
    service.update(stack_id, {"a": resource})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED", "it stays another owner's"
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"


@pytest.mark.parametrize(
    ("resource", "fault"),
    [({**group(1), "external_id": "x"}, "NotSupported"), ({**volume(), "external_id": 7}, "StackValidationFailed")],
    ids=["a stack", "no text"],
)
def test_what_cannot_be_taken_is_refused(resource: dict[str, Any], fault: str) -> None:
    with pytest.raises(Rejected, match="external_id") as caught:
        Service().begin({"a": resource})
    assert caught.value.fault == fault
