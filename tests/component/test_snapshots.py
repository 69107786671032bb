"""Deletion policy Snapshot through the whole service: no thing goes before its snapshot is complete (CV12, CV14)."""

import json

import pytest
from sqlalchemy import select

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.model.errors import Rejected
from homeostat.store import schema
from tests.component.running import Service, double, server, volume

SLOW = CloudBehaviour(snapshot_s=5.0, delete_s=1.0)


def snapshotted(**properties: object) -> dict[str, object]:
    return {**volume(**properties), "deletion_policy": "Snapshot"}


def living(behaviour: CloudBehaviour | None = None, **resources: dict[str, object]) -> tuple[Service, str, str]:
    """A service with a complete stack of one volume (or of these resources): service, stack, handle of `disk`."""
    service = Service(behaviour)
    stack_id = service.create(resources or {"disk": snapshotted()})
    service.rest()
    return service, stack_id, service.row(stack_id, "disk").handle


def words(service: Service, handle: str) -> list[str]:
    return [each["status"] for each in service.cloud.snapshots(handle)]


def reasons(service: Service, stack_id: str, name: str = "disk") -> list[str]:
    table = schema.event
    with service.db.read() as tx:
        chosen = select(table.c.reason).where(table.c.stack_id == stack_id, table.c.name == name).order_by(table.c.seq)
        return list(tx.execute(chosen).scalars())


@pytest.mark.shows("CV12")
def test_a_volume_goes_once_its_snapshot_is_complete() -> None:
    service, stack_id, handle = living(SLOW)
    service.delete(stack_id)
    service.live(3.0)
    assert words(service, handle) == ["creating"]
    assert list(service.cloud.things("volume")) == [handle]
    row = service.row(stack_id, "disk")
    assert row.reason.startswith("a snapshot is made first")
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.cloud.things() == {}
    assert words(service, handle) == ["available"]
    (snapshot,) = service.cloud.snapshots(handle)
    assert reasons(service, stack_id)[-1] == f"state changed; its snapshot is {snapshot['id']}"
    assert reasons(service, stack_id)[-2] == "a snapshot is made first, as its deletion policy says"


def test_where_nothing_takes_time_it_is_one_go() -> None:
    service, stack_id, handle = living()
    service.delete(stack_id)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert words(service, handle) == ["available"]


def test_a_server_removed_from_the_template_leaves_an_image() -> None:
    service, stack_id, handle = living(SLOW, disk={**server(), "deletion_policy": "Snapshot"}, other=double())
    service.update(stack_id, {"other": double()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.servers() == []
    assert words(service, handle) == ["available"]


def test_a_replaced_one_leaves_a_snapshot() -> None:
    service, stack_id, old = living(SLOW)
    service.update(stack_id, {"disk": snapshotted(image="other")})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert old not in service.cloud.things("volume")
    assert words(service, old) == ["available"]
    assert words(service, service.row(stack_id, "disk").handle) == []


def test_what_never_came_to_be_is_just_deleted() -> None:
    service = Service(CloudBehaviour(faults=Faults(error=1.0)))
    stack_id = service.create({"disk": snapshotted()})
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    handles = {row.handle for row in service.rows(stack_id)} | set(service.cloud.things("volume"))
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.cloud.things() == {}
    assert not any(service.cloud.snapshots(handle) for handle in handles)


def test_a_member_of_a_nested_stack_obeys_its_own_policy() -> None:
    nested: dict[str, object] = {"heat_template_version": "2018-08-31", "resources": {"disk": snapshotted()}}
    service = Service(SLOW)
    stack_id = service.create({"inner": {"type": "disks.yaml"}}, files={"disks.yaml": _text(nested)})
    service.rest()
    handle = service.row(service.child().id, "disk").handle
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert words(service, handle) == ["available"]


def _text(template: dict[str, object]) -> str:
    return json.dumps(template)


def test_a_lost_answer_makes_no_second_snapshot() -> None:
    service, stack_id, handle = living(SLOW)
    service.cloud.behaviour.faults.lost = 1.0
    service.delete(stack_id)
    service.live(2.0)
    service.cloud.behaviour.faults.lost = 0.0
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert words(service, handle) == ["available"]


def test_a_worker_that_dies_between_the_snapshot_and_the_deletion_is_followed_by_another() -> None:
    service, stack_id, handle = living()
    service.stack_service.delete(stack_id)
    operate = service.cloud.operate

    def die(kind: str, operations: object) -> object:
        operate(kind, operations)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    service.cloud.operate = die  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyboardInterrupt):
        service.work()
    service.cloud.operate = operate  # type: ignore[method-assign]
    assert words(service, handle) == ["available"]
    assert list(service.cloud.things("volume")) == [handle]
    service.live(10.0)  # the lease runs out
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert words(service, handle) == ["available"]
    assert service.cloud.things() == {}


def test_an_outage_deletes_nothing() -> None:
    service, stack_id, handle = living(SLOW)
    service.delete(stack_id)
    service.cloud.behaviour.faults.unreachable = 1.0
    service.live(30.0)
    service.cloud.behaviour.faults.unreachable = 0.0
    assert list(service.cloud.things("volume")) == [handle]
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert words(service, handle) == ["available"]


def test_a_snapshot_whose_maker_died_is_made_anew() -> None:
    service, stack_id, handle = living(SLOW)
    service.delete(stack_id)
    service.live(2.0)
    service.cloud.lose_snapshots(handle)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert words(service, handle) == ["available"]


def failed() -> tuple[Service, str, str]:
    """A stack whose deletion has failed since its snapshot did."""
    service, stack_id, handle = living(CloudBehaviour(faults=Faults(snapshot=1.0)))
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_FAILED"
    service.cloud.behaviour.faults.snapshot = 0.0
    return service, stack_id, handle


def test_a_failed_snapshot_keeps_the_thing_and_says_what_to_do() -> None:
    service, stack_id, handle = failed()
    assert list(service.cloud.things("volume")) == [handle]
    for reason in (service.row(stack_id, "disk").reason, service.stack(stack_id).reason):
        assert "no room is left" in reason
        assert "another deletion policy" in reason
    service.live(600.0)
    assert words(service, handle) == ["error"], "it is not tried again unasked"


def test_asking_once_more_makes_another_snapshot() -> None:
    service, stack_id, handle = failed()
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert words(service, handle) == ["error", "available"]


def hanging() -> tuple[Service, str, str]:
    """A volume was removed from the template, and its snapshot does not come to an end."""
    service, stack_id, handle = living(CloudBehaviour(snapshot_s=1e9), disk=snapshotted(), other=double())
    service.update(stack_id, {"other": double()})
    service.live(5.0)
    assert service.states(stack_id)["disk"] == "DELETE_IN_PROGRESS"
    return service, stack_id, handle


@pytest.mark.parametrize(("policy", "stays"), [("Delete", False), ("Retain", True)])
def test_another_policy_frees_a_snapshot_that_hangs(policy: str, stays: bool) -> None:
    service, stack_id, handle = hanging()
    service.update(stack_id, {"disk": {**volume(), "deletion_policy": policy}, "other": double()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert (handle in service.cloud.things("volume")) is stays
    assert service.row(stack_id, "disk").handle != handle


def test_a_replacement_whose_old_one_cannot_be_snapshotted_fails_at_once() -> None:
    service, stack_id, old = living(CloudBehaviour(faults=Faults(snapshot=1.0)))
    service.update(stack_id, {"disk": snapshotted(image="other")})
    service.live(5.0)
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert "Resource DELETE failed" in service.stack(stack_id).reason
    assert old in service.cloud.things("volume")
    service.cloud.behaviour.faults.snapshot = 0.0
    service.update(stack_id, {"disk": snapshotted(image="other")})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert old not in service.cloud.things("volume")
    assert words(service, old) == ["error", "available"]


def test_what_times_out_goes_on_when_it_is_asked_for_again() -> None:
    service = Service(CloudBehaviour(snapshot_s=90.0))
    stack_id = service.create({"disk": snapshotted()}, timeout_mins=1)
    service.rest()
    handle = service.row(stack_id, "disk").handle
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_FAILED"
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert words(service, handle) == ["available"]


def test_a_type_without_snapshots_is_refused() -> None:
    with pytest.raises(Rejected, match='"Snapshot" deletion policy not supported'):
        Service().begin({"t": {**double(), "deletion_policy": "Snapshot"}})
