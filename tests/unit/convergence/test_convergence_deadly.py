"""A shard whose passes end their workers is set aside; everything else goes on, and its stack can always be deleted."""

from tests.unit.convergence.running import LIMITS, Service, volume
from tests.unit.convergence.test_convergence_explaining import whys

from homeostat.convergence.conductor import SET_ASIDE_S, run_pass
from homeostat.model.plan import Why
from homeostat.store import health, shards


def crash(service: Service, *, stored: bool = False) -> None:
    """A worker claims the first shard that is due, and is killed."""
    job = next(service.board.iterjobs())
    service.board.claim(job, f"worker that ends at {service.clock.time}")
    if stored:
        with service.db.write() as tx:
            shards.renew(tx, job.lease, service.clock.now(), LIMITS.lease_s)
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
    run_pass(service.passes, service.claim())
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


def test_news_from_elsewhere_do_not_wake_it() -> None:
    service, stack_id = deadly()
    with service.db.write() as tx:
        shards.wake(tx, stack_id, service.clock.now(), shards.USER)
    assert service.board.job_count == 0


def test_it_is_tried_again_later_and_later() -> None:
    service, stack_id = deadly()
    service.clock.time += SET_ASIDE_S
    crash(service)
    run_pass(service.passes, service.claim())
    service.clock.time += 1.5 * SET_ASIDE_S
    assert service.board.job_count == 0
    service.clock.time += SET_ASIDE_S
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
    run_pass(service.passes, service.claim())
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "two workers in a row" in service.stack(stack_id).reason
