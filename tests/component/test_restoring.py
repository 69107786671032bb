"""Snapshots of whole stacks through the whole service: taken, restored, deleted (engine-semantics.md section 6)."""

import json
from typing import Any

import pytest
from sqlalchemy import select, update

from homeostat.clouds.simulated import Faults, Weather
from homeostat.model.errors import Rejected
from homeostat.store import schema
from homeostat.store.stacks import snapshots, stacks
from tests.component.running import Service, double, group, server, template, volume

SLOW = Weather(snapshot_s=5.0, build_s=1.0, delete_s=1.0)
WEB = {"web": server(), "disk": volume(), "other": double()}


def living(weather: Weather | None = None, resources: dict[str, Any] = WEB, **options: Any) -> tuple[Service, str]:
    service = Service(weather)
    stack_id = service.create(resources, **options)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    return service, stack_id


def snapshot(service: Service, stack_id: str, id: str) -> Any:
    with service.db.read() as tx:
        return snapshots.get(tx, stack_id, id)


def take(service: Service, stack_id: str, name: str | None = None) -> str:
    """A complete snapshot; its id."""
    id = str(service.snapshots.take(stack_id, name).id)
    service.work()
    service.rest()
    assert snapshot(service, stack_id, id).status == "COMPLETE", snapshot(service, stack_id, id).reason
    return id


def restore(service: Service, stack_id: str, id: str) -> None:
    service.snapshots.restore(stack_id, id)
    service.work()
    service.rest()
    assert service.state(stack_id) == "RESTORE_COMPLETE", service.stack(stack_id).reason


def kept(service: Service, stack_id: str, id: str, *path: str) -> str:
    """Id of the cloud's snapshot of a resource: names of nested stacks, then its own."""
    entry = {"resources": snapshot(service, stack_id, id).data["resources"]}
    for name in path:
        entry = entry["resources"][name]
    (found,) = entry["resource_data"].values()  # type: ignore[attr-defined]
    return str(found)


def forsaken(service: Service) -> list[str]:
    with service.db.read() as tx:
        return list(tx.execute(select(schema.forsaken.c.token)).scalars())


def sweep(service: Service) -> None:
    """Until nothing is looked for any more that was given up."""
    for _ in range(200):
        if not forsaken(service):
            return
        service.live(5.0)
    raise AssertionError(f"still looked for: {forsaken(service)}")


def object_of(service: Service, stack_id: str, name: str) -> dict[str, Any]:
    return service.cloud.things()[service.row(stack_id, name).handle]


# -- taking ------------------------------------------------------------------------------------------------------------


def test_everything_with_data_is_kept_and_the_rest_is_noted() -> None:
    service, stack_id = living(SLOW)
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
    image, backup = kept(service, stack_id, id, "web"), kept(service, stack_id, id, "disk")
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
    broken = Service(Weather(faults=Faults(error=1.0)))
    failed = broken.create({"disk": volume()})
    broken.rest()
    with pytest.raises(Rejected, match="CREATE_FAILED"):
        broken.snapshots.take(failed, None)


def test_there_is_a_limit() -> None:
    service, stack_id = living(resources={"other": double()})
    for _ in range(32):
        take(service, stack_id)
    with pytest.raises(Rejected, match="maximum snapshots") as refused:
        service.snapshots.take(stack_id, None)
    assert refused.value.fault == "RequestLimitExceeded"
    assert service.snapshots.take(stack_id, None, unlimited=True).id


def test_a_snapshot_that_fails_says_why_and_leaves_the_stack_as_it_is() -> None:
    service, stack_id = living(Weather(faults=Faults(snapshot=1.0)))
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
    service.cloud.weather.faults.snapshot = 0.0
    service.live(600.0)
    service.update(stack_id, {**WEB, "more": double()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert {name: service.row(stack_id, name).handle for name in WEB} == handles, "nothing was replaced for it"
    take(service, stack_id)
    service.snapshots.delete(stack_id, id)
    service.live(10.0)
    assert snapshot(service, stack_id, id) is None
    assert {each["status"] for each in service.cloud.all_snapshots()} == {"available"}


def test_after_a_failed_snapshot_what_vanishes_is_healed_all_the_same() -> None:
    service, stack_id = living(Weather(faults=Faults(snapshot=1.0)))
    service.snapshots.take(stack_id, None)
    service.work()
    service.rest()
    service.cloud.weather.faults.snapshot = 0.0
    service.cloud.vanish(service.row(stack_id, "web").handle)
    service.live(120.0)
    assert len(service.servers()) == 1


def test_what_somebody_changed_before_a_snapshot_failed_is_mended_by_the_next_update() -> None:
    """It was judged by the answer that told of the failure."""
    resources = {"disk": volume(description="mine")}
    service, stack_id = living(Weather(faults=Faults(snapshot=1.0)), resources)
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
    service, stack_id = living()
    service.cloud.vanish(service.row(stack_id, "disk").handle)
    service.snapshots.take(stack_id, None)
    service.work()
    assert service.state(stack_id) == "SNAPSHOT_FAILED"
    assert "resources.disk: it was gone before a snapshot" in service.stack(stack_id).reason
    service.live(120.0)
    assert len(service.cloud.things("volume")) == 1, "it is healed"


def test_an_update_in_between_ends_it_and_nothing_is_leaked() -> None:
    service, stack_id = living(SLOW)
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
    service, stack_id = living(Weather(snapshot_s=600.0), timeout_mins=1)
    id = str(service.snapshots.take(stack_id, None).id)
    service.rest()
    assert (service.state(stack_id), snapshot(service, stack_id, id).reason) == ("SNAPSHOT_FAILED", "Timed out")


def test_lost_answers_make_no_second_snapshot() -> None:
    service, stack_id = living(SLOW)
    service.cloud.weather.faults.lost = 1.0
    service.snapshots.take(stack_id, None)
    service.live(3.0)
    service.cloud.weather.faults.lost = 0.0
    service.rest()
    assert service.state(stack_id) == "SNAPSHOT_COMPLETE"
    assert len(service.cloud.all_snapshots()) == 2


def test_a_copy_whose_maker_died_is_made_anew() -> None:
    service, stack_id = living(SLOW)
    service.snapshots.take(stack_id, None)
    service.live(2.0)
    service.cloud.lose_snapshots(service.row(stack_id, "disk").handle)
    service.rest()
    assert service.state(stack_id) == "SNAPSHOT_COMPLETE"


# -- going back --------------------------------------------------------------------------------------------------------


def test_a_stack_goes_back_with_its_data() -> None:
    service, stack_id = living(SLOW)
    before = {name: service.row(stack_id, name).handle for name in WEB}
    id = take(service, stack_id)
    service.update(stack_id, {"web": server(flavor="large"), "disk": volume(name="other"), "late": volume()})
    service.rest()
    restore(service, stack_id, id)
    assert set(service.states(stack_id)) == set(WEB)
    assert service.row(stack_id, "web").handle == before["web"]
    assert service.row(stack_id, "disk").handle == before["disk"]
    web, disk = object_of(service, stack_id, "web"), object_of(service, stack_id, "disk")
    assert (web["image"], web["flavor"]) == (kept(service, stack_id, id, "web"), "small")
    assert disk["backup_id"] == kept(service, stack_id, id, "disk")
    assert disk["name"] != "other"
    assert len(service.cloud.things("volume")) == 1


def test_what_was_restored_stays_while_the_template_says_the_same() -> None:
    service, stack_id = living()
    id = take(service, stack_id)
    restore(service, stack_id, id)
    image = kept(service, stack_id, id, "web")
    service.live(600.0)
    service.update(stack_id, WEB)
    assert object_of(service, stack_id, "web")["image"] == image
    service.update(stack_id, {**WEB, "web": server(flavor="large")})
    assert (object_of(service, stack_id, "web")["image"], service.state(stack_id)) == (image, "UPDATE_COMPLETE")
    service.update(stack_id, {**WEB, "web": server(image="newer")})
    assert object_of(service, stack_id, "web")["image"] == "newer"
    service.update(stack_id, WEB)
    assert object_of(service, stack_id, "web")["image"] == "i"


def test_the_same_snapshot_is_restored_as_often_as_it_is_asked_for() -> None:
    service, stack_id = living()
    id = take(service, stack_id)
    asked: list[tuple[str, ...]] = []
    update = service.cloud.update

    def noted(kind: str, changes: Any) -> Any:
        asked.extend(each.changed for each in changes)
        return update(kind, changes)

    service.cloud.update = noted  # type: ignore[method-assign]
    for _ in range(2):
        restore(service, stack_id, id)
        assert sorted(asked) == [("backup_id",), ("image",)]
        asked.clear()


def test_what_was_lost_is_made_from_its_snapshot() -> None:
    service, stack_id = living()
    id = take(service, stack_id)
    service.update(stack_id, {"other": double()})
    assert service.cloud.things() == {}
    restore(service, stack_id, id)
    assert object_of(service, stack_id, "web")["image"] == kept(service, stack_id, id, "web")
    assert object_of(service, stack_id, "disk")["backup_id"] == kept(service, stack_id, id, "disk")


def test_once_it_is_restored_a_lost_thing_is_made_as_the_template_says() -> None:
    service, stack_id = living()
    id = take(service, stack_id)
    restore(service, stack_id, id)
    service.snapshots.delete(stack_id, id)
    service.live(10.0)
    service.cloud.vanish(service.row(stack_id, "web").handle)
    service.live(120.0)
    assert object_of(service, stack_id, "web")["image"] == "i", "the snapshot may be gone by then"


def test_a_smaller_volume_is_replaced_since_its_data_comes_from_the_backup() -> None:
    service, stack_id = living()
    old = service.row(stack_id, "disk").handle
    id = take(service, stack_id)
    service.update(stack_id, {**WEB, "disk": volume(size=9)})
    restore(service, stack_id, id)
    assert service.row(stack_id, "disk").handle != old
    disk = object_of(service, stack_id, "disk")
    assert (disk["size"], disk["backup_id"]) == (1, kept(service, stack_id, id, "disk"))


def nested() -> dict[str, str]:
    return {"inner.yaml": json.dumps(template({"disk": volume()}))}


@pytest.mark.parametrize("anew", [False, True])
def test_nested_stacks_go_back_too(anew: bool) -> None:
    resources = {"inner": {"type": "inner.yaml"}, "crowd": group(2, volume())}
    service, stack_id = living(SLOW, resources, files=nested())
    id = take(service, stack_id)
    assert len(service.cloud.all_snapshots()) == 3
    if anew:
        service.update(stack_id, {"other": double()})
        service.rest()
    restore(service, stack_id, id)
    children = {each.parent_name: each.id for each in service.stacks() if each.parent_id and not each.deleted_at}
    for path in (("inner", "disk"), ("crowd", "0"), ("crowd", "1")):
        disk = object_of(service, children[path[0]], path[1])
        assert disk["backup_id"] == kept(service, stack_id, id, *path)


def test_a_failed_restoration_is_rolled_back_where_that_is_wanted() -> None:
    service, stack_id = living(disable_rollback=False)
    id = take(service, stack_id)
    service.update(stack_id, {"other": double(), "late": double()})
    service.cloud.weather.faults.error = 1.0
    service.snapshots.restore(stack_id, id)
    service.work()
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert set(service.states(stack_id)) == {"other", "late"}


def test_a_failed_restoration_goes_on_when_the_stack_is_converged() -> None:
    service, stack_id = living()
    id = take(service, stack_id)
    service.update(stack_id, {"other": double()})
    service.cloud.weather.faults.error = 1.0
    service.snapshots.restore(stack_id, id)
    service.work()
    service.rest()
    assert service.state(stack_id) == "RESTORE_FAILED"
    service.cloud.weather.faults.error = 0.0
    service.live(10.0)
    with service.db.write() as tx:
        stacks.converge(service.db, tx, stacks.live(service.db, tx, stack_id), service.clock.now(), 3600.0)
    service.live(1.0)
    service.rest()
    assert object_of(service, stack_id, "disk")["backup_id"] == kept(service, stack_id, id, "disk")


def test_an_update_wins_over_a_restoration_and_keeps_what_was_restored_by_then() -> None:
    service, stack_id = living(SLOW)
    id = take(service, stack_id)
    service.update(stack_id, {"other": double()})
    service.rest()
    service.snapshots.restore(stack_id, id)
    service.live(0.5)
    service.update(stack_id, {"web": server(), "more": volume()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert object_of(service, stack_id, "web")["image"] == kept(service, stack_id, id, "web")
    assert [each.get("backup_id") for each in service.cloud.things("volume").values()] == [None]


def test_a_failure_deep_inside_is_told_by_its_path_and_mended_by_the_next_update() -> None:
    service, stack_id = living(Weather(faults=Faults(snapshot=1.0)), {"inner": {"type": "inner.yaml"}}, files=nested())
    service.snapshots.take(stack_id, None)
    service.work()
    service.rest()
    assert service.state(stack_id) == "SNAPSHOT_FAILED"
    assert "resources.inner.resources.disk: its snapshot" in service.stack(stack_id).reason
    before = list(service.cloud.things("volume"))
    service.cloud.weather.faults.snapshot = 0.0
    service.update(stack_id, {"inner": {"type": "inner.yaml"}}, files=nested())
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert list(service.cloud.things("volume")) == before
    take(service, stack_id)


def test_a_nested_stack_that_is_asked_for_something_else_fails_the_snapshot() -> None:
    service, stack_id = living(SLOW, {"inner": {"type": "inner.yaml"}}, files=nested())
    id = str(service.snapshots.take(stack_id, None).id)
    service.live(1.0)
    inner = service.child().id
    with service.db.write() as tx:
        child = stacks.live(service.db, tx, inner)
        stacks.converge(service.db, tx, child, service.clock.now(), 3600.0)
    service.rest()
    assert service.state(stack_id) == "SNAPSHOT_FAILED"
    assert "UPDATE came in between" in snapshot(service, stack_id, id).reason


def test_drift_that_is_left_alone_is_not_forgotten_over_a_snapshot() -> None:
    service, stack_id = living(resources={"disk": volume(description="ours")})
    with service.db.write() as tx:
        tx.execute(update(schema.stack).values(converge=False))
    handle = service.row(stack_id, "disk").handle
    service.cloud.change(handle, description="theirs")
    service.live(120.0)
    assert service.row(stack_id, "disk").intent == {"left": "description changed outside"}
    take(service, stack_id)
    assert service.row(stack_id, "disk").intent == {"left": "description changed outside"}
    assert service.cloud.things()[handle]["description"] == "theirs"


def test_a_part_of_another_stack_is_kept_with_the_whole_only() -> None:
    service, _ = living(None, {"inner": {"type": "inner.yaml"}}, files=nested())
    with pytest.raises(Rejected, match="take the whole"):
        service.snapshots.take(service.child().id, None)


# -- deleting ----------------------------------------------------------------------------------------------------------


def test_a_deleted_snapshot_takes_its_copies_along() -> None:
    service, stack_id = living()
    first, second = take(service, stack_id), take(service, stack_id)
    service.snapshots.delete(stack_id, first)
    assert snapshot(service, stack_id, first).action == "DELETE"
    service.live(10.0)
    assert snapshot(service, stack_id, first) is None
    left = {kept(service, stack_id, second, name) for name in ("web", "disk")}
    assert {each["id"] for each in service.cloud.all_snapshots()} == left
    with pytest.raises(Rejected, match="could not be found"):
        service.snapshots.delete(stack_id, first)


def test_one_that_is_being_taken_or_restored_is_not_deleted() -> None:
    service, stack_id = living(SLOW)
    id = str(service.snapshots.take(stack_id, None).id)
    with pytest.raises(Rejected, match="in-progress snapshot"):
        service.snapshots.delete(stack_id, id)
    service.rest()
    service.snapshots.restore(stack_id, id)
    with pytest.raises(Rejected, match="while it is restored"):
        service.snapshots.delete(stack_id, id)


def test_an_outage_only_delays_a_deletion() -> None:
    service, stack_id = living()
    id = take(service, stack_id)
    service.cloud.weather.faults.unreachable = 1.0
    service.snapshots.delete(stack_id, id)
    service.live(60.0)
    assert snapshot(service, stack_id, id).status == "IN_PROGRESS"
    service.cloud.weather.faults.unreachable = 0.0
    service.live(30.0)
    assert snapshot(service, stack_id, id) is None
    assert service.cloud.all_snapshots() == []


def test_the_snapshots_go_with_their_stack() -> None:
    service, stack_id = living(SLOW)
    take(service, stack_id)
    id = str(service.snapshots.take(stack_id, None).id)
    service.live(1.0)
    service.delete(stack_id)
    assert snapshot(service, stack_id, id).status == "FAILED"
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert snapshot(service, stack_id, id) is None
    sweep(service)
    assert service.cloud.all_snapshots() == []


def test_a_deletion_that_is_taken_back_keeps_them() -> None:
    service, stack_id = living(SLOW)
    id = take(service, stack_id)
    service.stack_service.delete(stack_id)
    service.live(0.5)
    service.update(stack_id, WEB)
    service.rest()
    restore(service, stack_id, id)
    assert object_of(service, stack_id, "disk")["backup_id"] == kept(service, stack_id, id, "disk")


def test_a_part_that_comes_after_its_snapshot_was_deleted_is_swept_away() -> None:
    service, stack_id = living(SLOW)
    id = str(service.snapshots.take(stack_id, None).id)
    operate = service.cloud.operate

    def overtaken(kind: str, operations: Any) -> Any:
        service.cloud.operate = operate  # type: ignore[method-assign]
        with service.db.write() as tx:
            snapshots.fail(tx, id, "overtaken")
            snapshots.remove(service.db, tx, id, "p", service.clock.now())
        return operate(kind, operations)

    service.cloud.operate = overtaken  # type: ignore[method-assign]
    service.work()
    service.rest()
    sweep(service)
    assert service.cloud.all_snapshots() == []
