"""The parts of convergence one by one: definitions, the job board, sorting of errors, batches of acts."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from taskflow import exceptions, states
from taskflow.jobs.base import JobPriority

from homeostat.clock import Entropy
from homeostat.clouds.port import Answer, Change, Creation, Operation
from homeostat.clouds.simulated import CloudBehaviour, Faults, SimulatedCloud
from homeostat.convergence.jobs.board import ShardBoard
from homeostat.convergence.jobs.conductor import SET_ASIDE_S, run_pass
from homeostat.desired.graphs import DesiredGraphs, compile_graph
from homeostat.desired.implied import with_implied
from homeostat.desired.members import MEMBERS_PER_SHARD, group_content, shard_count
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Superseded, Terminal, Transient
from homeostat.model.group import GroupDefinition
from homeostat.model.status import Action, Status
from homeostat.planner import outcome
from homeostat.store.shards import leases, shards
from homeostat.store.stacks.contents import Address, Content, StoredContent
from tests.component.running import PROJECT, Service, double, server, template, volume

ME = Identity("s1", "web", PROJECT)
MEMBER = {"type": "OS::Nova::Server", "properties": {"name": "m%index%"}}


# -- definitions -----------------------------------------------------------------------------------------------------


def group(count: int, skip: Sequence[str] = ()) -> Content:
    return group_content(GroupDefinition(MEMBER, "%index%", count, tuple(skip)))


def stored(content: Content, number: int = 1) -> StoredContent:
    """Return a content whose address is its number."""
    return StoredContent(content.kind, Address(str(number), 0), lambda: content)


def test_graphs_are_compiled_once() -> None:
    loaded = []

    def load() -> StoredContent:
        loaded.append(1)
        return stored(Content("template", template({"a": double()})))

    kept = DesiredGraphs()
    first = kept.get(ME, 1, 0, load)
    assert kept.get(ME, 1, 0, load) is first
    assert len(loaded) == 1


def test_the_least_recently_used_graphs_are_forgotten_when_there_are_too_many_definitions() -> None:
    loaded: list[int] = []
    kept = DesiredGraphs(cache_max=10)

    def get(revision: int, members: int) -> None:
        def load() -> StoredContent:
            loaded.append(revision)
            return stored(group(members), revision)

        kept.get(ME, revision, 0, load)

    for revision, members in ((1, 4), (2, 4), (1, 4), (3, 4)):
        get(revision, members)
    assert loaded == [1, 2, 3]
    for revision in (1, 2):
        get(revision, 4)
    assert loaded == [1, 2, 3, 2]
    get(4, 100)
    get(4, 100)
    assert loaded == [1, 2, 3, 2, 4]


@pytest.mark.parametrize(
    ("desired", "shard", "expected"),
    [
        (Content(), 0, []),
        (Content("template", template({"a": double(), "b": double()})), 0, ["a", "b"]),
        (Content("template", template({"a": double()})), 1, []),
        (group(3), 0, ["0", "1", "2"]),
        (group(2, ["0"]), 0, ["1", "2"]),
        (group(0), 0, []),
        (group(MEMBERS_PER_SHARD + 1), 1, [str(MEMBERS_PER_SHARD)]),
    ],
    ids=["nothing", "a template", "is one shard", "a group", "names out of use", "no members", "the second shard"],
)
def test_the_graph_of_a_shard(desired: Content, shard: int, expected: list[str]) -> None:
    assert list(compile_graph(desired, ME, shard)) == expected


@pytest.mark.parametrize(
    ("count", "skip", "expected"),
    [
        (0, [], 1),
        (1, [], 1),
        (MEMBERS_PER_SHARD, [], 1),
        (MEMBERS_PER_SHARD, ["0"], 2),
        (2 * MEMBERS_PER_SHARD + 1, [], 3),
    ],
    ids=["none", "one", "full", "full but for a name out of use", "more"],
)
def test_a_group_needs_as_many_shards_as_its_highest_name(count: int, skip: list[str], expected: int) -> None:
    assert shard_count(group(count, skip).group) == expected


def test_every_member_has_its_index() -> None:
    graph = compile_graph(group(2), ME, 0)
    assert [each.properties["name"] for each in graph.values()] == ["m0", "m1"]


def net(name: str, type: str, *requires: str, **properties: Any) -> Definition:
    return Definition(name, f"OS::Neutron::{type}", properties, requires=requires)


def test_what_types_require_by_themselves() -> None:
    graph = {
        "port": net("port", "Port", network="n"),
        "subnet": net("subnet", "Subnet", network="n", cidr="10.0.0.0/24"),
    }
    found = with_implied(graph)
    assert found["port"].requires == ("subnet",)
    assert found["subnet"] is graph["subnet"]


def test_an_implied_requirement_never_makes_a_circle() -> None:
    graph = {
        "port": net("port", "Port", network="n"),
        "between": net("between", "Net", "port"),
        "subnet": net("subnet", "Subnet", "between", network="n", cidr="10.0.0.0/24"),
    }
    assert with_implied(graph)["port"].requires == ()


# -- the board -------------------------------------------------------------------------------------------------------


def two_stacks() -> Service:
    """Two stacks with work to do, none of it done."""
    service = Service()
    for name in ("one", "two"):
        service.begin({"t": double()}, name)
    return service


def test_jobs_are_shards_with_work_to_do() -> None:
    service = two_stacks()
    jobs = list(service.board.iterjobs())
    assert service.board.job_count == 2
    assert {job.details["shard"] for job in jobs} == {0}
    assert {job.details["stack_id"] for job in jobs} == {each.id for each in service.stacks()}
    assert {job.state for job in jobs} == {states.UNCLAIMED}
    assert {job.priority for job in jobs} == {JobPriority.VERY_HIGH}


def test_a_claimed_job_is_listed_no_more_and_has_its_owner() -> None:
    service = two_stacks()
    job, other = service.board.iterjobs()
    service.board.claim(job, "w1")
    assert job.state == states.CLAIMED
    assert service.board.find_owner(job) == "w1"
    assert service.board.find_owner(other) is None
    assert [each.name for each in service.board.iterjobs()] == [other.name]


def test_a_job_is_claimed_once() -> None:
    service = two_stacks()
    job = next(service.board.iterjobs())
    same = next(service.board.iterjobs())
    service.board.claim(job, "w1")
    with pytest.raises(exceptions.UnclaimableJob):
        service.board.claim(same, "w2")


def test_the_claim_of_a_dead_worker_runs_out() -> None:
    service = two_stacks()
    job = next(service.board.iterjobs())
    service.board.claim(job, "w1")
    service.clock.time += 5.1
    assert job.name in [each.name for each in service.board.iterjobs()]


@pytest.mark.parametrize("gives_up", [ShardBoard.abandon, ShardBoard.trash], ids=["abandoned", "trashed"])
def test_a_job_given_up_comes_back_a_little_later(gives_up: Any) -> None:
    service = two_stacks()
    job = next(service.board.iterjobs())
    service.board.claim(job, "w1")
    gives_up(service.board, job, "w1")
    assert job.name not in [each.name for each in service.board.iterjobs()]
    service.clock.time += 1.1
    assert job.name in [each.name for each in service.board.iterjobs()]


def test_a_job_without_a_claim_cannot_be_given_up() -> None:
    service = two_stacks()
    job = next(service.board.iterjobs())
    service.board.abandon(job, "w1")
    assert service.board.job_count == 2


def test_posting_wakes_a_shard() -> None:
    service = Service()
    stack_id = service.create({"t": double()})
    assert service.board.job_count == 0
    job = service.board.post("again", details={"stack_id": stack_id, "shard": 0}, priority=JobPriority.LOW)
    assert job.name == f"{stack_id}/0"
    assert [each.priority for each in service.board.iterjobs()] == [JobPriority.LOW]


def test_posting_needs_a_shard() -> None:
    with pytest.raises(ValueError, match="stack_id and shard"):
        Service().board.post("nothing")


def test_a_finished_pass_takes_the_job_off_the_board() -> None:
    service = two_stacks()
    service.work()
    assert service.board.job_count == 0


# -- sorting errors --------------------------------------------------------------------------------------------------


def raising(error: Exception) -> Any:
    def run(lease: Any) -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "until_s", "reason"),
    [
        (Superseded("a newer owner"), 1.0, ""),
        (Transient("the database does not answer"), 1.0, ""),
        (RuntimeError("a bug"), SET_ASIDE_S, "RuntimeError('a bug')"),
    ],
    ids=["superseded", "time mends it", "a bug of ours"],
)
def test_what_goes_wrong_is_sorted_by_who_must_act(
    monkeypatch: pytest.MonkeyPatch, error: Exception, until_s: float, reason: str
) -> None:
    service = two_stacks()
    job = service.claim()
    monkeypatch.setattr(service.reconciler, "run", raising(error))
    run_pass(service.reconciler, job)
    with service.db.read() as tx:
        shard = shards.get(tx, job.stack_id, job.number)
    assert shard is not None
    assert shard.wake_at is not None
    assert (shard.owner, shard.wake_at - service.clock.now(), shard.reason) == (None, until_s, reason)


def test_a_bug_in_one_stack_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    service = two_stacks()
    bad = service.claim()
    with monkeypatch.context() as patch:
        patch.setattr(service.reconciler, "run", raising(RuntimeError("a bug")))
        run_pass(service.reconciler, bad)
    service.work()
    found = {each.id: service.state(each.id) for each in service.stacks()}
    assert found.pop(bad.stack_id) == "CREATE_IN_PROGRESS"
    assert list(found.values()) == ["CREATE_COMPLETE"]
    service.live(SET_ASIDE_S + 1)
    assert service.state(bad.stack_id) == "CREATE_COMPLETE"


def test_a_state_that_may_not_follow_stops_its_own_shard_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    service = two_stacks()
    bad = service.claim()
    with monkeypatch.context() as patch:
        patch.setattr(outcome, "complete", lambda _, row, __: row.enter(Action.INIT, Status.COMPLETE, ""))
        run_pass(service.reconciler, bad)
    with service.db.read() as tx:
        shard = shards.get(tx, bad.stack_id, bad.number)
    assert shard is not None
    assert "cannot change from CREATE_IN_PROGRESS to INIT_COMPLETE" in shard.reason
    assert service.rows(bad.stack_id) == [], "what the pass had decided is not stored"
    service.work()
    assert sorted(service.state(each.id) for each in service.stacks()) == ["CREATE_COMPLETE", "CREATE_IN_PROGRESS"]
    service.live(SET_ASIDE_S + 1)
    assert service.state(bad.stack_id) == "CREATE_COMPLETE"


def test_a_stale_owner_drops_its_pass_and_leaves_the_shard_to_the_new_one() -> None:
    service = two_stacks()
    stale = service.claim()
    service.clock.time += 6.0
    with service.db.write() as tx:
        newer = leases.claim(tx, stale.stack_id, stale.number, "w2", service.clock.now(), 5.0)
    assert newer is not None
    run_pass(service.reconciler, stale)
    assert service.states(stale.stack_id) == {}
    assert service.board.find_owner(stale) == "w2"


def test_a_worker_frozen_before_its_act_does_not_act_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between storing the intent and calling the cloud its lease ran out, and another worker took over."""
    service = Service()
    service.begin({"a": server()})
    job, call = service.claim(), service.executor._call

    def thaws_late(*arguments: Any) -> Any:
        service.clock.time += 6.0
        with service.db.write() as tx:
            assert leases.claim(tx, job.stack_id, job.number, "w2", service.clock.now(), 5.0) is not None
        return call(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(service.executor, "_call", thaws_late)
        run_pass(service.reconciler, job)
    assert service.servers() == []
    service.rest()
    assert len(service.servers()) == 1


# -- executing -------------------------------------------------------------------------------------------------------


class Listening(SimulatedCloud):
    """A cloud that remembers which calls it got."""

    calls: list[tuple[str, str, int]]

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        self.calls.append(("create", kind, len(intents)))
        return super().create(kind, intents)

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        self.calls.append(("operate", kind, len(operations)))
        return super().operate(kind, operations)


def listening() -> Service:
    def cloud(clock: Any) -> SimulatedCloud:
        made = Listening(clock.now)
        made.calls = []
        return made

    return Service(cloud=cloud)


def test_one_call_for_all_acts_of_a_kind() -> None:
    service = listening()
    service.create({**{f"s{n}": server() for n in range(3)}, **{f"v{n}": volume() for n in range(2)}})
    assert isinstance(service.cloud, Listening)
    assert sorted(service.cloud.calls) == [("create", "server", 3), ("create", "volume", 2)]


def test_batches_side_by_side_give_the_same() -> None:
    with ThreadPoolExecutor(4) as executor:
        service = Service(pool=executor)
        stack_id = service.create({"s": server(), "v": volume(), "t": double()})
    assert set(service.states(stack_id).values()) == {"CREATE_COMPLETE"}


class Breaking(SimulatedCloud):
    """An adapter with a bug: it raises after it has made what was asked for."""

    broken: Exception | None = None

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        answers = super().create(kind, intents)
        if self.broken is not None:
            raise self.broken
        return answers


@pytest.mark.parametrize("error", [RuntimeError("a bug"), Transient("busy")], ids=["a bug", "by the rules"])
def test_an_adapter_that_raises_leaves_it_open_what_was_made(error: Exception) -> None:
    service = Service(cloud=lambda clock: Breaking(clock.now, CloudBehaviour(idempotent=False)))
    assert isinstance(service.cloud, Breaking)
    service.cloud.broken = error
    stack_id = service.create({"a": server()})
    assert service.states(stack_id) == {"a": "CREATE_IN_PROGRESS"}
    service.cloud.broken = None
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert len(service.servers()) == 1, "it was looked for before it was made again"
    assert not service.cloud.doubled


class Refusing(SimulatedCloud):
    """It cannot take any value, and says so as Python does; `late` — after it has made the thing."""

    late = False

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        if self.late:
            super().create(kind, intents)
        raise ValueError("embedded null byte")


def test_a_value_that_an_adapter_cannot_take_is_not_tried_for_ever() -> None:
    service = Service(cloud=lambda clock: Refusing(clock.now))
    stack_id = service.create({"a": server()})
    service.rest()
    assert service.states(stack_id) == {"a": "CREATE_FAILED"}
    assert "embedded null byte" in service.row(stack_id, "a").reason


def test_what_was_made_before_an_adapter_raised_is_not_lost() -> None:
    service = Service(cloud=lambda clock: Refusing(clock.now))
    assert isinstance(service.cloud, Refusing)
    service.cloud.late = True
    stack_id = service.create({"a": server()})
    service.rest()
    assert service.states(stack_id) == {"a": "CREATE_COMPLETE"}
    service.delete(stack_id)
    service.rest()
    assert service.servers() == []


class Choosy(SimulatedCloud):
    """It cannot take one value, and says so for the whole batch, of which it has made what came before."""

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        bad = [place for place, each in enumerate(intents) if each.spec["metadata"]]
        answers = super().create(kind, intents[: bad[0]] if bad else intents)
        if bad:
            raise ValueError("embedded null byte")
        return answers

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        if any(each.spec["metadata"].get("word") == "bad" for each in changes):
            raise ValueError("embedded null byte")
        return super().update(kind, changes)


@pytest.mark.parametrize("number", range(5))
def test_a_value_that_an_adapter_cannot_take_fails_its_own_resource_alone(number: int) -> None:
    service = Service(cloud=lambda clock: Choosy(clock.now, CloudBehaviour(idempotent=False)))
    resources = {f"s{each}": server(**({"metadata": {"a": "b"}} if each == number else {})) for each in range(5)}
    stack_id = service.create(resources)
    service.work()
    failed = {name for name, state in service.states(stack_id).items() if state == "CREATE_FAILED"}
    assert failed == {f"s{number}"}
    assert len(service.servers()) == 4, "the others are made once, and at once"
    assert not service.cloud.doubled


def test_a_value_that_an_adapter_cannot_take_fails_its_own_update_alone() -> None:
    service = Service(cloud=lambda clock: Choosy(clock.now))
    stack_id = service.create({f"s{each}": server() for each in range(3)})
    service.rest()
    words = {"s0": "good", "s1": "bad", "s2": "good"}
    service.update(stack_id, {name: server(metadata={"word": word}) for name, word in words.items()})
    service.work()
    expected = {"s0": "UPDATE_COMPLETE", "s1": "UPDATE_FAILED", "s2": "UPDATE_COMPLETE"}
    assert service.states(stack_id) == expected


def test_an_adapter_that_refuses_a_whole_batch_fails_each_of_it() -> None:
    service = Service(cloud=lambda clock: Breaking(clock.now))
    assert isinstance(service.cloud, Breaking)
    service.cloud.broken = Terminal("no")
    stack_id = service.create({"a": server(), "b": server()})
    assert service.states(stack_id) == {"a": "CREATE_FAILED", "b": "CREATE_FAILED"}


def test_one_refusal_does_not_touch_the_rest_of_its_batch() -> None:
    service = Service(CloudBehaviour(quota=1))
    stack_id = service.create({"a": server(), "b": server()})
    assert service.states(stack_id) == {"a": "CREATE_COMPLETE", "b": "CREATE_FAILED"}


def test_a_cloud_that_is_down_fails_nothing() -> None:
    service = Service(CloudBehaviour(faults=Faults(unreachable=1.0)))
    stack_id = service.create({"a": server()})
    service.live(600)
    assert service.states(stack_id) == {"a": "CREATE_IN_PROGRESS"}
    service.cloud.behaviour.faults = Faults()
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_keys_are_unlike_one_another_and_run_on() -> None:
    numbers = iter((5, 6, 2**50 - 1))
    keys = Entropy(lambda size: next(numbers).to_bytes(size, "big")).keys()
    made = [next(keys) for _ in range(3 * 1024)]
    assert len(set(made)) == len(made)
    assert {len(key) for key in made} == {12}
    assert {key[:10] for key in made} == {"af" + "a" * 8, "ag" + "a" * 8, "7" * 10}


def test_keys_are_shared_between_threads() -> None:
    keys = Entropy().keys()
    with ThreadPoolExecutor(4) as pool:
        made = [key for some in pool.map(lambda _: [next(keys) for _ in range(5000)], range(4)) for key in some]
    assert len(set(made)) == len(made)
