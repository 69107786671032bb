"""A shard whose passes end their workers is set aside; everything else goes on, and its stack can always be deleted."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from taskflow.exceptions import JobFailure

from homeostat.convergence.jobs.conductor import DEADLY_RETRY, run_pass
from homeostat.model.errors import Transient
from homeostat.model.waiting import Why
from homeostat.store.database import Transaction
from homeostat.store.operation import health, workers
from homeostat.store.shards import leases, shards
from tests.component.running import LIMITS, Service, volume
from tests.component.test_explaining import whys


def crash(service: Service, *, stored: bool = False) -> None:
    """A worker claims the first shard that is due, and is killed."""
    job = next(service.board.iterjobs())
    service.board.claim(job, f"worker that ends at {service.clock.time}")
    assert job.lease is not None
    if stored:
        with service.db.write() as tx:
            leases.renew(tx, job.lease, service.clock.now(), LIMITS.lease_s)
    service.clock.time += LIMITS.lease_s + 0.1


def aside(service: Service) -> list[str]:
    with service.db.read() as tx:
        return [row.reason for row in health.set_aside(tx)]


def deadly() -> tuple[Service, str]:
    """A service with a stack that has killed two workers, and was set aside."""
    service = Service()
    stack_id = service.begin({"v": volume()})
    crash(service)
    crash(service)
    run_pass(service.reconciler, service.claim())
    assert service.rows(stack_id) == []
    return service, stack_id


def test_a_shard_that_has_killed_its_worker_twice_is_set_aside() -> None:
    service, stack_id = deadly()
    assert service.board.job_count == 0
    (reason,) = aside(service)
    assert "two workers in a row" in reason
    assert whys(service, stack_id) == {"v": Why.SET_ASIDE}


def test_once_is_no_reason() -> None:
    service = Service()
    stack_id = service.begin({"v": volume()})
    crash(service)
    service.work()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    crash_free = service.begin({"v": volume()}, name="other")
    service.work()
    assert service.state(crash_free) == "CREATE_COMPLETE"


def test_who_finds_its_own_claim_has_not_died() -> None:
    """It has lost its connection to the database, and could not give the shard back."""
    service = Service()
    stack_id = service.begin({"v": volume()})
    for _ in range(3):
        service.claim()
        service.clock.time += LIMITS.lease_s + 0.1
    service.work()
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_crashes_are_forgotten_when_a_pass_ends_well() -> None:
    service = Service()
    stack_id = service.begin({"v": volume()})
    for _ in range(4):
        crash(service)
        service.work()
        with service.db.write() as tx:
            shards.wake(tx, stack_id, service.clock.now(), shards.USER)
    assert aside(service) == []


def test_a_storm_of_kills_sets_nothing_aside_that_comes_further() -> None:
    service = Service()
    stack_id = service.begin({"v": volume()})
    for _ in range(5):
        crash(service, stored=True)
    service.work()
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_a_worker_that_is_slow_and_lives_has_not_crashed() -> None:
    """It has lost its lease on a busy machine, again and again, and still reports itself."""
    service = Service()
    stack_id = service.begin({"v": volume()})
    for _ in range(5):
        job = next(service.board.iterjobs())
        owner = f"slow since {service.clock.time}"
        service.board.claim(job, owner)
        service.clock.time += LIMITS.lease_s + 0.1
        with service.db.write() as tx:
            now = service.clock.now() - 0.1
            workers.report(tx, workers.Worker(owner, "host", 1, workers.VERSION, "sql", now, now))
    service.work()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert aside(service) == []


def test_a_worker_that_was_heard_of_before_its_lease_ran_out_and_not_since_has_crashed() -> None:
    service = Service()
    service.begin({"v": volume()})
    for _ in range(2):
        owner = f"dead since {service.clock.time}"
        with service.db.write() as tx:
            now = service.clock.now()
            workers.report(tx, workers.Worker(owner, "host", 1, workers.VERSION, "sql", now, now))
        service.board.claim(next(service.board.iterjobs()), owner)
        service.clock.time += LIMITS.lease_s + 0.1
    run_pass(service.reconciler, service.claim())
    assert len(aside(service)) == 1


def test_after_a_storm_of_kills_all_goes_on_within_the_time_that_it_took() -> None:
    """Every pass over the shard is killed for ten minutes, before it has stored anything."""
    service = Service()
    stack_id = service.begin({"v": volume()})
    began = service.clock.time
    while service.clock.time < began + 600.0:
        for job in service.board.iterjobs():
            service.board.claim(job, f"killed at {service.clock.time}")
            assert job.lease is not None
            if job.lease.crashes_workers:
                run_pass(service.reconciler, job)
        service.clock.time += LIMITS.lease_s + 0.1
    ended = service.clock.time
    while service.state(stack_id) != "CREATE_COMPLETE":
        service.work()
        service.clock.time += 1.0
        assert service.clock.time - ended < 600.0


def test_news_from_elsewhere_do_not_wake_it() -> None:
    service, stack_id = deadly()
    with service.db.write() as tx:
        shards.wake(tx, stack_id, service.clock.now(), shards.USER)
    assert service.board.job_count == 0


def test_it_is_tried_again_later_and_later() -> None:
    service, stack_id = deadly()
    service.clock.time += DEADLY_RETRY.first_s
    crash(service)
    run_pass(service.reconciler, service.claim())
    service.clock.time += 1.5 * DEADLY_RETRY.first_s
    assert service.board.job_count == 0
    service.clock.time += DEADLY_RETRY.first_s
    service.work()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert aside(service) == []


def test_its_stack_can_be_deleted_and_updated_at_once() -> None:
    service, stack_id = deadly()
    service.delete(stack_id)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    service, stack_id = deadly()
    service.update(stack_id, {"v": volume(size=2)})
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_its_stack_times_out_all_the_same() -> None:
    service, stack_id = deadly()
    service.clock.time += 2 * LIMITS.stack_timeout_s
    crash(service)
    run_pass(service.reconciler, service.claim())
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "two workers in a row" in service.stack(stack_id).reason


def seem_to_crash(service: Service) -> None:
    """Two workers in a row lost the answer to a claim, and another one takes over what they hold."""
    for _ in range(2):
        crash(service)
    run_pass(service.reconciler, service.claim())
    assert service.board.job_count == 0


def test_a_worker_whose_claim_was_not_confirmed_has_not_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database went away in the middle of the commit. It is told when the database answers again."""
    service = Service()
    stack_id = service.begin({"v": volume()})
    job = next(service.board.iterjobs())
    genuine = service.db.write

    @contextmanager
    def cut_off() -> Iterator[Transaction]:
        with genuine() as tx:
            yield tx
        raise Transient("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(service.db, "write", cut_off)
        with pytest.raises(JobFailure):
            service.board.claim(job, "survivor")
    service.clock.time += LIMITS.lease_s + 0.1
    seem_to_crash(service)
    service.reconciler.lost.acquit(service.db, "survivor", [])
    service.work()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert aside(service) == []


def test_a_claim_that_was_not_confirmed_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    service.begin({"v": volume()})
    job = next(service.board.iterjobs())
    service.board.claim(job, "survivor")
    assert job.lease is not None
    assert service.board.job_count == 0
    service.reconciler.lost.add(job.stack_id, job.number)
    service.reconciler.lost.acquit(service.db, "survivor", [job.lease])
    assert service.board.job_count == 0, "its pass runs"
    service.reconciler.lost.add(job.stack_id, job.number)
    service.reconciler.lost.acquit(service.db, "survivor", [])
    assert service.board.job_count == 1


def test_a_pass_that_another_worker_took_over_has_not_crashed() -> None:
    """It was frozen, or the database was away from it: it ends later, and says so."""
    service = Service()
    stack_id = service.begin({"v": volume()})
    job = next(service.board.iterjobs())
    service.board.claim(job, "survivor")
    service.clock.time += LIMITS.lease_s + 0.1
    seem_to_crash(service)
    run_pass(service.reconciler, job)
    service.work()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert aside(service) == []
