"""Groups that are created and changed batch by batch, and what may come in between."""

from typing import Any

import pytest
from sqlalchemy import func, select

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.members import rolling_update
from homeostat.desired import members
from homeostat.desired.members import MEMBERS_PER_SHARD
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from tests.component.running import PROJECT, Service, double, group, template

STEP_S = 4
"""Seconds that a member takes for everything that is done to it."""


def member(value: str, **properties: Any) -> dict[str, Any]:
    return double(value=value, wait_secs=STEP_S, **properties)


def rolling(count: int, value: str, size: int = 1, in_service: int = 0, pause: float = 0, **more: Any) -> Any:
    policy = {"max_batch_size": size, "min_in_service": in_service, "pause_time": pause}
    return {**group(count, member(value, **more)), "update_policy": {"rolling_update": policy}}


def batched(count: int, size: int, pause: float = 0, **more: Any) -> Any:
    policy = {"max_batch_size": size, "pause_time": pause}
    return {**group(count, member("a", **more)), "update_policy": {"batch_create": policy}}


def created(count: int, value: str = "a", **options: Any) -> tuple[Service, str]:
    service = Service()
    stack_id = service.create({"grp": rolling(count, value)}, **options)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    return service, stack_id


def values(service: Service) -> str:
    """The value that each member has or is getting, in the order of their numbers; those on their way out apart."""
    staying = [each for each in service.rows(service.child().id) if each.action != "DELETE"]
    rows = {int(each.name): each.properties["value"] for each in staying}
    return "".join(value for _, value in sorted(rows.items()))


def history(service: Service, within_s: int = 200) -> list[str]:
    """How the values of the members change from now on until all is at rest."""
    seen = [values(service)]
    for _ in range(within_s):
        service.live(1)
        if values(service) != seen[-1]:
            seen.append(values(service))
        if not any(each.status == "IN_PROGRESS" for each in service.stacks()):
            return seen
    raise AssertionError(f"no end: {seen}")


def moved(service: Service, action: str = "UPDATE") -> list[str]:
    """Names of the members in the order in which they were acted on."""
    story = service.story(service.child().id)
    return [line.split()[0] for line in story if line.endswith(f"{action}_IN_PROGRESS") and line[0].isdigit()]


@pytest.mark.parametrize(
    ("before", "wanted", "seen"),
    [
        (3, rolling(3, "b"), ["aab", "abb", "bbb"]),
        (3, rolling(3, "b", 2), ["abb", "bbb"]),
        (3, rolling(3, "b", 2, 2), ["aabb", "bbbb", "bbb"]),
        (3, rolling(5, "b", 2, 3), ["aaabb", "abbbb", "bbbbb"]),
        (4, rolling(2, "b", 1, 2), ["abaa", "aba", "bba", "bb"]),
        (3, rolling(3, "a", 2, 2), ["aaa"]),
    ],
    ids=["one by one", "by two", "an extra one", "growing", "shrinking", "no change"],
)
def test_members_change_in_batches(before: int, wanted: Any, seen: list[str]) -> None:
    service, stack_id = created(before)
    service.update(stack_id, {"grp": wanted})
    assert history(service) == seen
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.child().status == "COMPLETE"


def test_a_batch_waits_until_the_one_before_is_done() -> None:
    service, stack_id = created(3)
    service.update(stack_id, {"grp": rolling(3, "b")})
    service.rest()
    lines = [line for line in service.story(service.child().id) if line[0].isdigit() and "UPDATE" in line]
    assert lines == [f"{name} UPDATE_{status}" for name in "210" for status in ("IN_PROGRESS", "COMPLETE")]


def test_members_that_are_wanted_no_more_go_before_the_others_change() -> None:
    service, stack_id = created(4)
    service.update(stack_id, {"grp": rolling(3, "b", 1)})
    service.rest()
    lines = service.story(service.child().id)
    assert lines.index("3 DELETE_COMPLETE") < lines.index("1 UPDATE_IN_PROGRESS")
    assert values(service) == "bbb"


def test_batches_are_apart_by_the_pause() -> None:
    service, stack_id = created(3)
    service.update(stack_id, {"grp": rolling(3, "b", pause=60)})
    started = service.clock.time
    service.live(STEP_S + 50)
    assert values(service) == "aab"
    assert service.state(stack_id) == "UPDATE_IN_PROGRESS"
    service.live(20)
    assert values(service) == "abb"
    service.rest()
    assert service.clock.time - started >= 2 * 60 + 3 * STEP_S
    assert values(service) == "bbb"


def test_a_pause_costs_no_passes() -> None:
    service, stack_id = created(2)
    service.update(stack_id, {"grp": rolling(2, "b", pause=1000)})
    service.live(STEP_S + 10)
    before = passes(service)
    service.live(900)
    assert passes(service) - before <= 1


def passes(service: Service) -> int:
    """How often the shards of the group were claimed."""
    table = schema.shard
    with service.db.read() as tx:
        return int(
            tx.execute(select(func.sum(table.c.epoch)).where(table.c.stack_id == service.child().id)).scalar_one()
        )


def test_members_are_created_in_batches_lowest_first() -> None:
    service = Service()
    stack_id = service.create({"grp": batched(5, 2, pause=30)})
    assert history(service) == ["aa", "aaaa", "aaaaa"]
    assert moved(service, "CREATE") == ["0", "1", "2", "3", "4"]
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_a_group_that_is_complete_grows_at_once() -> None:
    service = Service()
    stack_id = service.create({"grp": batched(2, 1)})
    service.rest()
    service.update(stack_id, {"grp": batched(5, 1)})
    assert values(service) == "aaaaa"


def test_a_member_that_fails_stops_the_series_and_names_itself() -> None:
    service, stack_id = created(4)
    service.update(stack_id, {"grp": rolling(4, "b", fail=True)})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert "resources.grp.resources[3]: Test Resource failed 3" in service.stack(stack_id).reason
    service.live(600)
    assert moved(service) == ["3"], "nobody else was touched"


def test_after_a_failure_the_failed_member_is_mended_before_the_next_batch() -> None:
    service, stack_id = created(3)
    service.update(stack_id, {"grp": rolling(3, "b", fail=True)})
    service.rest()
    service.update(stack_id, {"grp": rolling(3, "c")})
    assert history(service) == ["aac", "acc", "ccc"]
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_the_same_update_again_goes_on_where_the_series_stopped() -> None:
    service = Service(CloudBehaviour(quota=4))
    server: dict[str, Any] = {"type": "OS::Nova::Server"}
    server["properties"] = {"image": "i", "flavor": "f", "name": "m%index%"}
    policy = {"rolling_update": {"max_batch_size": 1, "min_in_service": 0}}
    first = {**group(3, server), "update_policy": policy}
    stack_id = service.create({"grp": first, "other": server})
    service.rest()
    before = service.servers()
    other = {**server, "properties": {**server["properties"], "image": "j", "image_update_policy": "REPLACE"}}
    second = {**group(3, other), "update_policy": policy}
    service.update(stack_id, {"grp": second, "other": server})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED", "the replacement of a member is one server too many"
    assert set(before) <= set(service.servers())
    service.cloud.behaviour.quota = 5
    service.update(stack_id, {"grp": second, "other": server})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.servers()) == 4
    images = [each["image"] for each in service.cloud.things("server").values()]
    assert sorted(images) == ["i", "j", "j", "j"]


def test_a_rollback_takes_back_those_that_had_moved() -> None:
    service, stack_id = created(3, disable_rollback=False)
    first = {"grp": rolling(3, "b"), "late": {**double(fail=True), "depends_on": "grp"}}
    service.update(stack_id, first, disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert values(service) == "aaa"


def test_cancelling_in_the_middle_takes_back_only_those_that_had_moved() -> None:
    service, stack_id = created(3, disable_rollback=False)
    service.update(stack_id, {"grp": rolling(3, "b", pause=60)}, disable_rollback=False)
    service.live(STEP_S + 5)
    service.stack_service.cancel(stack_id, roll_back=True)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert values(service) == "aaa"
    assert moved(service) == ["2", "2"]


@pytest.mark.parametrize("after_s", [1, STEP_S + 5], ids=["in a batch", "in a pause"])
def test_cancelling_without_a_rollback_stops_the_series(after_s: int) -> None:
    """What has begun comes to its end; no further member is touched, and every stack of the tree says so at once."""
    service, stack_id = created(4)
    service.update(stack_id, {"grp": rolling(4, "b", pause=60)})
    service.live(after_s)
    service.stack_service.cancel(stack_id, roll_back=False)
    assert [service.state(each) for each in (stack_id, service.child().id)] == ["UPDATE_FAILED", "UPDATE_FAILED"]
    service.live(600)
    assert sorted(values(service)) == list("aaab")
    assert [service.state(each) for each in (stack_id, service.child().id)] == ["UPDATE_FAILED", "UPDATE_FAILED"]
    assert service.stack(stack_id).reason == "Stack UPDATE cancelled"
    service.update(stack_id, {"grp": rolling(4, "b")})
    service.rest()
    assert (service.state(stack_id), values(service)) == ("UPDATE_COMPLETE", "bbbb")


@pytest.mark.parametrize("after_s", [1, STEP_S + 5], ids=["in a batch", "in a pause"])
@pytest.mark.shows("CV2")
def test_a_newer_update_wins_in_the_middle(after_s: int) -> None:
    service, stack_id = created(3)
    service.update(stack_id, {"grp": rolling(3, "b", pause=60)})
    service.live(after_s)
    service.update(stack_id, {"grp": rolling(3, "c")})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert values(service) == "ccc"
    assert moved(service).count("0") == 1, "it never had what the update in between wanted"


def test_another_policy_in_the_middle_is_followed_from_there_on() -> None:
    service, stack_id = created(4)
    service.update(stack_id, {"grp": rolling(4, "b", pause=600)})
    service.live(STEP_S + 5)
    service.update(stack_id, {"grp": rolling(4, "b", 2)})
    assert history(service) == ["abbb", "bbbb"]


def test_asked_to_converge_in_the_middle_it_goes_on() -> None:
    service, stack_id = created(3)
    service.update(stack_id, {"grp": rolling(3, "b", pause=60)})
    service.live(STEP_S + 5)
    service.actions.converge(stack_id)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert values(service) == "bbb"
    assert moved(service) == ["2", "1", "0"]


def test_a_group_is_deleted_in_the_middle() -> None:
    service, stack_id = created(3)
    service.update(stack_id, {"grp": rolling(3, "b", pause=60)})
    service.live(STEP_S + 5)
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert all(each.deleted_at is not None for each in service.stacks())


def test_a_worker_that_dies_between_two_batches_leaves_no_gap() -> None:
    """Whatever it did not commit never was; the next owner of the shard makes the same batch."""
    service, stack_id = created(3)
    service.update(stack_id, {"grp": rolling(3, "b")})
    settle, deaths = rolling_update.settle, []

    def dies(*arguments: Any, **options: Any) -> Any:
        settle(*arguments, **options)
        deaths.append(1)
        raise KeyboardInterrupt

    for _ in range(60):
        with pytest.MonkeyPatch.context() as patch:
            if len(deaths) < 5:
                patch.setattr("homeostat.convergence.members.rolling_update.settle", dies)
            while service.board.job_count:
                try:
                    run_pass(service.reconciler, service.claim())
                except KeyboardInterrupt:
                    break
        service.clock.time += 1
        service.observer.round()
    assert len(deaths) == 5
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert moved(service) == ["2", "1", "0"]


def test_a_beginning_carried_out_twice_is_one_series() -> None:
    service, stack_id = created(3)
    service.stack_service.update(stack_id, StackRequest(template({"grp": rolling(3, "b", pause=60)})))
    service.die_after_nested_act()
    service.rest()
    assert moved(service) == ["2", "1", "0"]


def test_pauses_that_do_not_fit_into_the_time_of_the_stack_are_refused_before_anything_changes() -> None:
    service, stack_id = created(3)
    service.update(stack_id, {"grp": rolling(3, "b", pause=1800)})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    reason = "Terminal: resources.grp: The current update policy will result in stack update timeout."
    assert service.stack(stack_id).reason == f"Resource UPDATE failed: {reason}"
    assert moved(service) == []
    service.update(stack_id, {"grp": rolling(3, "b", pause=1)})
    service.rest()
    assert values(service) == "bbb"


def test_a_stack_times_out_in_a_pause() -> None:
    service, stack_id = created(2)
    service.update(stack_id, {"grp": rolling(2, "b", pause=58)}, timeout_mins=1)
    service.live(STEP_S + 60)
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert "out" in service.stack(stack_id).reason


@pytest.mark.shows("CV15")
def test_a_batch_costs_its_batch_and_not_the_group() -> None:
    service = Service()
    count = 2 * MEMBERS_PER_SHARD + 10
    quick = {"type": "OS::Heat::TestResource", "properties": {"value": "a"}}
    stack_id = service.create({"grp": group(count, quick)})
    service.rest()
    other = {"type": "OS::Heat::TestResource", "properties": {"value": "b"}}
    policy = {"rolling_update": {"max_batch_size": 5, "pause_time": 1000}}
    service.update(stack_id, {"grp": {**group(count, other), "update_policy": policy}}, timeout_mins=100_000)
    before = {row.number: row.epoch for row in service.shards(service.child().id)}
    service.live(1001)
    passes = {row.number: row.epoch - before[row.number] for row in service.shards(service.child().id)}
    changed = [each.name for each in service.rows(service.child().id) if each.properties["value"] == "b"]
    assert sorted(changed) == [str(number) for number in range(count - 10, count)]
    assert passes[0] == passes[1] == 0
    assert 0 < passes[2] <= 3


def test_a_long_series_leaves_no_revisions_behind() -> None:
    service, stack_id = created(6)
    service.update(stack_id, {"grp": rolling(6, "b")})
    service.rest()
    with service.db.read() as tx:
        chosen = select(func.count()).where(schema.revision.c.stack_id == service.child().id)
        assert tx.execute(chosen).scalar_one() == 2, "the one before, and the newest"


def test_members_that_are_templates() -> None:
    service = Service()
    text = "heat_template_version: 2018-08-31\nresources:\n  t: {type: OS::Heat::TestResource, properties: {value: %s}}"
    policy = {"rolling_update": {"max_batch_size": 1, "pause_time": 60}}
    resources = {"grp": {**group(2, {"type": "part.yaml"}), "update_policy": policy}}
    stack_id = service.create(resources, files={"part.yaml": text % "a"})
    service.rest()
    service.update(stack_id, resources, files={"part.yaml": text % "b"})
    service.live(10)

    def inner() -> list[str]:
        leaves = [each for each in service.stacks() if each.depth == 2]
        return sorted(service.row(each.id, "t").properties["value"] for each in leaves)

    assert inner() == ["a", "b"]
    service.rest()
    assert inner() == ["b", "b"]


# -- the policy itself -----------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"rolling_updates": {}}, "resources.grp.update_policy: Unknown Property rolling_updates"),
    ({"rolling_update": {"max": 1}}, "resources.grp.update_policy.rolling_update: Unknown Property max"),
    ({"rolling_update": {"max_batch_size": 0}}, "resources.grp.update_policy.rolling_update.max_batch_size: 0 is out"),
    ({"rolling_update": {"min_in_service": -1}}, "resources.grp.update_policy.rolling_update.min_in_service: -1 is"),
    ({"batch_create": {"pause_time": "x"}}, "resources.grp.update_policy.batch_create.pause_time: Value 'x' is not"),
    ({"batch_create": {"min_in_service": 1}}, "resources.grp.update_policy.batch_create: Unknown Property"),
    ({"rolling_update": {"pause_time": {"get_attr": ["t", "output"]}}}, "resources.grp.update_policy: it has to be"),
]


@pytest.mark.parametrize(("policy", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_policy_is_refused_naming_the_place(policy: dict[str, Any], message: str) -> None:
    service = Service()
    with pytest.raises(Rejected) as refused:
        service.stack_service.create(
            PROJECT, None, "web", StackRequest(template({"grp": {**group(2), "update_policy": policy}, "t": double()}))
        )
    assert message in str(refused.value)


def test_what_has_no_policy_refuses_one() -> None:
    service = Service()
    with pytest.raises(Rejected, match=r"resources\.t\.update_policy: Unknown Property rolling_update"):
        service.begin({"t": {**double(), "update_policy": {"rolling_update": {}}}})


def test_a_policy_may_use_parameters() -> None:
    service = Service()
    resources = {"grp": {**group(3, member("a")), "update_policy": {"batch_create": {"max_batch_size": 2}}}}
    resources["grp"]["update_policy"]["batch_create"]["max_batch_size"] = {"get_param": "size"}
    text = {**template(resources), "parameters": {"size": {"type": "number"}}}
    service.stack_service.create(PROJECT, None, "web", StackRequest(text, parameters={"size": 2}))
    service.work()
    assert history(service) == ["aa", "aaa"]


def test_shards_that_a_batch_leaves_alone_count_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the simulation: the shard that ended a batch was carried over to the next one, and counted nothing."""
    monkeypatch.setattr(members, "MEMBERS_PER_SHARD", 2)
    service = Service()
    service.create({"grp": batched(4, 1)})
    service.rest()
    counted = [(each.planned, each.done) for each in service.shards(service.child().id)]
    assert counted == [(2, 2), (2, 2)]


def test_a_shard_that_has_something_left_to_do_is_not_left_alone_by_a_new_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was lost and replaced while the group had failed waits until it has not; its members are not changed."""
    monkeypatch.setattr(members, "MEMBERS_PER_SHARD", 2)
    service = Service(CloudBehaviour(quota=4))
    stack_id = service.create({"grp": group(5)})
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    child = service.child().id
    lost = service.row(child, "0")
    service.cloud.vanish(lost.handle)
    service.live(100.0)
    assert lost.key in {row.key for row in service.rows(child)}
    service.cloud.behaviour.quota = None
    service.update(stack_id, {"grp": group(6)})
    service.rest()
    service.live(100.0)
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert lost.key not in {row.key for row in service.rows(child)}
