"""A whole service asked why its stacks do not move: every kind of trouble, and how long the rest will take."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import event, select, update

from homeostat.clouds.port import Answer, Creation
from homeostat.clouds.simulated import CloudBehaviour, Faults, SimulatedCloud
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation
from homeostat.model.waiting import Why
from homeostat.planner.report.estimate import Basis
from homeostat.services import explainer
from homeostat.services.explainer import ExplainedResource, Explainer, Place, StackProgress
from homeostat.services.graphs import Graphs
from homeostat.store import schema
from homeostat.store.operation import workers
from homeostat.store.stacks import stacks
from tests.component.maintained import lock
from tests.component.running import Service, double, group, server
from tests.component.test_progress import wanted

SLOW = CloudBehaviour(build_s=30.0, delete_s=30.0)


def explanations(
    service: Service, stack_id: str, limit: int = 100, after: Place | None = None, depth: int = 0
) -> list[ExplainedResource]:
    return page(service, stack_id, limit, after, depth)[0]


def page(
    service: Service, stack_id: str, limit: int = 100, after: Place | None = None, depth: int = 0
) -> tuple[list[ExplainedResource], Place | None]:
    with service.db.read() as tx:
        stack = stacks.get(tx, stack_id)
        assert stack is not None
        found = Explainer(tx, DesiredGraphs(), service.clock.now()).page(stack, limit, after, depth)
        return list(found.explanations), found.after


def whys(service: Service, stack_id: str, depth: int = 0) -> dict[str, Why]:
    """Path of names -> why, leftovers with a slash before their name."""
    return {
        ("/" if each.explanation.leftover else "") + ".".join(each.path): each.explanation.why
        for each in explanations(service, stack_id, depth=depth)
    }


def progress_of(service: Service, stack_id: str, depth: int = 0) -> StackProgress:
    with service.db.read() as tx:
        stack = stacks.get(tx, stack_id)
        assert stack is not None
        asking = Explainer(tx, DesiredGraphs(), service.clock.now())
        asking.page(stack, 100, None, depth)
        return asking.progress_of(stack, len(Graphs().wanted(tx, stack).definitions), depth)


def rows_of(service: Service) -> list[Any]:
    """All that is stored."""
    with service.db.read() as tx:
        return [tuple(row) for each in schema.metadata.sorted_tables for row in tx.execute(select(each))]


# -- trouble of every kind -------------------------------------------------------------------------------------------


@pytest.mark.shows("CV19")
def test_what_is_being_built_and_what_requires_it() -> None:
    service = Service(SLOW)
    stack_id = service.create({"a": server(), "b": {**server(), "depends_on": "a"}})
    assert whys(service, stack_id) == {"a": Why.BUILDING, "b": Why.REQUIRES}
    service.rest()
    assert whys(service, stack_id) == {}


def test_asking_stores_nothing() -> None:
    service = Service(SLOW)
    stack_id = service.begin({"a": server(), "g": group(3)})
    before = rows_of(service)
    explanations(service, stack_id, depth=5)
    assert rows_of(service) == before
    service.work()
    before = rows_of(service)
    explanations(service, stack_id, depth=5)
    assert rows_of(service) == before


def test_a_failure_halts_the_rest() -> None:
    service = Service(SLOW)
    stack_id = service.create({"a": double(fail=True), "b": {**double(), "depends_on": "a"}, "c": double()})
    service.rest()
    assert whys(service, stack_id) == {"a": Why.FAILED, "b": Why.REQUIRES}
    [failed, blocked] = explanations(service, stack_id)
    assert failed.explanation.blocks == ("b",)
    assert blocked.cause is not None
    assert (blocked.cause.path, blocked.cause.explanation.why) == (("a",), Why.FAILED)


def test_a_cloud_that_refuses_for_a_while_is_asked_again() -> None:
    faults = Faults(refused=1.0)
    service = Service(CloudBehaviour(faults=faults))
    stack_id = service.create({"a": server()})
    [found] = explanations(service, stack_id)
    assert found.explanation.why is Why.BACKOFF
    assert found.explanation.due_at is not None
    assert found.explanation.due_at > service.clock.now()
    assert found.explanation.next == "find"
    faults.refused = 0.0
    service.rest()
    assert whys(service, stack_id) == {}


def test_a_cloud_that_does_not_answer_is_explained_from_the_row_of_the_shard() -> None:
    faults = Faults()
    service = Service(CloudBehaviour(build_s=30.0, faults=faults))
    stack_id = service.create({"a": server()})
    service.live(5.0)
    seen_until = service.clock.now()
    faults.unreachable = 1.0
    service.live(40.0)
    [found] = explanations(service, stack_id)
    assert found.explanation.why is Why.UNSEEN
    assert "the cloud does not answer" in found.explanation.reason
    assert found.explanation.since == pytest.approx(seen_until, abs=2.0)
    assert found.explanation.next == "look"
    faults.unreachable = 0.0
    service.rest()
    assert whys(service, stack_id) == {}


def test_at_rest_and_not_seen_for_long() -> None:
    faults = Faults()
    service = Service(CloudBehaviour(faults=faults))
    stack_id = service.create({"a": server()})
    service.live(61.0)
    assert progress_of(service, stack_id).unseen is None
    faults.unreachable = 1.0
    service.live(200.0)
    unseen = progress_of(service, stack_id).unseen
    assert unseen is not None
    assert "the cloud does not answer" in unseen.reason
    assert unseen.looked_at is not None
    assert service.clock.now() - unseen.looked_at > 100.0
    assert whys(service, stack_id) == {}


def test_each_service_that_is_away_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    subnet = {"type": "OS::Neutron::Subnet", "properties": {"network": "net", "cidr": "10.0.0.0/24"}}
    stack_id = service.create({"a": server(), "b": server(), "net": {"type": "OS::Neutron::Net"}, "sub": subnet})
    service.live(61.0)

    def away(kind: str, handles: Sequence[str]) -> list[Observation]:
        raise Transient("compute is away" if kind == "server" else "network is away")

    monkeypatch.setattr(service.cloud, "observe", away)
    service.live(200.0)
    unseen = progress_of(service, stack_id).unseen
    assert unseen is not None
    assert sorted(unseen.reason.split("; ")) == ["compute is away", "network is away"]


@pytest.mark.shows("CV12")
def test_leftovers_wait_too() -> None:
    service = Service(SLOW)
    stack_id = service.create({"a": server()})
    service.rest()
    service.update(stack_id, {"a": server(key_name="k")})
    assert whys(service, stack_id) == {"a": Why.BUILDING, "/a": Why.IN_USE}
    service.live(31.0)
    assert whys(service, stack_id) == {"/a": Why.BUILDING}
    service.rest()
    assert whys(service, stack_id) == {}


def test_a_bug_of_ours_is_owned_up_to(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    stack_id = service.begin({"a": double()})
    with monkeypatch.context() as broken:
        broken.setattr(service.executor, "execute", lambda *_: dict[str, Any]()["x"])
        run_pass(service.reconciler, service.claim())
    [found] = explanations(service, stack_id)
    assert (found.explanation.why, found.explanation.reason) == (Why.SET_ASIDE, "KeyError('x')")
    assert found.explanation.due_at == service.clock.now() + 30.0


def test_no_worker_lives() -> None:
    service = Service()
    stack_id = service.begin({"a": double()})
    assert whys(service, stack_id) == {"a": Why.TURN}
    service.clock.time += 60.0
    assert whys(service, stack_id) == {"a": Why.NO_WORKER}
    with service.db.write() as tx:
        alive_at = service.clock.now() - 1.0
        workers.report(tx, workers.Worker("w", "h", 1, "1", "sql", alive_at, alive_at))
    assert whys(service, stack_id) == {"a": Why.TURN}


def test_drift_that_is_left_alone_is_explained() -> None:
    service = Service()
    stack_id = service.create({"a": server()})
    with service.db.write() as tx:
        tx.execute(update(schema.stack).values(converge=False))
    service.cloud.vanish(service.row(stack_id, "a").handle)
    service.live(70.0)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert whys(service, stack_id) == {"a": Why.LEFT_ALONE}


def test_what_dies_in_a_locked_stack_is_explained_for_as_long_as_it_is_locked() -> None:
    """LK7"""
    service = Service()
    stack_id = service.create({"a": server()})
    service.live(10.0)
    lock(service, stack_id, reason="disks")
    service.rest()
    service.cloud.vanish(service.row(stack_id, "a").handle)
    service.live(300.0)
    (each,) = explanations(service, stack_id)
    assert each.explanation.why is Why.LOCKED
    assert each.explanation.reason == "there is no such server; the stack is locked by ann: disks"


def test_drift_that_may_not_be_mended_is_explained() -> None:
    service = Service()
    registry = {"resources": {"a": {"restricted_actions": ["update"]}}}
    stack_id = service.create({"a": server(metadata={"k": "v"})}, environment={"resource_registry": registry})
    service.rest()
    service.cloud.change(service.row(stack_id, "a").handle, metadata={"k": "other"})
    service.live(300.0)
    (each,) = explanations(service, stack_id)
    assert each.explanation.why is Why.LEFT_ALONE
    assert each.explanation.reason.endswith("; its environment restricts what would bring it back")


# -- nested stacks ---------------------------------------------------------------------------------------------------


def test_a_group_names_the_member_that_it_waits_for() -> None:
    service = Service(SLOW)
    stack_id = service.create({"g": group(2), "late": {**double(), "depends_on": "g"}})
    [grouped, late] = explanations(service, stack_id)
    assert grouped.nested is not None
    for each in (grouped, late):
        assert each.cause is not None
        assert (each.cause.path, each.cause.explanation.why) == (("g", "0"), Why.BUILDING)
    assert whys(service, stack_id, depth=1) == {
        "g": Why.BUILDING,
        "g.0": Why.BUILDING,
        "g.1": Why.BUILDING,
        "late": Why.REQUIRES,
    }


def test_the_path_leads_down_to_the_leaf() -> None:
    service = Service(SLOW)
    stack_id = service.create({"outer": group(1, group(1, {**server()}))})
    [found] = explanations(service, stack_id)
    assert found.cause is not None
    assert found.cause.path == ("outer", "0", "0")
    assert list(whys(service, stack_id, depth=5)) == ["outer", "outer.0", "outer.0.0"]


def test_the_pause_between_two_batches_is_explained_and_counted() -> None:
    service = Service(CloudBehaviour(build_s=5.0))
    policy = {"batch_create": {"max_batch_size": 2, "pause_time": 30}}
    stack_id = service.create({"g": {**group(6), "update_policy": policy}})
    assert whys(service, stack_id) == {"g": Why.BUILDING}
    found = progress_of(service, stack_id, depth=5)
    assert (found.planned, found.done) == (7, 0)
    service.live(10.0)
    [paused] = explanations(service, stack_id)
    child = service.child()
    assert child.step_at > service.clock.now()
    assert (paused.explanation.why, paused.explanation.due_at) == (Why.PAUSE, child.step_at)
    assert paused.cause is None
    found = progress_of(service, stack_id, depth=5)
    assert (found.planned, found.done) == (7, 2)
    assert found.estimate is not None
    assert found.estimate.seconds >= child.step_at - service.clock.now() + 30.0
    with service.db.read() as tx:
        waiting = Explainer(tx, DesiredGraphs(), service.clock.now()).page(child, 10).waiting
    assert waiting is not None
    assert (waiting.why, waiting.due_at) == (Why.PAUSE, child.step_at)
    service.rest()
    found = progress_of(service, stack_id, depth=5)
    assert (found.planned, found.done) == (7, 7)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_rolling_update_counts_each_member_once_and_never_goes_back(replaced: bool) -> None:
    """It told of 12 of 7 resources: the members of later batches, and all of them once more as not done."""

    def grp(**properties: Any) -> dict[str, Any]:
        policy = {"rolling_update": {"max_batch_size": 1, "min_in_service": 0, "pause_time": 0}}
        return {"g": {**group(6, server(**properties)), "update_policy": policy}}

    service = Service(CloudBehaviour(build_s=5.0))
    stack_id = service.create(grp())
    service.rest()
    service.stack_service.update(stack_id, wanted(grp(**{"user_data" if replaced else "name": "x"})))
    seen = []
    while service.state(stack_id) == "UPDATE_IN_PROGRESS":
        if service.board.job_count:
            run_pass(service.reconciler, service.claim())
        else:
            service.clock.time += 0.5
            service.observer.round()
        found = progress_of(service, stack_id, depth=5)
        assert found.planned in ((7, 8) if replaced else (7,)), "what is replaced counts until it is gone"
        seen.append(found.done)
    assert sorted(set(seen)) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert seen == sorted(seen)


# -- one resource ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"), [("a", [("a",)]), ("b", [("b",)]), ("c", []), ("g", [("g",), ("g", "0"), ("g", "1")])]
)
def test_one_resource_is_explained(name: str, expected: list[tuple[str, ...]]) -> None:
    service = Service(SLOW)
    stack_id = service.create({"a": server(), "b": {**server(), "depends_on": "a"}, "c": double(), "g": group(2)})
    with service.db.read() as tx:
        stack = stacks.get(tx, stack_id)
        assert stack is not None
        found = Explainer(tx, DesiredGraphs(), service.clock.now()).of_resource(stack, name, 1)
    assert [each.path for each in found] == expected


def test_a_member_of_a_later_shard_is_found() -> None:
    service = Service()
    service.create({"g": group(1200, double(wait_secs=60))})
    with service.db.read() as tx:
        found = Explainer(tx, DesiredGraphs(), service.clock.now()).of_resource(service.child(), "1150")
    assert [each.explanation.why for each in found] == [Why.BUILDING]


# -- pages -----------------------------------------------------------------------------------------------------------


def test_pages_hold_everything_once_and_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    service.create({"g": group(2500, double(wait_secs=600))})
    child = service.child().id
    monkeypatch.setattr(explainer, "ROWS_MAX", 900)
    found: list[str] = []
    after, pages = None, 0
    while pages == 0 or after is not None:
        some, after = page(service, child, 700, after)
        found += [each.explanation.name for each in some]
        pages += 1
    assert pages == 5
    assert sorted(found, key=int) == [str(number) for number in range(2500)]
    assert len(found) == 2500


def test_shards_at_rest_are_not_read() -> None:
    service = Service()
    service.create({"g": group(2500, double())})
    service.rest()
    child = service.child().id
    with service.db.write() as tx:
        tx.execute(
            update(schema.shard).where(schema.shard.c.stack_id == child, schema.shard.c.number == 1).values(failures=1)
        )
    read: list[int] = []

    def count(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "FROM resource LEFT" in statement:
            read.append(parameters[1])

    event.listen(service.db.engine, "before_cursor_execute", count)
    assert explanations(service, child) == []
    assert read == [1]


# -- how far and how long --------------------------------------------------------------------------------------------


def test_the_estimate_follows_the_critical_path() -> None:
    service = Service(SLOW)
    first = service.create({"a": server()})
    assert progress_of(service, first).estimate is None
    service.rest()
    second = service.create({"a": server(), "b": {**server(), "depends_on": "a"}}, name="other")
    service.live(10.0)
    found = progress_of(service, second)
    assert (found.planned, found.done, found.stacks) == (2, 0, 1)
    assert [link.explanation.name for link in found.chain.links] == ["a", "b"]
    assert found.estimate is not None
    assert found.estimate.by is Basis.CRITICAL_PATH
    assert found.estimate.seconds == pytest.approx(50.0, abs=3.0)
    service.rest()
    assert progress_of(service, second).estimate is None
    assert (progress_of(service, second).planned, progress_of(service, second).done) == (2, 2)


def test_what_could_not_be_locked_is_released_by_unlocking() -> None:
    service = Service()
    stack_id = service.create({"s": server()})
    service.rest()
    service.clock.time += 1.0
    service.cloud.vanish(service.row(stack_id, "s").handle)
    lock(service, stack_id)
    service.live(60.0)
    assert service.state(stack_id) == "LOCK_FAILED"
    [failed] = explanations(service, stack_id)
    assert (failed.explanation.why, failed.explanation.released_by) == (Why.FAILED, "the stack being unlocked")


def test_what_waits_in_a_nested_stack_is_explained_although_that_is_well_as_seen_from_above() -> None:
    """Healing that is held back fails nothing: neither the group nor its owner says that anything is wrong."""
    service = Service()
    stack_id = service.create({"g": group(5)})
    service.rest()
    for handle in list(service.cloud.things("server")):
        service.cloud.hide(handle)
    service.live(300.0)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert whys(service, stack_id, depth=1) == {f"g.{number}": Why.BLIND for number in range(5)}


def test_nested_stacks_are_counted_too() -> None:
    service = Service(SLOW)
    stack_id = service.create({"g": group(3), "d": double()})
    found = progress_of(service, stack_id, depth=5)
    assert (found.planned, found.done, found.stacks) == (5, 1, 2)
    service.rest()
    found = progress_of(service, stack_id, depth=5)
    assert (found.planned, found.done) == (5, 5)


def test_many_take_as_long_as_their_rate_says() -> None:
    service = Service()
    stack_id = service.create({f"r{n}": double(wait_secs=10 * n) for n in range(1, 21)})
    service.live(41.0)
    found = progress_of(service, stack_id)
    assert (found.planned, found.done) == (20, 4)
    assert found.rate == pytest.approx(4 / 41)
    assert found.estimate is not None
    assert found.estimate.by is Basis.RATE
    assert found.estimate.seconds == pytest.approx(16 * 41 / 4)


def test_where_nothing_is_known_nothing_is_estimated() -> None:
    service = Service(SLOW)
    found = progress_of(service, service.create({"a": server()}))
    assert (found.rate, found.estimate, found.chain.seconds) == (None, None, None)
    assert found.chain.unknown == (("OS::Nova::Server", "CREATE"),)


def test_a_stack_made_before_progress_was_kept_is_counted_from_its_definitions() -> None:
    service = Service(SLOW)
    at_rest = service.create({"a": double(), "b": double()})
    moving = service.create({"a": double(), "b": server()}, name="other")
    with service.db.write() as tx:
        tx.execute(update(schema.shard).values(planned=0, done=0))
    assert (progress_of(service, at_rest).planned, progress_of(service, at_rest).done) == (2, 2)
    assert (progress_of(service, moving).planned, progress_of(service, moving).done) == (2, 0)


class Hanging(SimulatedCloud):
    """What is asked about a stack while the cloud has not answered yet."""

    service: Service
    stack_id = ""
    answer: ExplainedResource | None = None

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        self.service.clock.time += 3.0
        (self.answer,) = explanations(self.service, self.stack_id)
        return super().create(kind, intents)


def test_while_a_cloud_hangs_it_is_named_and_since_when() -> None:
    service = Service(cloud=lambda clock: Hanging(clock.now))
    assert isinstance(service.cloud, Hanging)
    service.cloud.service = service
    service.cloud.stack_id = service.begin({"a": server()})
    asked_at = service.clock.time
    service.work()
    assert service.cloud.answer is not None
    found = service.cloud.answer.explanation
    assert (found.why, found.since, found.released_by) == (Why.ANSWER, asked_at, "an answer of the cloud")
    assert found.reason == "a worker has sent the request (create) to the cloud (server), and there is no answer yet"
