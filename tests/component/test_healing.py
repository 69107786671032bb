"""Nothing healthy is lost: what one look does not find is looked for again, and what comes back is kept."""

from dataclasses import replace

import pytest

from homeostat.clouds.port import ChangeNotice
from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.services.marks import MarkRequest, Marks
from tests.component.running import LIMITS, Service, server, volume


def lose(service: Service, kind: str, handle: str) -> None:
    """The cloud does not find it for now, and tells of a change."""
    service.cloud.hide(handle)
    service.clock.time += 1
    service.observer.notice([ChangeNotice(kind, handle)])


def test_what_one_look_did_not_find_is_looked_for_again_and_kept() -> None:
    service = Service()
    stack_id = service.create({"disk": volume()})
    service.rest()
    (disk,) = service.cloud.things("volume")
    lose(service, "volume", disk)
    service.work()
    service.cloud.unhide(disk)
    service.live(120)
    assert list(service.cloud.things("volume")) == [disk]
    assert service.story(stack_id, "disk") == ["disk CREATE_IN_PROGRESS", "disk CREATE_COMPLETE"]


def test_what_two_looks_did_not_find_is_made_anew_within_a_second() -> None:
    service = Service()
    service.create({"a": server()})
    service.rest()
    (gone,) = service.servers()
    service.cloud.vanish(gone)
    service.clock.time += 1
    service.observer.notice([ChangeNotice("server", gone)])
    service.live(0.5)
    assert service.servers() not in ([], [gone])


def test_a_pass_that_looked_for_longer_than_its_slice_makes_what_it_did_not_find() -> None:
    """Found by the simulation (seed 30241698): it gave the shard back, and every pass after it had to look again."""
    service = Service()
    service.reconciler.limits = replace(LIMITS, slice_s=2.0)
    stack_id = service.create({"a": server(), "disk": volume()})
    service.rest()
    (gone,) = service.servers()
    service.cloud.vanish(gone)
    service.clock.time += 1
    service.observer.notice([ChangeNotice("server", gone)])
    observe = service.cloud.observe

    def slowly(kind: str, handles: list[str]) -> object:
        service.clock.time += 3.0
        return observe(kind, handles)

    service.cloud.observe = slowly  # type: ignore
    service.live(60)
    assert service.servers() not in ([], [gone])
    assert service.states(stack_id) == {"a": "CREATE_COMPLETE", "disk": "CREATE_COMPLETE"}


def test_a_cloud_that_does_not_answer_the_second_look_is_asked_again_at_growing_intervals() -> None:
    service = Service()
    service.create({"disk": volume()})
    service.rest()
    (disk,) = service.cloud.things("volume")
    lose(service, "volume", disk)
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    service.live(300)
    service.cloud.unhide(disk)
    service.cloud.behaviour.faults = Faults()
    service.live(120)
    assert list(service.cloud.things("volume")) == [disk]


@pytest.mark.parametrize("after_s", [0.5, 3.0, 9.0], ids=lambda after_s: f"after {after_s} s")
def test_what_comes_back_while_another_one_is_made_stays_and_that_one_goes(after_s: float) -> None:
    """C1: the healthy old one is never deleted as a leftover."""
    service = Service(CloudBehaviour(build_s=10.0))
    stack_id = service.create({"disk": volume()})
    service.rest()
    (disk,) = service.cloud.things("volume")
    lose(service, "volume", disk)
    service.live(after_s)
    assert len(service.cloud.things("volume")) == 2
    service.cloud.unhide(disk)
    service.live(120)
    assert list(service.cloud.things("volume")) == [disk]
    assert service.states(stack_id) == {"disk": "CHECK_COMPLETE"}
    assert service.row(stack_id, "disk").handle == disk
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_what_a_user_says_is_well_comes_back_without_a_second_event_of_that() -> None:
    """Found by the simulation (seed 39007511): its check was complete already, and the event was no change."""
    service = Service(CloudBehaviour(build_s=10.0))
    stack_id = service.create({"disk": volume()})
    service.rest()
    (disk,) = service.cloud.things("volume")
    lose(service, "volume", disk)
    service.live(3.0)
    (outcome,) = Marks(service.db).mark(stack_id, MarkRequest(False, "it is there"), {"": disk})
    assert outcome.state == "CHECK_COMPLETE"
    service.cloud.unhide(disk)
    service.live(120)
    assert list(service.cloud.things("volume")) == [disk]
    assert service.row(stack_id, "disk").handle == disk
    mine = [f"{each.action}_{each.status}" for each in service.events(stack_id, "disk") if each.handle == disk]
    assert mine == ["CREATE_COMPLETE", "CHECK_FAILED", "CHECK_COMPLETE"]


def test_a_user_of_what_came_back_uses_it_still() -> None:
    service = Service(CloudBehaviour(build_s=5.0))
    service.create({"disk": volume(), "a": server(metadata={"disk": {"get_resource": "disk"}})})
    service.rest()
    (disk,) = service.cloud.things("volume")
    (machine,) = service.servers()
    lose(service, "volume", disk)
    service.live(3.0)
    service.cloud.unhide(disk)
    service.live(120)
    assert sorted(service.cloud.things()) == sorted([disk, machine])
    assert service.cloud.things()[machine]["metadata"] == {"disk": disk}


def test_what_comes_back_after_another_one_was_made_is_let_go_of() -> None:
    """Nobody can tell which of the two holds the data: neither is deleted, and an event tells of it."""
    service = Service(CloudBehaviour(build_s=5.0))
    stack_id = service.create({"disk": volume()})
    service.rest()
    (disk,) = service.cloud.things("volume")
    lose(service, "volume", disk)
    delete = service.cloud.delete
    asked: list[str] = []
    service.cloud.delete = lambda kind, handles: (asked.extend(handles), delete(kind, handles))[1]  # type: ignore
    service.live(60)
    service.cloud.unhide(disk)
    service.live(600)
    assert disk in service.cloud.things("volume")
    assert len(service.cloud.things("volume")) == 2
    assert asked == []
    assert service.states(stack_id) == {"disk": "CREATE_COMPLETE"}


def test_what_comes_back_just_before_its_row_goes_is_reported_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(CloudBehaviour(build_s=5.0))
    stack_id = service.create({"disk": volume()})
    service.rest()
    (disk,) = service.cloud.things("volume")
    lose(service, "volume", disk)
    observe = service.cloud.observe

    def back_at_last(kind: str, handles: list[str]) -> object:
        if len(service.cloud.things("volume")) == 2 and handles == [disk]:
            service.cloud.unhide(disk)
        return observe(kind, handles)

    service.live(4.0)
    monkeypatch.setattr(service.cloud, "observe", back_at_last)
    service.live(60)
    assert disk in service.cloud.things("volume")
    (event,) = [each for each in service.events(stack_id, "disk") if "came back" in each.reason]
    assert "delete it yourself" in event.reason


def test_a_stack_that_is_deleted_deletes_what_came_back() -> None:
    service = Service(CloudBehaviour(build_s=5.0))
    stack_id = service.create({"disk": volume()})
    service.rest()
    (disk,) = service.cloud.things("volume")
    lose(service, "volume", disk)
    service.live(2.0)
    service.cloud.unhide(disk)
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things() == {}


def test_an_update_that_failed_is_no_reason_to_replace_what_cannot_be_seen() -> None:
    service = Service()
    stack_id = service.create({"disk": volume(size=2)})
    service.rest()
    (disk,) = service.cloud.things("volume")
    service.update(stack_id, {"disk": volume(size=1)})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    lose(service, "volume", disk)
    service.cloud.unhide(disk)
    service.update(stack_id, {"disk": volume(size=2)})
    service.rest()
    assert list(service.cloud.things("volume")) == [disk]
