"""What goes on in a stack at rest has as much time as an action of that stack; then it has failed, and says so."""

from dataclasses import replace

import pytest

from homeostat.clouds.port import ChangeNotice
from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.model.waiting import Why
from homeostat.services.actions import ConvergenceSettings
from tests.component.running import LIMITS, Service, double, group, server, volume
from tests.component.test_explaining import explanations

MINUTE = 60.0


def healing(build_s: float, *, minutes: int | None = 1, timeout_s: float = 3600.0) -> tuple[Service, str]:
    """A stack at rest whose server has just been lost; another one takes so long to build."""
    service = Service()
    service.reconciler.limits = replace(LIMITS, stack_timeout_s=timeout_s)
    stack_id = service.create({"a": server(), "disk": volume()}, timeout_mins=minutes)
    service.rest()
    service.cloud.behaviour.build_s = build_s
    lose(service, service.servers()[0])
    return service, stack_id


def lose(service: Service, handle: str) -> None:
    """A server is gone, and that is noticed at once."""
    service.cloud.vanish(handle)
    service.clock.time += 1
    service.observer.notice([ChangeNotice("server", handle)])
    service.live(10.0)


def healed_row(service: Service, stack_id: str) -> tuple[str, str]:
    """State and reason of the one that takes the server's place."""
    newest = max((each for each in service.rows(stack_id) if each.name == "a"), key=lambda each: each.born)
    return f"{newest.action}_{newest.status}", newest.reason


def test_what_never_gets_ready_while_it_is_healed_fails_and_its_stack_says_so() -> None:
    service, stack_id = healing(1e6)
    assert (healed_row(service, stack_id)[0], service.state(stack_id)) == ("CREATE_IN_PROGRESS", "CREATE_COMPLETE")
    service.live(3 * MINUTE)
    assert healed_row(service, stack_id) == ("CREATE_FAILED", "ResourceInError: resources.a: CREATE timed out")
    assert service.state(stack_id) == "CHECK_FAILED"
    assert "CREATE timed out" in service.stack(stack_id).reason


def test_the_service_says_how_long_where_the_stack_does_not() -> None:
    service, stack_id = healing(1e6, minutes=None, timeout_s=2 * MINUTE)
    service.live(MINUTE)
    assert healed_row(service, stack_id)[0] == "CREATE_IN_PROGRESS"
    service.live(2 * MINUTE)
    assert (healed_row(service, stack_id)[0], service.state(stack_id)) == ("CREATE_FAILED", "CHECK_FAILED")


def test_explain_says_when_the_time_is_over() -> None:
    service, stack_id = healing(1e6)
    [fails_at] = [
        each.explanation.fails_at for each in explanations(service, stack_id) if each.explanation.why is Why.BUILDING
    ]
    acted_at = next(each.acted_at for each in service.rows(stack_id) if each.status == "IN_PROGRESS")
    assert fails_at == acted_at + MINUTE
    service = Service(CloudBehaviour(build_s=30.0))
    other_id = service.create({"b": server(), "c": {**server(), "depends_on": "b"}}, timeout_mins=2)
    assert {each.explanation.name: each.explanation.fails_at for each in explanations(service, other_id)} == {
        "b": service.stack(other_id).deadline,
        "c": None,
    }


def test_what_gets_ready_after_its_time_was_over_is_well() -> None:
    service, stack_id = healing(5 * MINUTE)
    service.live(2 * MINUTE)
    assert (healed_row(service, stack_id)[0], service.state(stack_id)) == ("CREATE_FAILED", "CHECK_FAILED")
    before = service.servers()
    service.live(5 * MINUTE)
    assert (healed_row(service, stack_id)[0], service.state(stack_id)) == ("CREATE_COMPLETE", "CHECK_COMPLETE")
    assert service.servers() == before


@pytest.mark.heavy
@pytest.mark.parametrize("away_s", [2 * MINUTE, 4 * MINUTE])
def test_what_became_ready_while_the_cloud_was_away_has_not_failed(away_s: float) -> None:
    service, stack_id = healing(50.0)
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    service.live(away_s)
    assert healed_row(service, stack_id)[0] == "CREATE_IN_PROGRESS"
    service.cloud.behaviour.faults = Faults()
    service.live(2 * MINUTE)
    assert healed_row(service, stack_id)[0] == "CREATE_COMPLETE"
    assert "CREATE_FAILED" not in "".join(service.story(stack_id))


def test_what_did_not_become_ready_while_the_cloud_was_away_fails_after_that() -> None:
    service, stack_id = healing(1e6)
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    service.live(4 * MINUTE)
    service.cloud.behaviour.faults = Faults()
    service.live(2 * MINUTE)
    assert healed_row(service, stack_id)[0] == "CREATE_FAILED"


def test_what_runs_on_in_a_stack_that_has_failed_ends() -> None:
    service = Service(CloudBehaviour(build_s=1e6))
    stack_id = service.create({"a": server(), "b": double(wait_secs=5, fail=True)}, timeout_mins=1)
    service.rest()
    assert service.states(stack_id) == {"a": "CREATE_IN_PROGRESS", "b": "CREATE_FAILED"}
    service.live(2 * MINUTE)
    assert service.states(stack_id) == {"a": "CREATE_FAILED", "b": "CREATE_FAILED"}
    assert service.state(stack_id) == "CREATE_FAILED"


def test_what_is_healed_in_a_nested_stack_has_the_time_of_the_whole() -> None:
    service = Service()
    stack_id = service.create({"g": group(1)}, timeout_mins=2)
    service.rest()
    service.cloud.behaviour.build_s = 1e6
    lose(service, service.servers()[0])
    service.live(MINUTE)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    service.live(2 * MINUTE)
    assert (service.state(service.child().id), service.state(stack_id)) == ("CHECK_FAILED", "CHECK_FAILED")


@pytest.mark.parametrize("flavor", ["small", "large"])
def test_what_became_ready_too_late_is_not_made_once_more_by_an_update(flavor: str) -> None:
    service = Service(CloudBehaviour(build_s=90.0))
    stack_id = service.create({"a": server()}, timeout_mins=1)
    service.live(2 * MINUTE)
    assert (service.state(stack_id), service.states(stack_id)) == ("CREATE_FAILED", {"a": "CREATE_FAILED"})
    before = service.servers()
    service.update(stack_id, {"a": server(flavor=flavor)}, timeout_mins=1)
    service.rest()
    assert (service.state(stack_id), service.servers()) == ("UPDATE_COMPLETE", before)
    assert service.cloud.things("server")[before[0]]["flavor"] == flavor


def test_a_difference_of_what_came_back_is_mended() -> None:
    """What failed its check, and is there again, is compared like anything else."""
    service = Service()
    stack_id = service.create({"a": server(metadata={"v": "1"}), "b": server()})
    service.rest()
    service.actions.switch(stack_id, ConvergenceSettings({}, healing={"policy": "ask"}))
    mine = service.row(stack_id, "a").handle
    service.cloud.hide(mine)
    service.live(2 * MINUTE)
    assert service.states(stack_id)["a"] == "CHECK_FAILED"
    service.cloud.unhide(mine)
    service.cloud.change(mine, metadata={"v": "2"})
    service.live(2 * MINUTE)
    assert service.cloud.things("server")[mine]["metadata"] == {"v": "1"}
