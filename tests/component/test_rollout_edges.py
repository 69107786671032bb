"""Rollouts of metadata at their edges: what comes, goes, fails or is attacked in the middle of one."""

from typing import Any

import pytest

from homeostat.model.errors import Rejected
from homeostat.store import schema
from tests.component.running import Service, double
from tests.component.test_metadata_rollouts import TIMEOUT_S, Group, resources


def grown(service: Group, count: int, value: str = "2") -> None:
    service.more |= {"count": count}
    service.update(service.id, resources(value, **service.more))
    service.live(5)


def report_all(service: Group) -> None:
    for number, value in enumerate(service.values()):
        if value == "2":
            service.report(number)


def test_members_that_come_in_the_middle_get_it_too() -> None:
    service = Group(pattern="canary", steps=["100%"])
    service.change("2")
    grown(service, 6)
    for _ in range(3):
        report_all(service)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("222222", "UPDATE_COMPLETE")
    assert len([each for each in service.events(service.id, "group") if each.action == "ROLLOUT"]) < 8


def test_a_member_without_a_thing_does_not_keep_it_going_for_ever() -> None:
    service = Group(4, gated=False)
    members = service.child().id
    with service.db.write() as tx:
        mine = schema.resource.c.stack_id == members
        tx.execute(
            schema.resource.update().where(mine, schema.resource.c.name == "3").values(handle="", status="FAILED")
        )
    service.change("2")
    service.rest()
    assert service.state(service.id) == "UPDATE_COMPLETE"


@pytest.mark.heavy
def test_a_stack_that_is_updated_in_the_middle_has_no_time_limit_either() -> None:
    service = Group(on_failure="hold")
    service.change("2")
    service.report(0, "FAILURE", "no")
    service.update(service.id, {**resources("2", **service.more), "other": double(value="x")})
    service.live(3 * 3600)
    assert service.state(service.id) == "UPDATE_IN_PROGRESS"


def test_the_end_of_one_rollout_brings_no_time_limit_to_another() -> None:
    service = Service()
    more: dict[str, Any] = {"pattern": "rolling", "gated": False, "count": 2}

    def both(value: str) -> dict[str, Any]:
        return {"a": resources(value, **more)["group"], "b": resources(value, **more, bake_time=86400)["group"]}

    stack_id = service.create(both("1"))
    service.rest()
    service.update(stack_id, both("2"), timeout_mins=5)
    service.live(30)
    assert service.row(stack_id, "a").status == "COMPLETE"
    service.rollouts.pause(service.row(stack_id, "b").key)
    service.live(3 * 3600)
    assert service.state(stack_id) == "UPDATE_IN_PROGRESS"
    assert service.stack(stack_id).deadline is None
    service.rollouts.resume(service.row(stack_id, "b").key)


@pytest.mark.heavy
def test_a_report_that_comes_late_is_no_answer_of_a_url() -> None:
    service = Group(2, checks=["https://health.example/web"], bake_time=3600, progress_deadline=30, max_failures=1)
    service.rollouts._ask = lambda url: "200"
    service.change("2")
    service.report(0)
    service.live(60)
    assert service.values() == "21"
    from homeostat.convergence.members.rollouts import RolloutEngine

    RolloutEngine(service.db).advance(service.group_row.key)  # as the API does
    service.live(10)
    assert service.values() == "21"
    service.live(3600 - 60)
    assert service.values() == "22"


def test_one_rollout_that_fails_to_go_on_holds_up_no_other() -> None:
    service = Service()
    more: dict[str, Any] = {"pattern": "rolling", "gated": False, "count": 2}
    first = service.create({"group": resources("1", **more)["group"]}, name="first")
    second = service.create({"group": resources("1", **more)["group"]}, name="second")
    service.rest()
    going = service.rollouts.advance
    service.update(first, {"group": resources("2", **more)["group"]})
    service.update(second, {"group": resources("2", **more)["group"]})
    broken = service.row(first, "group").key

    def advance(key: str) -> None:
        if key == broken:
            raise ValueError("a bug")
        going(key)

    service.rollouts.advance = advance  # type: ignore[method-assign]
    service.live(30)
    assert service.state(second) == "UPDATE_COMPLETE"


def test_more_wait_conditions_than_bits() -> None:
    service = Service()
    found = resources("1", 2)
    for number in range(40):
        found[f"handle{number}"] = found["handle"]
        wait = found["wait"]
        properties = {**wait["properties"], "handle": {"get_resource": f"handle{number}"}}
        found[f"wait{number}"] = {**wait, "properties": properties}
    with pytest.raises(Rejected, match="wait conditions"):
        service.begin(found)


def test_a_share_of_nothing_is_no_step() -> None:
    with pytest.raises(Rejected, match="is no step"):
        Service().begin(resources("1", steps=["0%"]))
    with pytest.raises(Rejected, match="is no step"):
        Service().begin(resources("1", steps=["100.5%"]))


@pytest.mark.parametrize("value", ["nan", "inf", float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["bake_time", "progress_deadline", "min_success_percent"])
def test_numbers_that_are_none_are_refused(name: str, value: Any) -> None:
    with pytest.raises(Rejected):
        Service().begin(resources("1", **{name: value}))


@pytest.mark.parametrize("name", ["max_failures", "seed", "max_failures_per_step"])
def test_huge_numbers(name: str) -> None:
    huge: dict[str, Any] = {name: 2**63 - 1}
    service = Group(2, gated=False, order="random", **huge)
    service.change("2")
    service.rest()
    assert service.state(service.id) == "UPDATE_COMPLETE"


def test_a_gate_that_is_removed_in_the_middle() -> None:
    service = Group()
    service.change("2")
    service.more["gated"] = False
    service.update(service.id, resources("2", **service.more))
    service.live(TIMEOUT_S * 6)
    assert (service.values(), service.state(service.id)) == ("2222", "UPDATE_COMPLETE")


def test_a_group_that_goes_in_the_middle_gives_the_stack_its_time_limit_back() -> None:
    service = Group(gated=False, on_failure="hold", bake_time=86400)
    service.update(service.id, {**resources("2", **service.more), "other": double(value="x")})
    service.live(5)
    assert service.stack(service.id).deadline is None
    service.rollouts.pause(service.group_row.key)
    service.update(service.id, {"other": double(value="y", wait_secs=1800)}, timeout_mins=10)
    service.live(20)
    assert service.state(service.id) == "UPDATE_IN_PROGRESS"
    deadline = service.stack(service.id).deadline
    assert deadline is not None
    assert deadline <= service.clock.now() + 600


@pytest.mark.parametrize(
    "body", [{"id": "a\0b"}, {"data": {"a": [1]}}, {"data": True}, {"data": "x" * 100_000}, {"data": 7}]
)
def test_a_signal_of_no_member_is_one_for_the_wait_condition(body: dict[str, Any]) -> None:
    service = Group(2)
    service.change("2")
    service.signal(service.id, "handle", body)
    assert service.values() == "21"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/health", "http://169.254.169.254/latest/", "https://[::1]/", "http://10.0.0.9/"]
)
def test_a_url_that_this_service_may_not_ask_is_refused_before_anything_is_stored(url: str) -> None:
    service = Group(1, gated=False)
    with pytest.raises(Rejected, match="the operator can allow it") as refused:
        service.update(service.id, resources("2", 1, gated=False, checks=["https://8.8.8.8/", url]))
    assert refused.value.path[-5:] == ("group", "update_policy", "rollout", "checks", 1)
    assert service.values() == "1"
