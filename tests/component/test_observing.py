"""Observers: what is news, when is looked again, and what becomes of creations that were given up."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update

from homeostat.clouds.port import Answer, ChangeNotice, Creation
from homeostat.clouds.simulated import CloudBehaviour, Faults, SimulatedCloud
from homeostat.model.errors import Transient, Uncertain
from homeostat.model.observed import Observation
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.store.shards import orphans, shard_state
from homeostat.store.shards.orphans import GAP_S, LOOK_S, PATIENCE_S, Orphan
from tests import upcoming
from tests.component.running import LIMITS, PROJECT, Service, server, template, volume
from tests.simulation.actors import VirtualClock


def looked_at(service: Service) -> Any:
    """The one stored observation."""
    with service.db.read() as tx:
        return tx.execute(select(schema.resource_observed)).one()


def due(service: Service) -> int:
    return service.board.job_count


def at_rest(behaviour: CloudBehaviour | None = None) -> tuple[Service, str]:
    service = Service(behaviour)
    service.create({"a": server()})
    service.rest()
    service.clock.time += LIMITS.look_steady_s
    return service, service.servers()[0]


@pytest.mark.shows("CV7")
def test_a_look_without_news_wakes_no_shard() -> None:
    service, _ = at_rest()
    number = looked_at(service).number
    assert service.observer.round() == 1
    assert due(service) == 0
    assert looked_at(service).number == number


@pytest.mark.shows("CV7")
def test_a_look_with_news_is_stored_and_wakes_its_shard() -> None:
    service, handle = at_rest()
    number = looked_at(service).number
    service.cloud.change(handle, status="stopped")
    service.observer.round()
    assert due(service) == 1
    assert (looked_at(service).number, looked_at(service).object["status"]) == (number + 1, "stopped")


def test_what_is_gone_is_news() -> None:
    service, handle = at_rest()
    service.cloud.vanish(handle)
    service.observer.round()
    assert due(service) == 1
    assert looked_at(service).presence == "absent"


def test_a_cloud_that_does_not_answer_is_no_news() -> None:
    service, handle = at_rest()
    service.cloud.vanish(handle)
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    service.observer.round()
    assert due(service) == 0
    assert looked_at(service).presence == "present"


def test_what_was_just_made_may_not_be_listed_yet() -> None:
    service = Service(CloudBehaviour(listing_lag_s=5.0))
    service.begin({"a": server()})
    service.work()
    service.clock.time += 1.0
    service.observer.round()
    assert looked_at(service).presence == "present"
    service.live(600)
    assert len(service.servers()) == 1


@pytest.mark.shows("CV1")
def test_observed_properties_are_kept_apart() -> None:
    service = Service()
    service.create({"a": server(metadata={"k": "v"})})
    service.rest()
    service.clock.time += LIMITS.look_steady_s
    service.cloud.change(service.servers()[0], metadata={"k": "other"})
    service.observer.round()
    table = schema.resource_properties_observed
    with service.db.read() as tx:
        found = {row.prop_name: row.prop_value for row in tx.execute(select(table))}
    assert found["metadata"] == {"k": "other"}
    assert found["flavor"] == "small"


@pytest.mark.parametrize(
    ("behaviour", "after_s"),
    [(CloudBehaviour(build_s=30.0), LIMITS.look_busy_s), (CloudBehaviour(), LIMITS.look_steady_s)],
    ids=["in progress", "at rest"],
)
def test_when_a_shard_is_looked_at_again(behaviour: CloudBehaviour, after_s: float) -> None:
    service = Service(behaviour)
    service.create({"a": server()})
    for _ in range(3):
        with service.db.read() as tx:
            assert upcoming.next_observation(tx) == service.clock.now() + after_s
        service.clock.time += after_s
        assert service.observer.round() == 1


def test_a_stack_without_things_is_not_looked_at() -> None:
    service = Service()
    stack_id = service.create({"a": server()})
    service.rest()
    service.delete(stack_id)
    service.rest()
    with service.db.read() as tx:
        assert upcoming.next_observation(tx) is None


def test_a_notice_about_something_unknown_wakes_no_shard() -> None:
    service, _ = at_rest()
    service.observer.notice([ChangeNotice("server", "no such"), ChangeNotice("volume", "server-1")])
    assert due(service) == 0


# -- creations given up ----------------------------------------------------------------------------------------------


def give_up(service: Service, token: str) -> None:
    with service.db.write() as tx:
        orphans.add(tx, [Orphan(token, "server", PROJECT)], service.clock.now())


def make(service: Service, token: str) -> None:
    service.cloud.create("server", [Creation(token, {"name": "late", "image": "i", "flavor": "small"})])


def orphan_tokens(service: Service) -> list[str]:
    with service.db.read() as tx:
        return [row.token for row in tx.execute(select(schema.orphan))]


def test_what_a_request_given_up_has_made_late_is_removed() -> None:
    service = Service()
    give_up(service, "gone-1")
    service.clock.time += LOOK_S
    assert service.observer.sweep() == 0
    make(service, "gone-1")
    service.clock.time += LOOK_S
    assert service.observer.sweep() == 1
    assert service.servers() == []


def test_what_a_row_stands_for_after_all_is_kept() -> None:
    service, handle = at_rest()
    (row,) = service.rows(service.stacks()[0].id)
    give_up(service, row.token)
    service.clock.time += LOOK_S
    assert service.observer.sweep() == 0
    assert service.servers() == [handle]


@pytest.mark.parametrize(("late_s", "looks"), [(0.0, 120), (25.0, 20), (GAP_S - LOOK_S, 10), (3600.0, 10)])
def test_nothing_is_looked_for_for_ever(late_s: float, looks: int) -> None:
    """Of each pause a minute counts at most: one look after a long night does not say much."""
    service = Service()
    give_up(service, "gone-1")
    for _ in range(looks):
        assert orphan_tokens(service) == ["gone-1"]
        service.clock.time += LOOK_S + late_s
        service.observer.sweep()
    assert orphan_tokens(service) == []


def test_time_in_which_each_worker_died_over_its_look_does_not_count() -> None:
    service = Service()
    give_up(service, "gone-1")
    with service.db.write() as tx:
        taken = 0
        while taken * LOOK_S < PATIENCE_S:
            service.clock.time += LOOK_S
            taken += len(orphans.take_due(tx, service.clock.now(), 10))
    assert service.observer.sweep() == 0
    service.clock.time += LOOK_S
    service.observer.sweep()
    assert orphan_tokens(service) == ["gone-1"]


def test_a_token_that_is_given_up_while_another_is_swept_is_watched() -> None:
    """A sweep that read that a row stands for the token, and slept, must not forget it when it wakes up."""
    service, _ = at_rest()
    (row,) = service.rows(service.stacks()[0].id)
    give_up(service, row.token)
    give_up(service, "gone-1")
    service.clock.time += LOOK_S
    find = service.cloud.find

    def meanwhile(kind: str, tokens: Sequence[str]) -> list[Observation]:
        with service.db.write() as tx:
            tx.execute(update(schema.resource).values(token="", handle=""))
        give_up(service, row.token)
        return find(kind, tokens)

    service.cloud.find = meanwhile  # type: ignore[method-assign]
    service.observer.sweep()
    service.cloud.find = find  # type: ignore[method-assign]
    service.clock.time += LOOK_S
    service.observer.sweep()
    assert service.servers() == []


# -- what was wrong once -------------------------------------------------------------------------------------------


def test_an_outage_longer_than_patience_leaks_nothing() -> None:
    service = Service()
    give_up(service, "gone-1")
    make(service, "gone-1")
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    for _ in range(3):
        service.clock.time += PATIENCE_S / 2 + 1
        service.observer.sweep()
    service.cloud.behaviour.faults = Faults()
    service.clock.time += LOOK_S
    service.observer.sweep()
    assert service.servers() == []


class Refusing(SimulatedCloud):
    """Answers that it is busy when something is to be deleted."""

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        return [Transient("busy")] * len(handles)


def test_what_could_not_be_removed_is_not_forgotten() -> None:
    """Its time is over, and the cloud refused: it is removed when the cloud lets it."""
    service = Service(cloud=lambda clock: Refusing(clock.now))
    give_up(service, "gone-1")
    make(service, "gone-1")
    service.clock.time += PATIENCE_S + 1
    service.observer.sweep()
    assert orphan_tokens(service) == ["gone-1"]


class Breaking(SimulatedCloud):
    """An adapter with a bug in what it does with volumes."""

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        if kind == "volume":
            raise RuntimeError("a bug")
        return super().observe(kind, handles)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        if kind == "volume":
            raise Uncertain("perhaps")
        return super().delete(kind, handles)


def test_an_adapter_that_raises_for_one_kind_leaves_the_others_observed() -> None:
    service = Service(cloud=lambda clock: Breaking(clock.now))
    service.create({"disk": volume(), "srv": {**server(), "depends_on": "disk"}})
    handle = service.servers()[0]
    service.cloud.vanish(handle)
    service.clock.time += LIMITS.look_steady_s
    try:
        service.observer.round()
    except RuntimeError:
        pass
    service.live(1.0)
    assert service.servers() not in ([], [handle])


def test_an_uncertain_answer_does_not_end_the_sweep() -> None:
    service = Service(cloud=lambda clock: Breaking(clock.now))
    with service.db.write() as tx:
        tokens = [Orphan("v-1", "volume", PROJECT), Orphan("s-1", "server", PROJECT)]
        orphans.add(tx, tokens, service.clock.now())
    service.cloud.create("volume", [Creation("v-1", {"size": 1})])
    make(service, "s-1")
    service.clock.time += LOOK_S
    try:
        service.observer.sweep()
    except Uncertain:
        pass
    assert service.servers() == []


def test_an_older_answer_does_not_hide_newer_news() -> None:
    """The server dies right after it was updated, and a notice is quicker than the pass's transaction."""
    service = Service()
    stack_id = service.create({"a": server()})
    service.rest()
    service.clock.time += 10
    service.stack_service.update(stack_id, StackRequest(template({"a": server(metadata={"k": "v"})})))
    update = service.cloud.update

    def dies_at_once(kind: str, changes: Any) -> Any:
        answers = update(kind, changes)
        service.clock.time += 0.5
        service.cloud.change(changes[0].handle, status="stopped")
        service.observer.notice([ChangeNotice(kind, changes[0].handle)])
        return answers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.cloud, "update", dies_at_once)
        service.work()
    assert service.cloud.things()[service.servers()[0]]["status"] == "active"


def test_what_is_changed_while_it_is_being_built_is_changed_back() -> None:
    """Found by the simulation: the look that showed it ready counted as judged, so nobody minded the difference."""
    service = Service(CloudBehaviour(build_s=3.0))
    stack_id = service.create({"disk": volume(description="ours")})
    service.cloud.change("volume-1", description="theirs")
    service.live(10.0)
    assert service.states(stack_id) == {"disk": "UPDATE_COMPLETE"}
    assert service.cloud.things()["volume-1"]["description"] == "ours"


def test_what_json_cannot_hold_breaks_no_round_and_is_news_once() -> None:
    service = Service()
    stack_id = service.create({"a": server(), "b": server()})
    odd, fine = (service.row(stack_id, name).handle for name in ("a", "b"))
    service.cloud.change(odd, huge=2**70, broken="\ud800", deep=[{"n": -(2**64)}])
    service.cloud.change(fine, status="stopped")
    service.live(200.0)
    assert service.cloud.things()[fine]["status"] == "active", "the other one is looked at, and healed"
    with service.db.read() as tx:
        seen = shard_state.load_rows(tx, stack_id, 0)[1]
    (look,) = (each for each in seen.values() if each.observation.handle == odd)
    stored = look.observation.properties
    assert (stored["huge"], stored["broken"], stored["deep"]) == (str(2**70), "?", [{"n": str(-(2**64))}])
    assert look.number <= 3


def test_an_answer_that_json_cannot_hold_breaks_no_pass() -> None:
    service = Service()
    create = service.cloud.create

    def oddly(kind: str, intents: Sequence[Creation]) -> list[Answer]:
        answers = create(kind, intents)
        return [replace(each, properties={**each.properties, "huge": 2**70}) for each in answers]  # type: ignore[union-attr,type-var]

    service.cloud.create = oddly  # type: ignore[method-assign]
    stack_id = service.create({"a": server()})
    assert service.state(stack_id) == "CREATE_COMPLETE"


# -- where looks cost something --------------------------------------------------------------------------------------


class Counted(SimulatedCloud):
    """Knows the kinds that were looked at."""

    def __init__(self, clock: VirtualClock, behaviour: CloudBehaviour) -> None:
        super().__init__(clock.now, behaviour)
        self.looks: list[str] = []

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        self.looks.append(kind)
        return super().observe(kind, handles)


def looks_at(n: int, build_s: float, look_max_s: float) -> tuple[list[str], float]:
    """The kinds looked at while n servers and volumes are made, and when the stack was complete."""
    behaviour = CloudBehaviour(build_s=build_s, look_max_s=look_max_s)
    service = Service(cloud=lambda clock: Counted(clock, behaviour))
    assert isinstance(service.cloud, Counted)
    started = service.clock.now()
    service.create({f"s{i}": server() for i in range(n)} | {f"v{i}": volume() for i in range(n)})
    service.rest()
    return service.cloud.looks, service.clock.now() - started


@pytest.mark.heavy
@pytest.mark.shows("CV7")
def test_many_things_in_progress_are_looked_at_less_often_where_looks_cost_something() -> None:
    often, soon_s = looks_at(100, 60.0, 0.0)
    seldom, late_s = looks_at(100, 60.0, 30.0)
    assert len(often) > 100
    assert len(seldom) < 40
    assert late_s <= 1.6 * soon_s


def test_few_things_in_progress_are_looked_at_every_second_whatever_looks_cost() -> None:
    assert looks_at(2, 20.0, 30.0) == looks_at(2, 20.0, 0.0)
