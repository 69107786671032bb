"""Snapshots of whole stacks through the whole service: taken and deleted."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.model.errors import Rejected
from homeostat.store.stacks import snapshots
from tests.component.running import Service, double, volume
from tests.component.stack_snapshots import (
    SLOW,
    WEB,
    copy_of,
    object_of,
    restore,
    snapshot,
    stack_of,
    sweep,
    take_snapshot,
)

# -- taking ------------------------------------------------------------------------------------------------------------


def test_everything_with_data_is_kept_and_the_rest_is_noted() -> None:
    service, stack_id = stack_of(SLOW)
    id = str(service.snapshots.take(stack_id, "before").id)
    service.live(2.0)
    assert service.state(stack_id) == "SNAPSHOT_IN_PROGRESS"
    row = snapshot(service, stack_id, id)
    assert (row.name, row.action, row.status, row.data) == ("before", "CREATE", "IN_PROGRESS", None)
    service.rest()
    assert service.state(stack_id) == "SNAPSHOT_COMPLETE"
    assert service.states(stack_id) == dict.fromkeys(WEB, "SNAPSHOT_COMPLETE")
    row = snapshot(service, stack_id, id)
    assert (row.status, row.reason) == ("COMPLETE", "Stack SNAPSHOT completed successfully")
    resources = row.data["resources"]
    image, backup = copy_of(service, stack_id, id, "web"), copy_of(service, stack_id, id, "disk")
    assert resources["web"]["resource_data"] == {"snapshot_image_id": image}
    assert resources["disk"]["resource_data"] == {"backup_id": backup}
    assert resources["other"]["resource_data"] == {}
    assert resources["web"]["resource_id"] == service.row(stack_id, "web").handle
    made = {each["id"]: each["status"] for each in service.cloud.all_snapshots()}
    assert made == {image: "available", backup: "available"}
    assert service.story(stack_id, "disk")[-2:] == ["disk SNAPSHOT_IN_PROGRESS", "disk SNAPSHOT_COMPLETE"]


def test_a_stack_that_is_busy_or_failed_or_suspended_is_refused() -> None:
    service = Service(SLOW)
    stack_id = service.begin(WEB)
    with pytest.raises(Rejected, match="already has an action") as refused:
        service.snapshots.take(stack_id, None)
    assert refused.value.code == 409
    broken = Service(CloudBehaviour(faults=Faults(error=1.0)))
    failed = broken.create({"disk": volume()})
    broken.rest()
    with pytest.raises(Rejected, match="CREATE_FAILED"):
        broken.snapshots.take(failed, None)


def test_there_is_a_limit() -> None:
    service, stack_id = stack_of(resources={"other": double()})
    for _ in range(32):
        take_snapshot(service, stack_id)
    with pytest.raises(Rejected, match="maximum snapshots") as refused:
        service.snapshots.take(stack_id, None)
    assert refused.value.fault == "RequestLimitExceeded"
    assert service.snapshots.take(stack_id, None, unlimited=True).id


def test_a_snapshot_that_fails_says_why_and_leaves_the_stack_as_it_is() -> None:
    service, stack_id = stack_of(CloudBehaviour(faults=Faults(snapshot=1.0)))
    handles = {name: service.row(stack_id, name).handle for name in WEB}
    id = str(service.snapshots.take(stack_id, None).id)
    service.work()
    service.rest()
    assert service.state(stack_id) == "SNAPSHOT_FAILED"
    row = snapshot(service, stack_id, id)
    assert row.status == "FAILED"
    assert "no room is left" in row.reason
    with pytest.raises(Rejected, match="only a complete one"):
        service.snapshots.restore(stack_id, id)
    service.cloud.behaviour.faults.snapshot = 0.0
    service.live(600.0)
    service.update(stack_id, {**WEB, "more": double()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert {name: service.row(stack_id, name).handle for name in WEB} == handles, "nothing was replaced for it"
    take_snapshot(service, stack_id)
    service.snapshots.delete(stack_id, id)
    service.live(10.0)
    assert snapshot(service, stack_id, id) is None
    assert {each["status"] for each in service.cloud.all_snapshots()} == {"available"}


def test_after_a_failed_snapshot_what_vanishes_is_healed_all_the_same() -> None:
    service, stack_id = stack_of(CloudBehaviour(faults=Faults(snapshot=1.0)))
    service.snapshots.take(stack_id, None)
    service.work()
    service.rest()
    service.cloud.behaviour.faults.snapshot = 0.0
    service.cloud.vanish(service.row(stack_id, "web").handle)
    service.live(120.0)
    assert len(service.servers()) == 1


def test_what_a_user_changed_before_a_snapshot_failed_is_mended_by_the_next_update() -> None:
    """It was judged by the answer that told of the failure."""
    resources = {"disk": volume(description="mine")}
    service, stack_id = stack_of(CloudBehaviour(faults=Faults(snapshot=1.0)), resources)
    service.cloud.change(service.row(stack_id, "disk").handle, description="by hand")
    service.snapshots.take(stack_id, None)
    service.work()
    service.rest()
    assert service.states(stack_id) == {"disk": "SNAPSHOT_FAILED"}
    service.update(stack_id, resources)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert [thing["description"] for thing in service.cloud.things("volume").values()] == ["mine"]


def test_a_thing_that_is_gone_fails_the_snapshot() -> None:
    service, stack_id = stack_of()
    service.cloud.vanish(service.row(stack_id, "disk").handle)
    service.snapshots.take(stack_id, None)
    service.work()
    assert service.state(stack_id) == "SNAPSHOT_FAILED"
    assert "resources.disk: it was gone before a snapshot" in service.stack(stack_id).reason
    service.live(120.0)
    assert len(service.cloud.things("volume")) == 1, "it is healed"


def test_an_update_in_between_ends_it_and_nothing_is_leaked() -> None:
    service, stack_id = stack_of(SLOW)
    id = str(service.snapshots.take(stack_id, None).id)
    service.live(2.0)
    service.update(stack_id, {**WEB, "more": double()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    row = snapshot(service, stack_id, id)
    assert (row.status, row.reason) == ("FAILED", "Stack UPDATE came in between")
    service.snapshots.delete(stack_id, id)
    service.live(10.0)
    assert service.cloud.all_snapshots() == []


def test_what_takes_too_long_is_failed() -> None:
    service, stack_id = stack_of(CloudBehaviour(snapshot_s=600.0), timeout_mins=1)
    id = str(service.snapshots.take(stack_id, None).id)
    service.rest()
    assert (service.state(stack_id), snapshot(service, stack_id, id).reason) == ("SNAPSHOT_FAILED", "Timed out")


def test_lost_answers_make_no_second_snapshot() -> None:
    service, stack_id = stack_of(SLOW)
    service.cloud.behaviour.faults.lost = 1.0
    service.snapshots.take(stack_id, None)
    service.live(3.0)
    service.cloud.behaviour.faults.lost = 0.0
    service.rest()
    assert service.state(stack_id) == "SNAPSHOT_COMPLETE"
    assert len(service.cloud.all_snapshots()) == 2


def test_a_copy_whose_maker_died_is_made_anew() -> None:
    service, stack_id = stack_of(SLOW)
    service.snapshots.take(stack_id, None)
    service.live(2.0)
    service.cloud.lose_snapshots(service.row(stack_id, "disk").handle)
    service.rest()
    assert service.state(stack_id) == "SNAPSHOT_COMPLETE"


# -- deleting ----------------------------------------------------------------------------------------------------------


def test_a_deleted_snapshot_takes_its_copies_along() -> None:
    service, stack_id = stack_of()
    first, second = take_snapshot(service, stack_id), take_snapshot(service, stack_id)
    service.snapshots.delete(stack_id, first)
    assert snapshot(service, stack_id, first).action == "DELETE"
    service.live(10.0)
    assert snapshot(service, stack_id, first) is None
    left = {copy_of(service, stack_id, second, name) for name in ("web", "disk")}
    assert {each["id"] for each in service.cloud.all_snapshots()} == left
    with pytest.raises(Rejected, match="could not be found"):
        service.snapshots.delete(stack_id, first)


def test_one_that_is_being_taken_or_restored_is_not_deleted() -> None:
    service, stack_id = stack_of(SLOW)
    id = str(service.snapshots.take(stack_id, None).id)
    with pytest.raises(Rejected, match="in-progress snapshot"):
        service.snapshots.delete(stack_id, id)
    service.rest()
    service.snapshots.restore(stack_id, id)
    with pytest.raises(Rejected, match="while it is restored"):
        service.snapshots.delete(stack_id, id)


def test_an_outage_only_delays_a_deletion() -> None:
    service, stack_id = stack_of()
    id = take_snapshot(service, stack_id)
    service.cloud.behaviour.faults.unreachable = 1.0
    service.snapshots.delete(stack_id, id)
    service.live(60.0)
    assert snapshot(service, stack_id, id).status == "IN_PROGRESS"
    service.cloud.behaviour.faults.unreachable = 0.0
    service.live(30.0)
    assert snapshot(service, stack_id, id) is None
    assert service.cloud.all_snapshots() == []


def test_the_snapshots_go_with_their_stack() -> None:
    service, stack_id = stack_of(SLOW)
    take_snapshot(service, stack_id)
    id = str(service.snapshots.take(stack_id, None).id)
    service.live(1.0)
    service.delete(stack_id)
    assert snapshot(service, stack_id, id).status == "FAILED"
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert snapshot(service, stack_id, id) is None
    sweep(service)
    assert service.cloud.all_snapshots() == []


def test_of_an_abandoned_stack_only_those_go_that_were_deleted_before() -> None:
    service, stack_id = stack_of()
    kept, deleted = take_snapshot(service, stack_id), take_snapshot(service, stack_id)
    stays = {copy_of(service, stack_id, kept, name) for name in ("web", "disk")}
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    service.snapshots.delete(stack_id, deleted)
    service.moving.abandon(stack_id)
    service.rest()
    service.cloud.behaviour.faults = Faults()
    sweep(service)
    assert {each["id"] for each in service.cloud.all_snapshots()} == stays


def test_a_deletion_that_is_taken_back_keeps_them() -> None:
    service, stack_id = stack_of(SLOW)
    id = take_snapshot(service, stack_id)
    service.stack_service.delete(stack_id)
    service.live(0.5)
    service.update(stack_id, WEB)
    service.rest()
    restore(service, stack_id, id)
    assert object_of(service, stack_id, "disk")["backup_id"] == copy_of(service, stack_id, id, "disk")


def test_a_part_that_comes_after_its_snapshot_was_deleted_is_swept_away() -> None:
    service, stack_id = stack_of(SLOW)
    id = str(service.snapshots.take(stack_id, None).id)
    operate = service.cloud.operate

    def overtaken(kind: str, operations: Any) -> Any:
        service.cloud.operate = operate  # type: ignore[method-assign]
        with service.db.write() as tx:
            snapshots.fail(tx, id, "overtaken")
            snapshots.remove(tx, id, "p", service.clock.now())
        return operate(kind, operations)

    service.cloud.operate = overtaken  # type: ignore[method-assign]
    service.work()
    service.rest()
    sweep(service)
    assert service.cloud.all_snapshots() == []


def test_what_goes_with_a_deleted_stack_is_no_leak(caplog: pytest.LogCaptureFixture) -> None:
    service, stack_id = stack_of(SLOW)
    take_snapshot(service, stack_id)
    service.delete(stack_id)
    service.rest()
    sweep(service)
    assert service.cloud.all_snapshots() == []
    assert [each for each in caplog.records if each.levelname == "WARNING"] == []
