"""Workers that die at the worst moment, as the simulation found it: what they have made is neither lost nor taken for
something else."""

from typing import Any

import pytest
from sqlalchemy import update

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.store import schema
from homeostat.store.operation import purge
from tests.component.running import Service, double, group, server


class Died(BaseException):
    """kill -9."""


def die_after_acting(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the next pass up to its first act outside; what that gave is never stored."""
    execute = service.executor.execute

    def and_die(*what: Any) -> Any:
        answers = execute(*what)
        if answers:
            raise Died
        return answers

    with monkeypatch.context() as patched:
        patched.setattr(service.executor, "execute", and_die)
        with pytest.raises(Died):
            run_pass(service.reconciler, service.claim())


def timed_out(monkeypatch: pytest.MonkeyPatch, **members: Any) -> tuple[Service, str]:
    """A group whose stack was made by a worker that died then; nobody went on before the time was over."""
    service = Service()
    stack_id = service.begin({"grp": group(2, **members)}, timeout_mins=1)
    die_after_acting(service, monkeypatch)
    assert service.child().parent_id == stack_id
    service.clock.time += 61.0
    service.rest()
    assert service.states(stack_id) == {"grp": "CREATE_FAILED"}
    return service, stack_id


def test_a_group_whose_maker_died_is_deleted_with_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    service, stack_id = timed_out(monkeypatch)
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things() == {}
    assert all(each.deleted_at is not None for each in service.stacks())


def test_a_group_whose_maker_died_is_not_taken_for_what_is_wanted_now(monkeypatch: pytest.MonkeyPatch) -> None:
    service, stack_id = timed_out(monkeypatch)
    service.update(stack_id, {"grp": group(1, server(name="new%index%"))})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert [each["name"] for each in service.cloud.things("server").values()] == ["new0"]


def test_a_group_whose_maker_died_goes_with_its_template(monkeypatch: pytest.MonkeyPatch) -> None:
    service, stack_id = timed_out(monkeypatch)
    service.update(stack_id, {"t": double()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.cloud.things() == {}


def test_a_stack_that_was_purged_since_its_shard_was_claimed_does_no_harm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = Service()
    stack_id = service.begin({"t": double()})
    job = service.claim()
    with service.db.write() as tx:
        tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(deleted_at=0.0))
    assert purge.purge(service.db, purge.Rules(deleted_before=1.0, events_max=1000)).stacks == 1
    run_pass(service.reconciler, job)
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []


@pytest.mark.shows("CV18")
@pytest.mark.parametrize("late_s", [30.0, 0.0], ids=["the cloud says so", "it does not"])
def test_what_a_cloud_makes_late_is_waited_for(late_s: float) -> None:
    behaviour = CloudBehaviour(faults=Faults(lost=1.0, late_s=late_s), listing_lag_s=10.0, idempotent=False)
    service = Service(behaviour)
    # It lists at once whatever it has made, and has not made this yet.
    service.cloud.listing_lag_s = 0.0
    stack_id = service.begin({"net": {"type": "OS::Neutron::Net"}})
    service.work()
    (first,) = service.cloud.things("network")
    behaviour.faults.lost = 0.0
    service.live(8)
    assert len(service.cloud.things("network")) == (1 if late_s else 2)
    service.rest()
    service.live(700)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert len(service.cloud.things("network")) == 1
    assert (service.row(stack_id, "net").handle == first) == bool(late_s)


@pytest.mark.shows("CV18")
def test_what_has_not_come_in_time_is_made_anew() -> None:
    behaviour = CloudBehaviour(faults=Faults(lost=1.0, late_s=30.0), listing_lag_s=0.0, idempotent=False)
    service = Service(behaviour)
    stack_id = service.begin({"net": {"type": "OS::Neutron::Net"}})
    service.work()
    (first,) = service.cloud.things("network")
    service.cloud.vanish(first)
    behaviour.faults.lost = 0.0
    began = service.clock.now()
    service.live(29)
    assert service.cloud.things("network") == {}
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.clock.now() - began < 35
