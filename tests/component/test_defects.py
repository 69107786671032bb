"""Defects found by reading, seen from outside: each test says what should be."""

from typing import Any

import pytest
from sqlalchemy import select

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.store.shards import leases
from tests.component.running import LIMITS, Service, double, server, template, volume


def test_a_rollback_keeps_the_volume_that_may_not_shrink() -> None:
    service = Service()
    stack_id = service.create({"disk": volume(size=2)}, disable_rollback=False)
    service.rest()
    before = list(service.cloud.things("volume"))
    service.update(stack_id, {"disk": volume(size=1)})
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert list(service.cloud.things("volume")) == before


def test_a_wrong_value_from_another_resource_leaves_the_volume_alone() -> None:
    def resources(size: str) -> dict[str, Any]:
        return {"t": double(value=size), "disk": volume(size={"get_attr": ["t", "output"]})}

    service = Service()
    stack_id = service.create(resources("2"))
    service.rest()
    before = list(service.cloud.things("volume"))
    service.update(stack_id, resources("big"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert list(service.cloud.things("volume")) == before


def test_a_volume_that_only_people_can_judge_is_left_to_them() -> None:
    service = Service()
    stack_id = service.create({"disk": volume()})
    service.rest()
    service.update(stack_id, {"disk": volume(), "t": double()})
    service.rest()
    (handle,) = service.cloud.things("volume")
    service.cloud.change(handle, status="error", attachments=[{"id": "x"}])
    service.live(200)
    assert list(service.cloud.things("volume")) == [handle]


def test_a_stack_with_a_bug_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    stack_id = service.begin({"t": double()}, timeout_mins=1)

    def bug(*_: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(service.reconciler.definitions, "get", bug)
    service.live(300)
    assert service.state(stack_id) == "CREATE_FAILED"


def test_slow_batches_one_after_the_other_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch takes longer than a lease; nobody else wants the shard."""
    service = Service()
    stack_id = service.create({"srv": server(), "disk": volume()})
    service.rest()
    update = service.cloud.update

    def slow(*arguments: Any) -> Any:
        service.clock.time += LIMITS.lease_s + 1
        return update(*arguments)

    monkeypatch.setattr(service.cloud, "update", slow)
    service.update(stack_id, {"srv": server(metadata={"k": "v"}), "disk": volume(metadata={"k": "v"})})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


@pytest.mark.shows("CV10")
def test_a_superseded_pass_records_all_it_has_made_since_its_last_transaction() -> None:
    """a was made by the last batch; b comes with the next, whose transaction is refused."""
    service = Service()
    service.begin({"a": server(), "b": {**server(), "depends_on": "a"}})
    job, create = service.claim(), service.cloud.create

    def loses_the_shard(*arguments: Any) -> Any:
        answers = create(*arguments)
        service.clock.time += LIMITS.lease_s + 1
        with service.db.write() as tx:
            assert leases.claim(tx, job.stack_id, job.number, "w2", service.clock.now(), LIMITS.lease_s) is not None
        return answers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.cloud, "create", loses_the_shard)
        run_pass(service.reconciler, job)
    (made,) = service.rows(job.stack_id)
    with service.db.read() as tx:
        assert made.token in set(tx.execute(select(schema.orphan.c.token)).scalars())


def test_news_in_the_middle_of_an_update_reach_dependants() -> None:
    """The first update leaves a alone and changes t; while it goes on, a gets another address."""
    service = Service()

    def resources(value: str, wait_s: int) -> dict[str, Any]:
        sentence = {"list_join": [" ", [value, {"get_attr": ["a", "first_address"]}]]}
        return {"a": server(), "t": double(value=sentence), "slow": double(wait_secs=wait_s)}

    stack_id = service.create(resources("one", 0))
    service.rest()
    service.update(stack_id, resources("two", 100))
    other = {"net": [{"addr": "10.9.9.9"}]}
    service.cloud.change(service.servers()[0], addresses=other)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    service.live(600)
    assert service.row(stack_id, "t").properties["value"] == "two 10.9.9.9"


def test_an_outage_does_not_use_up_the_attempts() -> None:
    service = Service(CloudBehaviour(faults=Faults(unreachable=1.0)))
    stack_id = service.create({"a": server()})
    service.live(300)
    service.cloud.behaviour.faults = Faults(error=1.0)
    while not service.servers():
        service.live(1)
    service.cloud.behaviour.faults = Faults()
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_the_old_server_stays_when_the_first_replacement_comes_up_broken() -> None:
    service = Service(CloudBehaviour(build_s=3.0))
    stack_id = service.create({"a": server()})
    service.rest()
    (old,) = service.servers()
    service.cloud.behaviour.faults = Faults(error=1.0)
    service.update(stack_id, {"a": server(key_name="k"), "t": double(wait_secs=5)})
    service.cloud.behaviour.faults = Faults()
    ready = False
    while service.state(stack_id) == "UPDATE_IN_PROGRESS":
        service.live(0.5)
        things = service.cloud.things("server")
        ready = ready or any(each["status"] == "active" for handle, each in things.items() if handle != old)
        assert ready or old in things


@pytest.mark.parametrize("build_s", [0.0, 5.0])
def test_what_was_changed_before_its_creation_was_found_again_is_changed_back(build_s: float) -> None:
    """The look that finds it is its owner's own, and still it has to be judged."""
    faults = Faults(lost=1.0)
    service = Service(CloudBehaviour(build_s=build_s, faults=faults))
    stack_id = service.create({"a": server(metadata={"k": "v"})})
    (handle,) = service.servers()
    service.cloud.change(handle, metadata={"k": "other"})
    faults.lost = 0.0
    service.rest()
    service.live(10.0)
    assert service.cloud.things("server")[handle]["metadata"] == {"k": "v"}
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_outputs_that_a_config_declares_are_attributes_of_its_deployment() -> None:
    service = Service()
    config = {"group": "script", "config": "echo", "outputs": [{"name": "result"}]}
    resources = {
        "config": {"type": "OS::Heat::SoftwareConfig", "properties": config},
        "deployment": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {"config": {"get_resource": "config"}, "server": "s"},
        },
        "value": {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["deployment", "result"]}}},
    }
    stack_id = service.create(resources)
    service.live(1)
    service.signal(stack_id, "deployment", {"result": "42", "deploy_status_code": 0})
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.row(stack_id, "value").properties["value"] == "42"


def test_a_creation_that_was_given_up_for_a_thing_of_others_is_not_looked_for_again_and_again() -> None:
    """Its token goes with it, also where the stack has failed and nothing follows."""
    service = Service(CloudBehaviour(faults=Faults(unreachable=1.0)))
    stack_id = service.create({"disk": volume()})
    service.cloud.behaviour.faults = Faults()
    theirs = {"disk": {**volume(), "external_id": "volume-of-others", "properties": {}}, "bad": double(fail=True)}
    service.stack_service.update(stack_id, StackRequest(template(theirs), disable_rollback=True))
    service.live(100.0)
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert service.row(stack_id, "disk").token == ""
    assert service.board.job_count == 0
