"""Resources that people mark unhealthy: replaced at once or by the next update, once; marks that end (MU)."""

import itertools
from typing import Any

import pytest

from homeostat.api.services.actions import ConvergenceSettings, StackActions
from homeostat.api.services.marks import DEFAULT_REASON, MarkOutcome, MarkRequest, Marks
from homeostat.api.services.stacks import StackRequest
from homeostat.clouds.simulated import Faults, Weather
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.loader import load
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.errors import Rejected
from homeostat.model.status import resource_may
from homeostat.planner.report.explain import ShardStatus, explain
from homeostat.store import schema
from homeostat.store.stacks.locks import Lock
from tests.component.running import Service, double, group, server, template, volume

UNHEALTHY = MarkRequest(True)
WELL = MarkRequest(False)
OFF = ConvergenceSettings({"converge": False})
PAIR = {"srv": server(), "user": double(value={"get_resource": "srv"})}


def started(resources: dict[str, Any] = PAIR, *, converge: bool = False) -> tuple[Service, str]:
    """A stack that is complete; left alone between updates, unless told otherwise."""
    service = Service()
    stack_id = service.create(resources)
    service.rest()
    if not converge:
        StackActions(service.db, 3600.0).switch(stack_id, OFF)
        service.live(1.0)
    return service, stack_id


def say(service: Service, stack_id: str, said: MarkRequest, *targets: str) -> list[MarkOutcome]:
    return Marks(service.db).mark(stack_id, said, {f"resources[{place}]": each for place, each in enumerate(targets)})


def mark(service: Service, stack_id: str, target: str, said: MarkRequest = UNHEALTHY) -> None:
    Marks(service.db).mark(stack_id, said, {"": target})
    service.work()


def refused(service: Service, stack_id: str, *targets: str, said: MarkRequest = UNHEALTHY) -> Rejected:
    with pytest.raises(Rejected) as caught:
        say(service, stack_id, said, *targets)
    return caught.value


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
    (outcome,) = say(service, stack_id, WELL, "srv")
    assert not outcome.changed
    assert service.states(stack_id)["srv"] == "CREATE_COMPLETE"
    mark(service, stack_id, "srv")
    (outcome,) = say(service, stack_id, WELL, "srv")
    service.live(100.0)
    assert (outcome.state, outcome.changed) == ("CHECK_COMPLETE", True)
    assert service.states(stack_id)["srv"] == "CHECK_COMPLETE"
    service.update(stack_id, PAIR)
    assert len(service.servers()) == 1
    assert "srv CREATE_IN_PROGRESS" not in service.story(stack_id, "srv")[2:]


def test_what_was_never_made_is_not_well_because_somebody_says_so() -> None:
    """Found by the simulation (seed 30202011): what it was to replace was deleted by the next update."""
    service = Service(Weather(quota=1))
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


@pytest.mark.parametrize("said", [WELL, MarkRequest(True, lasts_s=1.0)], ids=["said to be well", "the time is over"])
def test_what_was_never_made_and_fails_its_check_goes_on_failing_it(said: MarkRequest) -> None:
    service = Service(Weather(quota=0))
    stack_id = service.begin({"it": server()})
    service.rest()
    StackActions(service.db, 3600.0).check(stack_id)
    service.rest()
    before = service.row(stack_id, "it")
    assert (before.action, before.status) == ("CHECK", "FAILED")
    mark(service, stack_id, "it", said)
    service.live(10.0)
    after = service.row(stack_id, "it")
    assert (after.action, after.status, after.reason) == ("CHECK", "FAILED", before.reason)
    assert not say(service, stack_id, WELL, "it")[0].changed


def test_what_was_taken_back_is_judged_by_what_is_seen_of_it() -> None:
    service, stack_id = started(converge=True)
    StackActions(service.db, 3600.0).switch(stack_id, OFF)
    mark(service, stack_id, "srv")
    service.cloud.vanish(service.servers()[0])
    service.live(100.0)
    mark(service, stack_id, "srv", WELL)
    StackActions(service.db, 3600.0).switch(stack_id, ConvergenceSettings({"converge": True}))
    service.rest()
    service.live(10.0)
    assert len(service.servers()) == 1


def test_a_mark_ends_by_itself_when_nobody_acts_on_it() -> None:
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
    """Nothing new is begun for it, so nobody acts on the mark."""
    service, stack_id = started({"srv": server()}, converge=True)
    service.update(stack_id, {"srv": server(), "bad": double(fail=True)})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    mark(service, stack_id, "srv", MarkRequest(True, lasts_s=60.0))
    assert service.states(stack_id)["srv"] == "CHECK_FAILED"
    service.live(61.0)
    assert service.states(stack_id)["srv"] == "CHECK_COMPLETE"


def test_a_check_of_the_stack_does_not_take_a_mark_away() -> None:
    service, stack_id = started()
    mark(service, stack_id, "srv", MarkRequest(True, "it smells"))
    StackActions(service.db, 3600.0).check(stack_id)
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


# -- replaced ----------------------------------------------------------------------------------------------------------


@pytest.mark.shows("MU7")
def test_the_next_update_replaces_it_once_and_references_follow() -> None:
    """Nothing of the template changes (MU7)."""
    service, stack_id = started()
    (old,) = service.servers()
    mark(service, stack_id, "srv")
    service.update(stack_id, PAIR)
    service.rest()
    (new,) = service.servers()
    assert new != old
    assert service.row(stack_id, "user").properties["value"] == new
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    story = service.story(stack_id)
    moved = story.index("user UPDATE_COMPLETE")
    assert story.index("srv CREATE_COMPLETE", story.index("srv CHECK_FAILED")) < moved
    assert moved < story.index("srv DELETE_IN_PROGRESS")
    service.update(stack_id, PAIR)
    assert service.servers() == [new]


def test_where_convergence_is_on_it_is_replaced_at_once() -> None:
    service, stack_id = started(converge=True)
    (old,) = service.servers()
    mark(service, stack_id, "srv")
    service.live(30.0)
    (new,) = service.servers()
    assert new != old
    assert service.states(stack_id)["srv"] == "CREATE_COMPLETE"
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_converging_it_by_hand_replaces_it() -> None:
    service, stack_id = started()
    (old,) = service.servers()
    mark(service, stack_id, "srv")
    StackActions(service.db, 3600.0).converge(stack_id, "srv")
    service.live(30.0)
    assert old not in service.servers()
    assert service.states(stack_id)["srv"] == "CREATE_COMPLETE"


def test_a_mark_in_the_middle_of_an_update_is_acted_on_by_it() -> None:
    """What the update is done with already is replaced all the same, and the update does not fail of it."""
    service, stack_id = started({"srv": server()})
    (old,) = service.servers()
    service.update(stack_id, {"srv": server(metadata={"k": "v"}), "slow": double(wait_secs=50)})
    assert service.states(stack_id) == {"srv": "UPDATE_COMPLETE", "slow": "CREATE_IN_PROGRESS"}
    mark(service, stack_id, "srv")
    service.rest()
    service.live(60.0)
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert old not in service.servers()
    assert len(service.servers()) == 1


@pytest.mark.shows("MU7")
def test_a_nested_stack_that_is_marked_is_replaced_as_a_whole() -> None:
    service, stack_id = started({"grp": group(2)})
    old = service.child().id
    before = service.servers()
    mark(service, stack_id, "grp")
    service.update(stack_id, {"grp": group(2)})
    service.rest()
    service.live(60.0)
    assert service.child().id != old
    assert len(service.servers()) == 2
    assert not set(before) & set(service.servers())


def test_a_restricted_one_is_not_replaced_by_itself() -> None:
    service = Service()
    restricted = {"resource_registry": {"resources": {"srv": {"restricted_actions": "replace"}}}}
    stack_id = service.create(PAIR, environment=restricted)
    service.rest()
    before = service.servers()
    mark(service, stack_id, "srv")
    service.live(100.0)
    assert service.servers() == before
    assert service.states(stack_id)["srv"] == "CHECK_FAILED"
    service.update(stack_id, PAIR, environment=restricted)
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert "replace is restricted" in service.stack(stack_id).reason
    service.update(stack_id, PAIR)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.servers() != before


def test_what_is_of_others_is_looked_at_anew_by_the_next_update() -> None:
    service = Service()
    theirs = service.create({"srv": server()}, name="theirs")
    service.rest()
    (handle,) = service.servers()
    ours = {"srv": {**server(), "external_id": handle, "properties": {}}}
    stack_id = service.create(ours, name="ours")
    service.rest()
    mark(service, stack_id, "srv")
    service.live(100.0)
    assert service.states(stack_id)["srv"] == "CHECK_FAILED"
    service.update(stack_id, ours)
    service.rest()
    assert service.states(stack_id)["srv"] == "UPDATE_COMPLETE"
    assert service.row(stack_id, "srv").marks is None
    assert service.servers() == [handle]
    assert service.state(theirs) == "CREATE_COMPLETE"


def test_what_is_listed_and_not_made_yet_is_no_unknown_name() -> None:
    service = Service(Weather(build_s=100.0))
    stack_id = service.create({"srv": server(), "after": {**server(), "depends_on": "srv"}})
    assert refused(service, stack_id, "after").fault == "ActionInProgress"
    assert refused(service, stack_id, "other").fault == "EntityNotFound"


# -- groups ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("converge", [True, False])
@pytest.mark.shows("MU8")
def test_a_member_is_replaced_under_its_name(converge: bool) -> None:
    """MU8: marked in its own stack, mended by an update of the group's that changes nothing, or at once."""
    service, stack_id = started({"grp": group(3)}, converge=converge)
    child = service.child().id
    before = {each.name: each.handle for each in service.rows(child)}
    mark(service, child, "1")
    if not converge:
        service.live(100.0)
        service.update(stack_id, {"grp": group(3)})
    service.rest()
    service.live(60.0)
    after = {each.name: each.handle for each in service.rows(child)}
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {"1"}
    assert len(service.servers()) == 3


@pytest.mark.shows("MU8")
def test_a_marked_member_goes_first_when_the_group_shrinks() -> None:
    member = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "small"}}

    def scaled(size: int) -> dict[str, Any]:
        properties = {"min_size": 1, "max_size": 5, "desired_capacity": size, "resource": member}
        return {"grp": {"type": "OS::Heat::AutoScalingGroup", "properties": properties}}

    service, stack_id = started(scaled(3))
    child = service.child().id
    before = {each.name: each.handle for each in service.rows(child)}
    mark(service, child, "1")
    service.update(stack_id, scaled(2))
    service.rest()
    service.live(60.0)
    after = {each.name: each.handle for each in service.rows(child)}
    assert after == {name: handle for name, handle in before.items() if name != "1"}


# -- many at once ------------------------------------------------------------------------------------------------------


@pytest.mark.shows("MU7")
def test_several_at_once_nested_ones_by_path() -> None:
    service, stack_id = started({"srv": server(), "grp": group(2)})
    handle = service.row(stack_id, "srv").handle
    outcomes = say(service, stack_id, MarkRequest(True, "rack 7", lasts_s=60.0), "grp/0", handle, "srv", "grp/1")
    assert [(each.path, each.state, each.changed) for each in outcomes] == [
        (("grp", "0"), "CHECK_FAILED", True),
        (("srv",), "CHECK_FAILED", True),
        (("srv",), "CHECK_FAILED", True),
        (("grp", "1"), "CHECK_FAILED", True),
    ]
    service.work()
    assert set(service.states(service.child().id).values()) == {"CHECK_FAILED"}
    service.live(61.0)
    assert set(service.states(service.child().id).values()) == {"CHECK_COMPLETE"}


def test_all_or_none_and_what_is_wrong_has_its_place() -> None:
    service, stack_id = started({"srv": server(), "grp": group(1)})
    error = refused(service, stack_id, "srv", "no", "grp/7", "srv/x")
    assert error.fault == "EntityNotFound"
    assert "resources[1]: The Resource (no) could not be found in Stack web." in str(error)
    assert "resources[2]: The Resource (7) could not be found in Stack web-grp-" in str(error)
    assert "resources[3]: The Resource (srv) of Stack web has no nested stack." in str(error)
    assert service.states(stack_id)["srv"] == "CREATE_COMPLETE"


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
    load_now, said = service.reconciler._run, []

    def run(under_way: Any) -> None:
        said.extend(Marks(service.db).mark(stack_id, UNHEALTHY, {"": "srv"}))
        load_now(under_way)

    service.reconciler._run = run  # type: ignore[method-assign]
    run_pass(service.reconciler, job)
    service.reconciler._run = load_now  # type: ignore[method-assign]
    assert said
    service.rest()
    service.live(60.0)
    (new,) = service.servers()
    assert new != old
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def _intent(resources: dict[str, Any]) -> Any:
    from homeostat.api.services.stacks import StackRequest
    from tests.component.running import template

    return StackRequest(template(resources), disable_rollback=True)


def test_nothing_of_a_locked_stack_is_marked_or_replaced_for_a_mark() -> None:
    service, stack_id = started(converge=True)
    (old,) = service.servers()
    Marks(service.db).mark(stack_id, UNHEALTHY, {"": "srv"})
    lock: Lock = {"level": "stacks", "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": None}
    StackActions(service.db, 3600.0).lock(stack_id, lock, lambda _: True)
    service.rest()
    service.live(100.0)
    assert service.servers() == [old]
    assert refused(service, stack_id, "srv").fault == "StackLocked"
    StackActions(service.db, 3600.0).unlock(stack_id, lambda _: True)
    service.rest()
    service.live(100.0)
    assert len(service.servers()) == 1
    assert service.servers() != [old]


# -- told --------------------------------------------------------------------------------------------------------------


def test_who_asks_why_it_does_not_move_is_told() -> None:
    service, stack_id = started()
    mark(service, stack_id, "srv", MarkRequest(True, "it smells", "ann", "nose", 600.0))
    with service.db.read() as tx:
        now = service.clock.now()
        world = load(tx, DesiredGraphs(), stack_id, 0, now).world
        told = {each.name: each for each in explain(world, ShardStatus(now), now)}
    srv = told["srv"]
    assert (srv.why, srv.reason, srv.rank) == ("unhealthy", "it smells", 0)
    assert srv.due_at == pytest.approx(now + 600.0)
    assert "an update of the stack" in srv.released_by
    assert told["user"].cause == "srv"


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
    service.cloud.weather.faults = Faults(unreachable=1.0)
    stack_id = service.create({"srv": server()}, timeout_mins=1)
    service.rest()
    assert service.row(stack_id, "srv").handle == ""
    mark(service, stack_id, "srv")
    service.cloud.weather.faults = Faults()
    service.update(stack_id, {"srv": server()})
    service.rest()
    story = service.story(stack_id, "srv")
    assert story[-3:] == ["srv CHECK_FAILED", "srv CREATE_IN_PROGRESS", "srv CREATE_COMPLETE"]
    states = [tuple(each.split()[1].split("_", 1)) for each in story]
    assert all(resource_may(one, other) for one, other in itertools.pairwise(states))


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
