"""The life of a small stack from end to end: passes over SQLite and a simulated cloud, on virtual time."""

from typing import Any

import pytest

from homeostat.clouds.port import ChangeNotice
from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.shards import shard_state
from tests.component.running import Service, double, server, template, volume

QUICK = CloudBehaviour()
SLOW = CloudBehaviour(build_s=3.0, delete_s=2.0)
LATE = CloudBehaviour(build_s=1.0, listing_lag_s=2.0)
BEHAVIOURS = pytest.mark.parametrize("behaviour", [QUICK, SLOW, LATE], ids=["at once", "slow", "listing late"])


def two() -> dict[str, object]:
    return {"disk": volume(), "srv": {**server(), "depends_on": "disk"}}


@BEHAVIOURS
def test_create(behaviour: CloudBehaviour) -> None:
    service = Service(behaviour)
    stack_id = service.create(two())
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.states(stack_id) == {"disk": "CREATE_COMPLETE", "srv": "CREATE_COMPLETE"}
    assert len(service.cloud.things()) == 2
    assert service.story(stack_id) == [
        "web CREATE_IN_PROGRESS",
        "disk CREATE_IN_PROGRESS",
        "disk CREATE_COMPLETE",
        "srv CREATE_IN_PROGRESS",
        "srv CREATE_COMPLETE",
        "web CREATE_COMPLETE",
    ]


@pytest.mark.shows("CV4", "CV6")
def test_a_dependant_begins_only_when_what_it_requires_is_seen_ready() -> None:
    service = Service(SLOW)
    stack_id = service.create(two())
    assert service.states(stack_id) == {"disk": "CREATE_IN_PROGRESS"}
    service.live(2.9)
    assert service.states(stack_id) == {"disk": "CREATE_IN_PROGRESS"}
    service.live(1.5)
    assert service.states(stack_id) == {"disk": "CREATE_COMPLETE", "srv": "CREATE_IN_PROGRESS"}


@BEHAVIOURS
def test_update_in_place_keeps_the_thing(behaviour: CloudBehaviour) -> None:
    service = Service(behaviour)
    stack_id = service.create({"srv": server()})
    service.rest()
    before = service.servers()
    service.update(stack_id, {"srv": server(metadata={"k": "v"})})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.servers() == before
    assert service.cloud.things()[before[0]]["metadata"] == {"k": "v"}


@BEHAVIOURS
def test_update_by_replacement_makes_a_new_thing_and_removes_the_old_one(behaviour: CloudBehaviour) -> None:
    service = Service(behaviour)
    stack_id = service.create({"srv": server()})
    service.rest()
    before = service.servers()
    service.update(stack_id, {"srv": server(key_name="k")})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.servers()) == 1
    assert service.servers() != before
    assert service.states(stack_id) == {"srv": "CREATE_COMPLETE"}


def test_the_old_server_serves_until_the_new_one_is_ready() -> None:
    service = Service(SLOW)
    stack_id = service.create({"srv": server()})
    service.rest()
    before = service.servers()
    service.update(stack_id, {"srv": server(key_name="k")})
    service.live(2.0)
    assert set(before) < set(service.servers())


@BEHAVIOURS
def test_what_an_update_leaves_out_is_removed(behaviour: CloudBehaviour) -> None:
    service = Service(behaviour)
    stack_id = service.create(two())
    service.rest()
    service.update(stack_id, {"disk": volume()})
    service.rest()
    assert service.servers() == []
    assert service.states(stack_id) == {"disk": "CREATE_COMPLETE"}


@BEHAVIOURS
@pytest.mark.shows("CV4")
def test_delete_runs_in_reverse_and_leaves_nothing(behaviour: CloudBehaviour) -> None:
    service = Service(behaviour)
    stack_id = service.create(two())
    service.rest()
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.stack(stack_id).deleted_at is not None
    assert service.rows(stack_id) == []
    assert service.cloud.things() == {}
    deletions = [line for line in service.story(stack_id) if "DELETE" in line]
    assert deletions == [
        "web DELETE_IN_PROGRESS",
        "srv DELETE_IN_PROGRESS",
        "srv DELETE_COMPLETE",
        "disk DELETE_IN_PROGRESS",
        "disk DELETE_COMPLETE",
        "web DELETE_COMPLETE",
    ]


def test_a_delete_in_the_middle_of_a_creation_wins() -> None:
    service = Service(SLOW)
    stack_id = service.create(two())
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.cloud.things() == {}


@pytest.mark.shows("CV12")
def test_a_retained_thing_stays_in_the_cloud() -> None:
    service = Service()
    stack_id = service.create({"disk": {**volume(), "deletion_policy": "Retain"}})
    service.rest()
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert len(service.cloud.things("volume")) == 1


# -- failure, rollback, time-out -------------------------------------------------------------------------------------


def test_a_failure_names_the_resource_and_the_reason() -> None:
    service = Service(CloudBehaviour(quota=1))
    stack_id = service.create({"a": server(), "b": {**server(), "depends_on": "a"}})
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    reason = "Resource CREATE failed: Terminal: resources.b: Quota exceeded: 1 things are allowed"
    assert service.stack(stack_id).reason == reason


@pytest.mark.shows("CV10")
def test_a_failed_stack_is_mended_by_an_update() -> None:
    service = Service(CloudBehaviour(quota=1))
    stack_id = service.create({"a": server(), "b": {**server(), "depends_on": "a"}})
    service.rest()
    service.cloud.behaviour.quota = None
    service.update(stack_id, {"a": server(), "b": {**server(), "depends_on": "a"}})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.servers()) == 2


def test_rollback_of_a_creation_leaves_an_empty_stack() -> None:
    service = Service(CloudBehaviour(quota=1))
    stack_id = service.create({"a": server(), "b": {**server(), "depends_on": "a"}}, disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert service.cloud.things() == {}
    assert service.rows(stack_id) == []


@pytest.mark.shows("CV11")
def test_rollback_of_an_update_goes_back_to_what_was_complete() -> None:
    service = Service()
    stack_id = service.create({"a": server(), "t": {**double(), "depends_on": "a"}}, disable_rollback=False)
    service.rest()
    before = service.servers()
    changed = {"a": server(key_name="k"), "t": {**double(fail=True), "depends_on": "a"}}
    service.update(stack_id, changed)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert service.servers() == before
    assert service.stack(stack_id).rollback_to == 1


@pytest.mark.parametrize("resources", [("t",), ("a", "b", "c", "t")], ids=["fewer", "more"])
def test_rollback_counts_the_resources_of_the_revision_that_it_goes_back_to(resources: tuple[str, ...]) -> None:
    service = Service()
    stack_id = service.create({"a": double(), "b": double()}, disable_rollback=False)
    service.rest()
    service.stack_service.update(
        stack_id, StackRequest(template({name: double(fail=name == "t") for name in resources}))
    )
    assert service.stack(stack_id).size == len(resources)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert service.stack(stack_id).size == 2


@pytest.mark.shows("CV11")
def test_a_failed_rollback_is_not_rolled_back() -> None:
    service = Service()
    stack_id = service.create({"a": server()}, disable_rollback=False)
    service.rest()
    service.update(stack_id, {"a": server(metadata={"v": "2"}), "t": double(fail=True, wait_secs=5)})
    service.cloud.change(service.row(stack_id, "a").handle, locked=True)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_FAILED"
    assert service.stack(stack_id).revision == 3


def test_time_out_fails_the_stack_and_what_is_in_progress() -> None:
    service = Service()
    stack_id = service.create({"t": double(wait_secs=-1)}, timeout_mins=1)
    service.live(59)
    assert service.state(stack_id) == "CREATE_IN_PROGRESS"
    service.live(2)
    assert service.state(stack_id) == "CREATE_FAILED"
    assert service.stack(stack_id).reason == "Timed out"
    assert service.states(stack_id) == {"t": "CREATE_FAILED"}


@pytest.mark.shows("CV14")
def test_an_update_frees_what_would_wait_for_ever() -> None:
    service = Service()
    stack_id = service.create({"t": double(action_wait_secs={"create": -1}), "srv": {**server(), "depends_on": "t"}})
    assert service.states(stack_id) == {"t": "CREATE_IN_PROGRESS"}
    service.update(stack_id, {"srv": server()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


@pytest.mark.shows("CV14")
def test_a_new_deletion_policy_frees_a_deletion_that_hangs() -> None:
    """CV14, the third stuck case."""
    service = Service()
    hanging = double(action_wait_secs={"delete": -1})
    stack_id = service.create({"t": hanging})
    service.update(stack_id, {})
    assert service.states(stack_id) == {"t": "DELETE_IN_PROGRESS"}
    service.update(stack_id, {"t": {**hanging, "deletion_policy": "Retain"}})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


@pytest.mark.shows("CV18")
def test_a_creation_whose_answer_is_lost_is_found_and_not_repeated() -> None:
    service = Service(CloudBehaviour(idempotent=False, faults=Faults(lost=1.0)))
    stack_id = service.create({"a": server()})
    service.cloud.behaviour.faults.lost = 0.0
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert len(service.servers()) == 1
    assert not service.cloud.doubled


@pytest.mark.parametrize(
    ("properties", "anew"),
    [
        ({"save_private_key": True}, True),
        ({"save_private_key": False}, False),
        ({"save_private_key": True, "public_key": "ssh-ed25519 AAAA"}, False),
    ],
)
def test_a_key_pair_whose_private_key_was_lost_with_an_answer_is_made_anew(
    properties: dict[str, Any], anew: bool
) -> None:
    service = Service(CloudBehaviour(faults=Faults(lost=1.0)))
    pair = {"type": "OS::Nova::KeyPair", "properties": {"name": "k", **properties}}
    stack_id = service.create({"key": pair})
    (made,) = service.cloud.things("keypair").values()
    service.cloud.behaviour.faults.lost = 0.0
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    (pair,) = service.cloud.things("keypair").values()
    assert (pair["fingerprint"] != made["fingerprint"]) is anew
    with service.db.read() as tx:
        (look,) = shard_state.load_rows(tx, stack_id, 0)[1].values()
    assert ("private_key" in look.observation.properties) is anew


def test_a_creation_that_times_out_without_an_answer_leaves_nothing_behind() -> None:
    service = Service(CloudBehaviour(faults=Faults(lost=1.0)))
    stack_id = service.create({"a": server()}, timeout_mins=1, disable_rollback=False)
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    service.live(70)
    service.cloud.behaviour.faults = Faults()
    service.live(120)
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert service.servers() == []


# -- healing ---------------------------------------------------------------------------------------------------------


@pytest.mark.shows("CV8")
def test_a_server_that_vanished_is_made_anew() -> None:
    service = Service()
    stack_id = service.create({"a": server()})
    service.rest()
    gone = service.servers()[0]
    service.cloud.vanish(gone)
    service.live(61)
    assert len(service.servers()) == 1
    assert service.servers() != [gone]
    assert service.state(stack_id) == "CREATE_COMPLETE", "healing is no action of the stack"
    assert service.story(stack_id, "a")[2:] == [
        "a CHECK_FAILED",
        "a CREATE_IN_PROGRESS",
        "a CREATE_COMPLETE",
        "a DELETE_COMPLETE",
    ]


def test_a_stopped_server_is_started_again() -> None:
    service = Service()
    stack_id = service.create({"a": server()})
    service.rest()
    handle = service.servers()[0]
    service.cloud.change(handle, status="stopped")
    service.live(61)
    assert service.cloud.things()[handle]["status"] == "active"
    assert service.story(stack_id, "a")[2:] == ["a CHECK_FAILED", "a UPDATE_IN_PROGRESS", "a UPDATE_COMPLETE"]


@pytest.mark.shows("CV8")
def test_what_changed_outside_is_brought_back() -> None:
    service = Service()
    service.create({"a": server(metadata={"k": "v"})})
    service.rest()
    handle = service.servers()[0]
    service.cloud.change(handle, metadata={"k": "other"})
    service.live(61)
    assert service.cloud.things()[handle]["metadata"] == {"k": "v"}


@pytest.mark.shows("CV13")
def test_a_server_in_error_gives_way_to_a_new_one() -> None:
    service = Service()
    service.create({"a": server()})
    service.rest()
    broken = service.servers()[0]
    service.cloud.change(broken, status="error")
    service.live(65)
    assert broken not in service.servers()
    assert len(service.servers()) == 1


def test_dependants_follow_what_was_healed() -> None:
    service = Service()
    stack_id = service.create({"a": server(), "t": double(value={"get_resource": "a"})})
    service.rest()
    service.cloud.vanish(service.servers()[0])
    service.live(61)
    assert service.row(stack_id, "t").properties["value"] == service.servers()[0]


@pytest.mark.shows("CV7")
def test_a_notice_of_the_cloud_brings_the_look_forward() -> None:
    service = Service()
    service.create({"a": server()})
    service.rest()
    gone = service.servers()[0]
    service.cloud.vanish(gone)
    service.clock.time += 1
    service.observer.notice([ChangeNotice("server", gone)])
    service.live(1.0)
    assert service.servers() not in ([], [gone])


def test_a_silent_cloud_is_no_reason_to_make_anything_anew() -> None:
    service = Service()
    stack_id = service.create({"a": server()})
    service.rest()
    before = service.servers()
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    service.live(600)
    service.cloud.behaviour.faults = Faults()
    service.live(120)
    assert service.servers() == before
    assert service.story(stack_id, "a") == ["a CREATE_IN_PROGRESS", "a CREATE_COMPLETE"]


@pytest.mark.shows("CV13")
def test_a_server_that_breaks_again_and_again_is_tried_at_growing_intervals_and_then_given_up() -> None:
    service = Service(CloudBehaviour(faults=Faults(error=1.0)))
    stack_id = service.create({"a": server()})
    started = service.clock.time
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert service.story(stack_id, "a").count("a CREATE_IN_PROGRESS") == 5
    assert service.clock.time - started >= 1 + 2 + 4
