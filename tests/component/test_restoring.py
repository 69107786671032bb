"""Snapshots of whole stacks through the whole service: a stack is restored from one."""

import json
from typing import Any

import pytest
from sqlalchemy import update

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.model.errors import Rejected
from homeostat.model.intent import LeftAlone
from homeostat.store import schema
from homeostat.store.stacks import action_begin, stacks
from tests.component.running import double, group, server, template, volume
from tests.component.stack_snapshots import (
    SLOW,
    WEB,
    copy_of,
    object_of,
    restore,
    snapshot,
    stack_of,
    take_snapshot,
)

# -- going back --------------------------------------------------------------------------------------------------------


def test_a_stack_goes_back_with_its_data() -> None:
    service, stack_id = stack_of(SLOW)
    before = {name: service.row(stack_id, name).handle for name in WEB}
    id = take_snapshot(service, stack_id)
    service.update(stack_id, {"web": server(flavor="large"), "disk": volume(name="other"), "late": volume()})
    service.rest()
    restore(service, stack_id, id)
    assert set(service.states(stack_id)) == set(WEB)
    assert service.row(stack_id, "web").handle == before["web"]
    assert service.row(stack_id, "disk").handle == before["disk"]
    web, disk = object_of(service, stack_id, "web"), object_of(service, stack_id, "disk")
    assert (web["image"], web["flavor"]) == (copy_of(service, stack_id, id, "web"), "small")
    assert disk["backup_id"] == copy_of(service, stack_id, id, "disk")
    assert disk["name"] != "other"
    assert len(service.cloud.things("volume")) == 1


def test_what_was_restored_stays_while_the_template_says_the_same() -> None:
    service, stack_id = stack_of()
    id = take_snapshot(service, stack_id)
    restore(service, stack_id, id)
    image = copy_of(service, stack_id, id, "web")
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
    service, stack_id = stack_of()
    id = take_snapshot(service, stack_id)
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
    service, stack_id = stack_of()
    id = take_snapshot(service, stack_id)
    service.update(stack_id, {"other": double()})
    assert service.cloud.things() == {}
    restore(service, stack_id, id)
    assert object_of(service, stack_id, "web")["image"] == copy_of(service, stack_id, id, "web")
    assert object_of(service, stack_id, "disk")["backup_id"] == copy_of(service, stack_id, id, "disk")


def test_once_it_is_restored_a_lost_thing_is_made_as_the_template_says() -> None:
    service, stack_id = stack_of()
    id = take_snapshot(service, stack_id)
    restore(service, stack_id, id)
    service.snapshots.delete(stack_id, id)
    service.live(10.0)
    service.cloud.vanish(service.row(stack_id, "web").handle)
    service.live(120.0)
    assert object_of(service, stack_id, "web")["image"] == "i", "the snapshot may be gone by then"


def test_a_smaller_volume_is_replaced_since_its_data_comes_from_the_backup() -> None:
    service, stack_id = stack_of()
    old = service.row(stack_id, "disk").handle
    id = take_snapshot(service, stack_id)
    service.update(stack_id, {**WEB, "disk": volume(size=9)})
    restore(service, stack_id, id)
    assert service.row(stack_id, "disk").handle != old
    disk = object_of(service, stack_id, "disk")
    assert (disk["size"], disk["backup_id"]) == (1, copy_of(service, stack_id, id, "disk"))


def nested() -> dict[str, str]:
    return {"inner.yaml": json.dumps(template({"disk": volume()}))}


@pytest.mark.parametrize("anew", [False, True])
def test_nested_stacks_go_back_too(anew: bool) -> None:
    resources = {"inner": {"type": "inner.yaml"}, "crowd": group(2, volume())}
    service, stack_id = stack_of(SLOW, resources, files=nested())
    id = take_snapshot(service, stack_id)
    assert len(service.cloud.all_snapshots()) == 3
    if anew:
        service.update(stack_id, {"other": double()})
        service.rest()
    restore(service, stack_id, id)
    children = {each.parent_name: each.id for each in service.stacks() if each.parent_id and not each.deleted_at}
    for path in (("inner", "disk"), ("crowd", "0"), ("crowd", "1")):
        disk = object_of(service, children[path[0]], path[1])
        assert disk["backup_id"] == copy_of(service, stack_id, id, *path)


def test_a_failed_restoration_is_rolled_back_where_that_is_wanted() -> None:
    service, stack_id = stack_of(disable_rollback=False)
    id = take_snapshot(service, stack_id)
    service.update(stack_id, {"other": double(), "late": double()})
    service.cloud.behaviour.faults.error = 1.0
    service.snapshots.restore(stack_id, id)
    service.work()
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert set(service.states(stack_id)) == {"other", "late"}


def test_a_failed_restoration_goes_on_when_the_stack_is_converged() -> None:
    service, stack_id = stack_of()
    id = take_snapshot(service, stack_id)
    service.update(stack_id, {"other": double()})
    service.cloud.behaviour.faults.error = 1.0
    service.snapshots.restore(stack_id, id)
    service.work()
    service.rest()
    assert service.state(stack_id) == "RESTORE_FAILED"
    service.cloud.behaviour.faults.error = 0.0
    service.live(10.0)
    with service.db.write() as tx:
        action_begin.converge(tx, stacks.live(tx, stack_id), service.clock.now(), 3600.0)
    service.live(1.0)
    service.rest()
    assert object_of(service, stack_id, "disk")["backup_id"] == copy_of(service, stack_id, id, "disk")


def test_an_update_wins_over_a_restoration_and_keeps_what_was_restored_by_then() -> None:
    service, stack_id = stack_of(SLOW)
    id = take_snapshot(service, stack_id)
    service.update(stack_id, {"other": double()})
    service.rest()
    service.snapshots.restore(stack_id, id)
    service.live(0.5)
    service.update(stack_id, {"web": server(), "more": volume()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert object_of(service, stack_id, "web")["image"] == copy_of(service, stack_id, id, "web")
    assert [each.get("backup_id") for each in service.cloud.things("volume").values()] == [None]


def test_a_failure_deep_inside_has_its_path_and_is_mended_by_the_next_update() -> None:
    service, stack_id = stack_of(
        CloudBehaviour(faults=Faults(snapshot=1.0)), {"inner": {"type": "inner.yaml"}}, files=nested()
    )
    service.snapshots.take(stack_id, None)
    service.work()
    service.rest()
    assert service.state(stack_id) == "SNAPSHOT_FAILED"
    assert "resources.inner.resources.disk: its snapshot" in service.stack(stack_id).reason
    before = list(service.cloud.things("volume"))
    service.cloud.behaviour.faults.snapshot = 0.0
    service.update(stack_id, {"inner": {"type": "inner.yaml"}}, files=nested())
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert list(service.cloud.things("volume")) == before
    take_snapshot(service, stack_id)


def test_a_nested_stack_that_is_asked_for_something_else_fails_the_snapshot() -> None:
    service, stack_id = stack_of(SLOW, {"inner": {"type": "inner.yaml"}}, files=nested())
    id = str(service.snapshots.take(stack_id, None).id)
    service.live(1.0)
    inner = service.child().id
    with service.db.write() as tx:
        child = stacks.live(tx, inner)
        action_begin.converge(tx, child, service.clock.now(), 3600.0)
    service.rest()
    assert service.state(stack_id) == "SNAPSHOT_FAILED"
    assert "UPDATE came in between" in snapshot(service, stack_id, id).reason


def test_drift_that_is_left_alone_is_not_forgotten_over_a_snapshot() -> None:
    service, stack_id = stack_of(resources={"disk": volume(description="ours")})
    with service.db.write() as tx:
        tx.execute(update(schema.stack).values(converge=False))
    handle = service.row(stack_id, "disk").handle
    service.cloud.change(handle, description="theirs")
    service.live(120.0)
    assert service.row(stack_id, "disk").intent == LeftAlone("description changed outside")
    take_snapshot(service, stack_id)
    assert service.row(stack_id, "disk").intent == LeftAlone("description changed outside")
    assert service.cloud.things()[handle]["description"] == "theirs"


def test_a_part_of_another_stack_is_kept_with_the_whole_only() -> None:
    service, _ = stack_of(None, {"inner": {"type": "inner.yaml"}}, files=nested())
    with pytest.raises(Rejected, match="take the whole"):
        service.snapshots.take(service.child().id, None)
