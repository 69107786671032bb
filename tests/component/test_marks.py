"""Resources that people mark unhealthy: replaced at once or by the next update, once; marks that end (MU)."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.stages.loading import load_world
from homeostat.convergence.stages.passing import Pass
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.status import Action
from homeostat.planner.report.explain import ShardStatus, explain
from homeostat.services.actions import ConvergenceSettings
from homeostat.services.marks import DEFAULT_REASON, MarkRequest, Marks
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.store.stacks.locks import Lock
from tests.component.marked import OFF, PAIR, UNHEALTHY, WELL, mark, refused, send_marks, started
from tests.component.running import Service, double, group, server, template, volume

# -- the state ---------------------------------------------------------------------------------------------------------


@pytest.mark.shows("MU2")
def test_what_is_marked_has_failed_its_check_and_stays_so_whatever_is_seen() -> None:
    service, stack_id = started()
    mark(service, stack_id, "srv")
    service.live(300.0)
    srv = service.row(stack_id, "srv")
    assert service.states(stack_id)["srv"] == "CHECK_FAILED"
    assert srv.reason == DEFAULT_REASON
    assert service.story(stack_id, "srv")[-1] == "srv CHECK_FAILED"
    assert service.state(stack_id) == "CHECK_FAILED"


@pytest.mark.shows("MU4")
def test_by_physical_id_and_with_a_reason() -> None:
    service, stack_id = started()
    mark(service, stack_id, service.servers()[0], MarkRequest(True, "it smells"))
    assert service.row(stack_id, "srv").reason == "it smells"


@pytest.mark.shows("MU2")
def test_false_makes_complete_what_has_failed_its_check_and_nothing_else() -> None:
    service, stack_id = started()
    (outcome,) = send_marks(service, stack_id, WELL, "srv")
    assert not outcome.changed
    assert service.states(stack_id)["srv"] == "CREATE_COMPLETE"
    mark(service, stack_id, "srv")
    (outcome,) = send_marks(service, stack_id, WELL, "srv")
    service.live(100.0)
    assert (outcome.state, outcome.changed) == ("CHECK_COMPLETE", True)
    assert service.states(stack_id)["srv"] == "CHECK_COMPLETE"
    service.update(stack_id, PAIR)
    assert len(service.servers()) == 1
    assert "srv CREATE_IN_PROGRESS" not in service.story(stack_id, "srv")[2:]


def test_what_was_never_made_is_not_well_because_a_user_says_so() -> None:
    """Found by the simulation (seed 30202011): what it was to replace was deleted by the next update."""
    service = Service(CloudBehaviour(quota=1))
    stack_id = service.create({"it": volume()})
    service.rest()
    service.update(stack_id, {"it": server()})
    service.rest()
    _, before = service.rows(stack_id)
    assert (before.type, before.action, before.status) == ("OS::Nova::Server", "CREATE", "FAILED")
    mark(service, stack_id, "it")
    mark(service, stack_id, "it", WELL)
    _, after = service.rows(stack_id)
    assert (after.action, after.status, after.reason, after.marks) == ("CREATE", "FAILED", before.reason, None)
    service.update(stack_id, {"it": server()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert len(service.cloud.things("volume")) == 1


@pytest.mark.parametrize("mark_request", [WELL, MarkRequest(True, lasts_s=1.0)], ids=["marked well", "time is over"])
def test_what_was_never_made_and_fails_its_check_goes_on_failing_it(mark_request: MarkRequest) -> None:
    service = Service(CloudBehaviour(quota=0))
    stack_id = service.begin({"it": server()})
    service.rest()
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    before = service.row(stack_id, "it")
    assert (before.action, before.status) == ("CHECK", "FAILED")
    mark(service, stack_id, "it", mark_request)
    service.live(10.0)
    after = service.row(stack_id, "it")
    assert (after.action, after.status, after.reason) == ("CHECK", "FAILED", before.reason)
    assert not send_marks(service, stack_id, WELL, "it")[0].changed


def test_what_was_taken_back_is_judged_by_what_is_seen_of_it() -> None:
    service, stack_id = started(converge=True)
    service.actions.switch(stack_id, OFF)
    mark(service, stack_id, "srv")
    service.cloud.vanish(service.servers()[0])
    service.live(100.0)
    mark(service, stack_id, "srv", WELL)
    service.actions.switch(stack_id, ConvergenceSettings({"converge": True}))
    service.rest()
    service.live(10.0)
    assert len(service.servers()) == 1


def test_a_mark_ends_by_itself_when_nothing_acts_on_it() -> None:
    service, stack_id = started()
    mark(service, stack_id, "srv", MarkRequest(True, lasts_s=600.0))
    service.live(599.0)
    assert service.states(stack_id)["srv"] == "CHECK_FAILED"
    service.live(2.0)
    assert service.states(stack_id)["srv"] == "CHECK_COMPLETE"
    assert service.row(stack_id, "srv").marks is None
    service.update(stack_id, PAIR)
    assert len(service.servers()) == 1


def test_a_mark_ends_also_in_a_stack_that_has_failed() -> None:
    """Convergence is off, so nobody acts on the mark."""
    service, stack_id = started({"srv": server()})
    service.update(stack_id, {"srv": server(), "bad": double(fail=True)})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    mark(service, stack_id, "srv", MarkRequest(True, lasts_s=60.0))
    assert service.states(stack_id)["srv"] == "CHECK_FAILED"
    service.live(61.0)
    assert service.states(stack_id)["srv"] == "CHECK_COMPLETE"


def test_a_mark_ends_also_in_a_stack_that_is_suspended() -> None:
    service, stack_id = started({"srv": server()})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    mark(service, stack_id, "srv", MarkRequest(True, lasts_s=600.0))
    assert service.states(stack_id)["srv"] == "CHECK_FAILED"
    service.live(601.0)
    assert service.states(stack_id)["srv"] == "CHECK_COMPLETE"
    service.actions.begin(stack_id, Action.RESUME)
    service.rest()
    assert service.states(stack_id)["srv"] == "RESUME_COMPLETE"


def test_a_mark_ends_in_a_locked_stack_when_that_is_unlocked() -> None:
    service, stack_id = started({"srv": server()})
    mark(service, stack_id, "srv", MarkRequest(True, lasts_s=60.0))
    lock: Lock = {"level": "all", "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": None}
    service.actions.lock(stack_id, lock, lambda _: True)
    service.rest()
    before = service.row(stack_id, "srv")
    service.live(100.0)
    assert service.row(stack_id, "srv") == before
    service.actions.unlock(stack_id, lambda _: True)
    service.rest()
    service.live(10.0)
    assert service.row(stack_id, "srv").marks is None


def test_a_check_of_the_stack_does_not_take_a_mark_away() -> None:
    service, stack_id = started()
    mark(service, stack_id, "srv", MarkRequest(True, "it smells"))
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert service.state(stack_id) == "CHECK_FAILED"
    assert "it smells" in service.stack(stack_id).reason
    service.update(stack_id, PAIR)
    service.rest()
    assert service.states(stack_id) == {"srv": "CREATE_COMPLETE", "user": "UPDATE_COMPLETE"}


@pytest.mark.parametrize("marked", [server(), group(1)], ids=["its own snapshot", "snapshots of what is in it"])
def test_a_snapshot_of_the_stack_does_not_take_a_mark_away(marked: dict[str, Any]) -> None:
    """Found by the simulation (seed 30236118): it said SNAPSHOT_COMPLETE, and so did its stack, where nobody acts."""
    service, stack_id = started({"it": marked})
    before = service.row(stack_id, "it").handle
    mark(service, stack_id, "it", MarkRequest(True, "it smells"))
    service.snapshots.take(stack_id, None)
    service.rest()
    service.live(10.0)
    assert service.story(stack_id, "it")[-3:] == ["it SNAPSHOT_IN_PROGRESS", "it SNAPSHOT_COMPLETE", "it CHECK_FAILED"]
    assert (service.state(stack_id), service.row(stack_id, "it").reason) == ("CHECK_FAILED", "it smells")
    service.update(stack_id, {"it": marked})
    service.rest()
    service.live(10.0)
    assert service.row(stack_id, "it").handle != before
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_a_mark_ends_also_after_a_snapshot_of_the_stack() -> None:
    service, stack_id = started()
    mark(service, stack_id, "srv", MarkRequest(True, lasts_s=60.0))
    service.snapshots.take(stack_id, None)
    service.rest()
    service.live(30.0)
    assert service.states(stack_id)["srv"] == "CHECK_FAILED"
    service.live(31.0)
    assert service.states(stack_id)["srv"] == "CHECK_COMPLETE"
    assert service.state(stack_id) == "CHECK_COMPLETE"


# -- busy --------------------------------------------------------------------------------------------------------------


def test_what_is_being_made_cannot_be_marked() -> None:
    service = Service()
    stack_id = service.begin({"srv": server(), "t": double(wait_secs=50)})
    service.work()
    error = refused(service, stack_id, "t")
    assert (error.fault, error.code) == ("ActionInProgress", 409)
    assert "t is CREATE_IN_PROGRESS" in str(error)


def test_nothing_of_a_stack_that_is_being_deleted_can_be_marked() -> None:
    service, stack_id = started()
    service.stack_service.delete(stack_id)
    assert refused(service, stack_id, "srv").fault == "ActionInProgress"


def test_two_things_with_one_physical_id_have_to_be_named() -> None:
    service, stack_id = started({"a": server(), "b": server()})
    with service.db.write() as tx:
        tx.execute(schema.resource.update().where(schema.resource.c.name == "b").values(handle=service.servers()[0]))
    handle = service.servers()[0]
    error = refused(service, stack_id, handle)
    assert (error.fault, error.code) == ("PhysicalResourceIDAmbiguity", 400)
    assert "a, b" in str(error)


def test_a_pass_that_has_the_row_in_hand_begins_anew() -> None:
    """The mark comes between the loading of a pass and its first transaction: nothing of it is lost."""
    service, stack_id = started()
    (old,) = service.servers()
    service.stack_service.update(stack_id, StackRequest(template({**PAIR, "srv": server(metadata={"k": "v"})})))
    job = service.claim()
    converge, outcomes = service.reconciler.converge, list[Any]()

    def mark_first(current: Pass) -> None:
        outcomes.extend(Marks(service.db).mark(stack_id, UNHEALTHY, {"": "srv"}))
        converge(current)

    service.reconciler.converge = mark_first  # type: ignore[method-assign]
    run_pass(service.reconciler, job)
    service.reconciler.converge = converge  # type: ignore[method-assign]
    assert outcomes
    service.rest()
    service.live(60.0)
    (new,) = service.servers()
    assert new != old
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_nothing_of_a_locked_stack_is_marked_or_replaced_for_a_mark() -> None:
    service, stack_id = started(converge=True)
    (old,) = service.servers()
    Marks(service.db).mark(stack_id, UNHEALTHY, {"": "srv"})
    lock: Lock = {"level": "stacks", "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": None}
    service.actions.lock(stack_id, lock, lambda _: True)
    service.rest()
    service.live(100.0)
    assert service.servers() == [old]
    assert refused(service, stack_id, "srv").fault == "StackLocked"
    service.actions.unlock(stack_id, lambda _: True)
    service.rest()
    service.live(100.0)
    assert len(service.servers()) == 1
    assert service.servers() != [old]


# -- told --------------------------------------------------------------------------------------------------------------


def test_explain_says_why_it_does_not_move() -> None:
    service, stack_id = started()
    mark(service, stack_id, "srv", MarkRequest(True, "it smells", "ann", "nose", 600.0))
    with service.db.read() as tx:
        now = service.clock.now()
        world = load_world(tx, DesiredGraphs(), stack_id, 0, now).world
        explained = {each.name: each for each in explain(world, ShardStatus(now), now)}
    srv = explained["srv"]
    assert (srv.why, srv.reason, srv.rank) == ("unhealthy", "it smells", 0)
    assert srv.due_at == pytest.approx(now + 600.0)
    assert "an update of the stack" in srv.released_by
    assert explained["user"].cause == "srv"


def test_the_failures_of_a_group_are_counted_with_the_mark() -> None:
    service, stack_id = started({"grp": group(2)})
    child = service.child().id
    Marks(service.db).mark(stack_id, UNHEALTHY, {"": "grp/0"})
    with service.db.read() as tx:
        counted = tx.execute(schema.shard.select().where(schema.shard.c.stack_id == child)).one().failures
    assert counted == 1
    Marks(service.db).mark(stack_id, WELL, {"": "grp/0"})
    with service.db.read() as tx:
        counted = tx.execute(schema.shard.select().where(schema.shard.c.stack_id == child)).one().failures
    assert counted == 0


def test_what_is_marked_and_was_never_there_is_made_by_the_next_update() -> None:
    """Its creation timed out with nothing made: it is made in its own row, and the table of states knows."""
    service = Service()
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    stack_id = service.create({"srv": server()}, timeout_mins=1)
    service.rest()
    assert service.row(stack_id, "srv").handle == ""
    mark(service, stack_id, "srv")
    service.cloud.behaviour.faults = Faults()
    service.update(stack_id, {"srv": server()})
    service.rest()
    story = service.story(stack_id, "srv")
    assert story[-3:] == ["srv CHECK_FAILED", "srv CREATE_IN_PROGRESS", "srv CREATE_COMPLETE"]
    assert service.has_valid_history(stack_id, "srv")


def test_what_had_failed_when_it_was_marked_still_has_when_the_mark_is_over() -> None:
    """Found by the simulation (seed 30006202): it was told to be well, though it never had been."""
    service = Service()
    stack_id = service.begin({"bad": double(fail=True)})
    service.rest()
    assert service.states(stack_id) == {"bad": "CREATE_FAILED"}
    reason = service.row(stack_id, "bad").reason
    for _ in range(2):
        mark(service, stack_id, "bad", MarkRequest(unhealthy=True, reason="by hand", lasts_s=30.0))
        assert service.states(stack_id) == {"bad": "CHECK_FAILED"}
    service.live(60.0)
    assert service.states(stack_id) == {"bad": "CREATE_FAILED"}
    assert service.row(stack_id, "bad").reason == reason
    assert service.state(stack_id) == "CREATE_FAILED"
