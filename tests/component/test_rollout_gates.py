"""Gates of a rollout: the wait conditions of the revision that begins it, also those that come with it."""

import json
from typing import Any

import pytest

from homeostat.model.rollout import WaitGate
from homeostat.resources.registry import kind_of
from homeostat.services.marks import MarkRequest, Marks
from homeostat.store import schema
from tests.component.running import PROJECT, double
from tests.component.test_metadata_rollouts import ALARM, Group, resources

HANDLE = "OS::Heat::WaitConditionHandle"


def gates(service: Group) -> list[WaitGate]:
    with service.db.read() as tx:
        return list(tx.execute(schema.rollout.select()).one().settings.gates)


def handle_of(service: Group) -> str:
    """The newest handle."""
    (*_, newest) = service.records_of("signal_handle")
    return str(newest.id)


def gated(value: str, count: int = 1, **more: Any) -> dict[str, Any]:
    found = resources(value, **more)
    found["wait"]["properties"]["count"] = count
    return found


@pytest.mark.shows("RU6")
def test_a_gate_that_comes_with_the_new_metadata_is_one() -> None:
    service = Group(gated=False)
    service.update(service.id, resources("2"))
    service.live(1)
    assert service.values() == "2111"
    for number in range(4):
        assert service.values().count("2") == number + 1
        service.report(number)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("2222", "UPDATE_COMPLETE")


def test_a_gate_that_comes_with_the_new_metadata_says_no() -> None:
    service = Group(gated=False)
    service.update(service.id, resources("2"))
    service.live(1)
    service.report(0, "FAILURE", "no")
    service.rest()
    assert (service.values(), service.state(service.id)) == ("1111", "UPDATE_FAILED")


def test_what_members_have_reported_counts_for_the_condition_that_is_made_after_the_rollout() -> None:
    service = Group(gated=False)
    service.update(service.id, gated("2", 4))
    service.live(1)
    for number in range(4):
        service.report(number)
    service.live(1)
    assert service.state(service.id) == "UPDATE_COMPLETE"
    assert set(service.members) <= set(service.attribute(service.id, "wait", "data").replace('"', " ").split())


def grown(value: str, count: int) -> dict[str, Any]:
    """A group of so many members, all of which the condition waits for."""
    found = resources(value, count)
    found["wait"]["properties"]["count"] = count
    return found


def test_what_members_have_reported_counts_for_a_condition_that_waits_for_more_than_before() -> None:
    """Those that come boot slower than the rollout moves: they report to it, and to nothing else."""
    service = Group(3)
    service.update(service.id, grown("1", 3))
    for number in (0, 1, 2):
        service.signal(service.id, "handle", {"id": service.members[number]})
    service.live(1)
    service.update(service.id, grown("2", 6))
    service.live(1)
    for number in range(6):
        service.report(number)
    service.live(1)
    assert service.values() == "222222"
    assert service.state(service.id) == "UPDATE_COMPLETE"


def test_no_more_is_handed_on_to_a_condition_than_it_waits_for() -> None:
    service = Group(3)
    service.update(service.id, grown("2", 3))
    service.live(1)
    for number in range(3):
        service.report(number)
    service.live(1)
    assert service.state(service.id) == "UPDATE_COMPLETE"
    assert len(json.loads(service.attribute(service.id, "wait", "data"))) == 3


def test_it_waits_for_the_others_that_have_not_reported() -> None:
    service = Group(gated=False)
    service.update(service.id, gated("2", 6))
    service.live(1)
    for number in range(4):
        service.report(number)
    service.live(1)
    assert service.states(service.id)["wait"] == "CREATE_IN_PROGRESS"
    for name in ("a", "b"):
        service.signal(service.id, "handle", {"id": name})
    service.live(1)
    assert service.state(service.id) == "UPDATE_COMPLETE"


def test_a_handle_that_is_replaced_gates_with_its_successor() -> None:
    service = Group()
    before = handle_of(service)
    changed = resources("2")
    changed["handle"]["type"] = "OS::Heat::UpdateWaitConditionHandle"
    changed["wait"]["properties"]["timeout"] = 30
    service.update(service.id, changed)
    service.live(1)
    assert handle_of(service) != before
    assert [(each.handle, each.timeout_s) for each in gates(service)] == [(handle_of(service), 30)]
    url = _url(service)
    for number in range(4):
        assert service.values().count("2") == number + 1
        body = {"UniqueId": service.members[number], "Status": "SUCCESS", "Reason": "", "Data": ""}
        service.put(url, body)
        service.live(0.1)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("2222", "UPDATE_COMPLETE")


def _url(service: Group) -> str:
    (*_, newest) = service.records_of("signal_handle")
    return str(newest.object["url"])


def slowly(found: dict[str, Any], seconds: int) -> dict[str, Any]:
    """The same with a handle that comes late."""
    found["handle"] = {**found["handle"], "depends_on": ["slow"]}
    return {**found, "slow": double(value="x", wait_secs=seconds)}


def with_late_handle(value: str) -> dict[str, Any]:
    """The condition has another handle, which comes late."""
    found = slowly(resources(value), 60)
    found["late"] = found.pop("handle")
    found["wait"]["properties"]["handle"] = {"get_resource": "late"}
    return {**found, "handle": {"type": HANDLE}}


def test_no_member_is_reached_before_the_handle_is_there_to_which_it_signals() -> None:
    service = Group(gated=False)
    service.update(service.id, slowly(resources("2"), 60))
    service.live(50)
    assert service.values() == "1111"
    assert any("group: requires" in each for each in service.hindered())
    service.live(20)
    assert service.values() == "2111"


def test_a_correction_stops_the_wrong_metadata_at_once_although_its_own_handle_comes_late() -> None:
    service = Group()
    service.change("2")
    service.report(0)
    assert service.values() == "2211"
    service.update(service.id, with_late_handle("3"))
    service.live(50)
    service.signal(service.id, "handle", {"data": service.members[1]})
    assert service.values() == "1111"
    service.live(20)
    assert service.values() == "3111"
    service.signal(service.id, "late", {"data": service.members[0]})
    service.live(1)
    assert service.values() == "3311"


def test_a_rollout_that_waits_for_a_handle_stays_paused() -> None:
    service = Group()
    service.change("2")
    service.update(service.id, with_late_handle("3"))
    service.live(10)
    assert service.values() == "1111"
    service.rollouts.pause(service.group_row.key)
    service.live(100)
    assert service.values() == "1111"
    service.rollouts.resume(service.group_row.key)
    service.live(1)
    assert service.values() == "3111"


def test_a_handle_that_cannot_be_made_fails_the_stack_and_reaches_no_member() -> None:
    service = Group(gated=False)
    broken = slowly(resources("2"), 0)
    broken["slow"]["properties"] = {"value": "x", "fail": True}
    service.update(service.id, broken)
    service.rest()
    assert (service.values(), service.state(service.id), service.active()) == ("1111", "UPDATE_FAILED", 0)
    service.update(service.id, resources("2"))
    service.live(5)
    assert service.values() == "2111"


def test_a_handle_that_is_made_after_the_group_gates_nothing() -> None:
    service = Group(gated=False)
    circular = resources("2")
    circular["handle"]["depends_on"] = ["group"]
    service.update(service.id, circular)
    service.live(1)
    assert service.values() == "2222"
    service.signal(service.id, "handle", {})
    service.rest()
    assert service.state(service.id) == "UPDATE_COMPLETE"


def test_groups_whose_gates_wait_for_each_other_go_on() -> None:
    service = Group(gated=False)

    def both(value: str) -> dict[str, Any]:
        one, two = resources(value, 2), resources(value, 2)
        one["handle"]["depends_on"], two["handle"]["depends_on"] = ["other"], ["group"]
        two["wait"] = {**two["wait"], "depends_on": ["other"]}
        two["wait"]["properties"]["handle"] = {"get_resource": "handle2"}
        return {**one, "other": two["group"], "handle2": two["handle"], "wait2": two["wait"]}

    service.update(service.id, {**resources("1", gated=False), "other": resources("1", 2)["group"]})
    service.rest()
    service.update(service.id, both("2"))
    service.live(5)
    for name in ("handle", "handle2"):
        service.signal(service.id, name, {})
    service.rest()
    assert service.state(service.id) == "UPDATE_COMPLETE"


def test_alarms_to_a_handle_that_comes_with_the_new_metadata_stop_it() -> None:
    service = Group(gated=False, bake_time=30)
    changed = resources("2", gated=False, bake_time=30, alarms=["late"])
    service.update(service.id, {**changed, "late": {"type": HANDLE}})
    service.live(1)
    assert service.values() == "2111"
    service.signal(service.id, "late", ALARM)
    service.live(1)
    assert service.values() == "1111"


def put(service: Group, member: int, status: str = "SUCCESS") -> None:
    """A member signals to the newest handle."""
    body = {"status": status, "reason": "done", "data": service.members[member]}
    service.signals.native(PROJECT, kind_of(HANDLE), handle_of(service), body)
    service.live(0.1)


def mark(service: Group, name: str) -> None:
    Marks(service.db).mark(service.id, MarkRequest(True, "by hand"), {f"resources[{name}]": name})


def test_a_handle_that_is_marked_in_the_middle_gates_with_its_successor() -> None:
    service = Group()
    service.change("2")
    service.report(0)
    assert service.values() == "2211"
    before = handle_of(service)
    mark(service, "handle")
    service.live(5)
    assert handle_of(service) != before
    assert [each.handle for each in gates(service)] == [handle_of(service)]
    for number in range(1, 4):
        put(service, number)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("2222", "UPDATE_COMPLETE")


def test_what_members_reported_to_a_handle_counts_when_it_is_replaced_in_the_middle() -> None:
    service = Group(max_failures=1)
    service.change("2")
    service.report(0, "FAILURE", "no")
    assert service.values() == "2211"
    mark(service, "handle")
    service.live(5)
    assert service.values() == "2211"
    put(service, 1, "FAILURE")
    assert service.values() == "1111"


def test_a_rollout_that_is_held_stays_so_when_its_handle_is_replaced() -> None:
    service = Group(on_failure="hold")
    service.change("2")
    service.report(0, "FAILURE", "no")
    mark(service, "handle")
    service.live(5)
    assert [each.handle for each in gates(service)] == [handle_of(service)]
    assert service.values() == "2111"
    service.rollouts.resume(service.group_row.key)
    service.live(1)
    for number in range(1, 4):
        put(service, number)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("2222", "UPDATE_COMPLETE")


def test_a_handle_of_alarms_that_is_marked_in_the_middle_stops_it_with_its_successor() -> None:
    service = Group(gated=False, bake_time=30)
    changed = resources("2", gated=False, bake_time=30, alarms=["alarm"])
    service.update(service.id, {**changed, "alarm": {"type": HANDLE}})
    service.live(1)
    mark(service, "alarm")
    service.live(5)
    assert service.values() == "2111"
    service.signals.native(PROJECT, kind_of(HANDLE), handle_of(service), ALARM)
    service.live(1)
    assert service.values() == "1111"


def test_a_rollout_goes_on_while_the_next_handle_of_its_condition_is_made() -> None:
    service = Group()
    service.change("2")
    service.update(service.id, with_late_handle("2"))
    service.live(20)
    assert any("group: rollout" in each for each in service.hindered())
    service.report(0)
    assert service.values() == "2211"
    service.live(50)
    for number in range(1, 4):
        assert service.values().count("2") == number + 1
        service.signal(service.id, "late", {"data": service.members[number]})
        service.live(0.1)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("2222", "UPDATE_COMPLETE")
