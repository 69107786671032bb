"""What could not be changed is changed later. No look would show that it was not: what a cloud says of a flavor is not
compared."""

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.model.status import Action
from homeostat.services.actions import ConvergenceSettings
from homeostat.services.marks import MarkRequest, Marks
from tests.component.running import Service, server


def updated(service: Service) -> tuple[str, str]:
    """Its stack wants another flavor of a server that its cloud does not find for now; and the server."""
    stack_id = service.create({"srv": server()})
    service.rest()
    handle = service.row(stack_id, "srv").handle
    service.cloud.hide(handle)
    service.update(stack_id, {"srv": server(flavor="large")})
    service.work()
    return stack_id, handle


def flavors(service: Service) -> dict[str, str]:
    return {handle: thing["flavor"] for handle, thing in service.cloud.things("server").items()}


@pytest.mark.parametrize(
    ("behaviour", "hidden_s"),
    [(CloudBehaviour(), 0.1), (CloudBehaviour(build_s=30.0), 10.0)],
    ids=["before it is looked for again", "while another one is made in its place"],
)
@pytest.mark.shows("CV10")
def test_what_was_not_found_when_it_was_to_be_changed_is_changed_when_it_is_seen_again(
    behaviour: CloudBehaviour, hidden_s: float
) -> None:
    """Found by the simulation (seed 30234596): its update was complete, and nobody had changed it."""
    service = Service(behaviour)
    stack_id, handle = updated(service)
    service.live(hidden_s)
    service.cloud.unhide(handle)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert flavors(service) == {handle: "large"}


def test_what_was_not_found_before_its_stack_was_checked_is_changed_by_the_next_update() -> None:
    """What is not found has failed there, since a check begins nothing."""
    service = Service()
    stack_id, handle = updated(service)
    service.stack_service.cancel(stack_id, roll_back=False)
    service.work()
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert service.states(stack_id) == {"srv": "UPDATE_FAILED"}
    service.cloud.unhide(handle)
    service.update(stack_id, {"srv": server(flavor="large"), "other": server()})
    service.rest()
    assert flavors(service)[handle] == "large"


def test_what_could_not_be_changed_is_changed_by_the_next_update_though_a_user_says_that_it_is_well() -> None:
    service = Service()
    stack_id = service.create({"srv": server()})
    service.rest()
    handle = service.row(stack_id, "srv").handle
    service.cloud.change(handle, locked=True)
    service.update(stack_id, {"srv": server(flavor="large")})
    service.rest()
    assert service.states(stack_id) == {"srv": "UPDATE_FAILED"}
    for unhealthy in (True, False):
        Marks(service.db).mark(stack_id, MarkRequest(unhealthy), {"": "srv"})
    service.cloud.change(handle, locked=False)
    service.update(stack_id, {"srv": server(flavor="large"), "other": server()})
    service.rest()
    assert flavors(service)[handle] == "large"


def test_what_is_never_found_when_it_is_to_be_changed_is_asked_ever_more_rarely() -> None:
    """A cloud that shows a thing, and denies it to changes."""
    service = Service()
    stack_id = service.create({"srv": server()})
    service.rest()
    asked: list[float] = []
    update = service.cloud.update

    def denying(kind: str, changes: list[object]) -> object:
        asked.append(service.clock.time)
        (handle,) = service.cloud.things(kind)
        service.cloud.hide(handle)
        answers = update(kind, changes)  # type: ignore[arg-type]
        service.cloud.unhide(handle)
        return answers

    service.cloud.update = denying  # type: ignore[method-assign, assignment]
    service.actions.switch(stack_id, ConvergenceSettings({"observe_s": 0.0}))
    service.update(stack_id, {"srv": server(flavor="large")})
    service.live(300.0)
    assert len(asked) < 15
    service.cloud.update = update  # type: ignore[method-assign]
    service.rest()
    assert set(flavors(service).values()) == {"large"}
