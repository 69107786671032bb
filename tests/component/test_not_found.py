"""A cloud that does not find what it is to delete may be wrong: what turns up again soon is removed, or stays and is
told of, as its deletion policy says."""

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation, Presence
from homeostat.store.shards import orphans
from tests.component.running import Service, server, volume


def with_a_disk_denied() -> tuple[Service, str]:
    """A service whose cloud did not find a disk when its stack was deleted; and the disk, which is there."""
    service = Service()
    stack_id = service.create({"disk": volume()})
    service.rest()
    disk = service.row(stack_id, "disk").handle
    service.cloud.hide(disk)
    service.delete(stack_id)
    service.rest()
    return service, disk


def sweep(service: Service, *, for_s: float) -> None:
    for _ in range(round(for_s / orphans.LOOK_S)):
        service.clock.time += orphans.LOOK_S
        service.observer.sweep()


@pytest.mark.parametrize(
    "behaviour", [CloudBehaviour(), CloudBehaviour(delete_s=3.0, listing_lag_s=2.0)], ids=["at once", "slow"]
)
@pytest.mark.shows("CV18")
def test_what_turns_up_after_its_stack_is_gone_is_removed(behaviour: CloudBehaviour) -> None:
    service = Service(behaviour)
    stack_id = service.create({"disk": volume(), "other": server()})
    service.rest()
    disk = service.row(stack_id, "disk").handle
    service.cloud.hide(disk)
    service.delete(stack_id)
    service.rest()
    assert service.stack(stack_id).deleted_at is not None
    assert disk in service.cloud.things()
    service.live(60.0)
    service.cloud.unhide(disk)
    service.live(30.0)
    assert service.cloud.things() == {}


def test_what_turns_up_while_a_hook_stops_its_deletion_at_the_end_is_removed() -> None:
    service = Service()
    hooks = {"resource_registry": {"resources": {"disk": {"hooks": "post-delete"}}}}
    stack_id = service.create({"disk": volume()}, environment=hooks)
    service.rest()
    disk = service.row(stack_id, "disk").handle
    service.cloud.hide(disk)
    service.delete(stack_id)
    service.live(10.0)
    assert service.row(stack_id, "disk").handle == ""
    service.cloud.unhide(disk)
    service.live(60.0)
    assert service.cloud.things() == {}


def test_what_is_not_found_until_its_time_is_over_is_looked_for_once_more_then() -> None:
    """A look that was under way while the time ran out says nothing about what is there afterwards."""
    service, disk = with_a_disk_denied()
    find = service.cloud.find

    def slowly(kind: str, tokens: list[str]) -> object:
        looks = find(kind, tokens)
        service.clock.time += orphans.PATIENCE_S
        service.cloud.unhide(disk)
        return looks

    service.clock.time += orphans.LOOK_S
    service.cloud.find = slowly  # type: ignore[method-assign, assignment]
    service.observer.sweep()
    service.cloud.find = find  # type: ignore[method-assign]
    service.observer.sweep()
    assert service.cloud.things() == {}


def test_what_was_seen_again_and_could_not_be_removed_is_watched_on() -> None:
    """It is missed just when its time is over, since its deletion was refused as long as it was seen."""
    service, disk = with_a_disk_denied()
    service.cloud.unhide(disk)
    service.cloud.change(disk, locked=True)
    service.clock.time += orphans.PATIENCE_S - 2.0 * orphans.LOOK_S
    service.observer.sweep()
    service.cloud.hide(disk)
    service.clock.time += 2.0 * orphans.LOOK_S
    service.observer.sweep()
    service.cloud.unhide(disk)
    service.cloud.change(disk, locked=False)
    service.clock.time += orphans.LOOK_S
    service.observer.sweep()
    assert service.cloud.things() == {}


@pytest.mark.parametrize("silence", ["it does not answer", "it cannot tell"])
def test_time_in_which_the_cloud_does_not_answer_does_not_count(silence: str) -> None:
    service, disk = with_a_disk_denied()

    def silent(kind: str, tokens: list[str]) -> list[Observation]:
        if silence == "it does not answer":
            raise Transient(silence)
        return [Observation(Presence.UNKNOWN, "", reason=silence) for _ in tokens]

    find = service.cloud.find
    service.cloud.find = silent  # type: ignore[method-assign, assignment]
    sweep(service, for_s=orphans.PATIENCE_S)
    service.cloud.find = find  # type: ignore[method-assign]
    sweep(service, for_s=orphans.LOOK_S)
    service.cloud.unhide(disk)
    sweep(service, for_s=orphans.LOOK_S)
    assert service.cloud.things() == {}


def test_time_without_observations_does_not_count() -> None:
    """It could not be removed when it was seen; then no worker was there for long, and the first looks miss it."""
    service, disk = with_a_disk_denied()
    service.cloud.unhide(disk)
    service.cloud.change(disk, locked=True)
    sweep(service, for_s=orphans.LOOK_S)
    service.cloud.hide(disk)
    service.clock.time += orphans.PATIENCE_S
    sweep(service, for_s=30.0)
    service.cloud.unhide(disk)
    service.cloud.change(disk, locked=False)
    sweep(service, for_s=orphans.LOOK_S)
    assert service.cloud.things() == {}


def test_what_is_deleted_is_not_looked_for_any_more() -> None:
    """What the cloud has deleted costs no looks afterwards."""
    service = Service()
    stack_id = service.create({"disk": volume(), "other": server()})
    service.rest()
    service.delete(stack_id)
    service.rest()
    with service.db.read() as tx:
        assert not orphans.any_due(tx, service.clock.now() + orphans.PATIENCE_S)


def test_what_waits_for_its_snapshot_is_not_removed_when_it_turns_up() -> None:
    """Its data was to be kept: that it is left over is told by its last event."""
    service = Service()
    stack_id = service.create({"disk": {**volume(), "deletion_policy": "Snapshot"}})
    service.rest()
    disk = service.row(stack_id, "disk").handle
    service.cloud.hide(disk)
    service.delete(stack_id)
    service.rest()
    service.cloud.unhide(disk)
    service.live(60.0)
    assert disk in service.cloud.things()


@pytest.mark.parametrize(
    ("policy", "hindered", "reason", "stays"),
    [
        ("Delete", "deletion", "state changed", False),
        ("Snapshot", "deletion", "state changed; its snapshot is snapshot-", False),
        ("Snapshot", "snapshot", "it was gone before a snapshot of it could be made", True),
    ],
    ids=["deleted", "after its snapshot", "without its snapshot"],
)
def test_what_could_not_be_deleted_and_is_not_found_then_is_removed_or_named(
    policy: str, hindered: str, reason: str, stays: bool
) -> None:
    service = Service()
    stack_id = service.create({"disk": {**volume(), "deletion_policy": policy}})
    service.rest()
    disk = service.row(stack_id, "disk").handle
    service.cloud.change(disk, locked=True)
    service.cloud.behaviour.faults = Faults(snapshot=1.0 if hindered == "snapshot" else 0.0)
    service.delete(stack_id)
    service.live(30.0)
    assert service.state(stack_id) == "DELETE_FAILED"
    service.cloud.hide(disk)
    service.live(400.0)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    last = service.events(stack_id, "disk")[-1]
    assert (last.handle, last.reason.startswith(reason)) == (disk, True)
    service.cloud.change(disk, locked=False)
    service.cloud.unhide(disk)
    service.live(60.0)
    assert (disk in service.cloud.things()) == stays
