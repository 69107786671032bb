"""What a look costs while things are in progress and nothing changes: no row is read, and no memory decides."""

import pytest

from homeostat.clock import SystemClock
from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.limits import busy_interval
from homeostat.convergence.observer import Observer
from tests.component.running import LIMITS, Service, volume
from tests.component.test_overtaken_costs import statements


def in_progress(n: int) -> Service:
    """So many volumes that are being made, and were looked at once."""
    service = Service(CloudBehaviour(build_s=1000.0))
    service.create({f"v{number}": volume() for number in range(n)})
    look(service)
    return service


def look(service: Service) -> list[str]:
    """Look once, a second later; return the statements."""
    service.clock.time += LIMITS.look_busy_s
    with statements(service) as sent:
        assert service.observer.round() == 1
    return sent


def reads(sent: list[str]) -> int:
    return sum("FROM resource" in statement for statement in sent)


@pytest.mark.shows("CV7")
def test_a_look_without_a_change_reads_no_rows_however_many_things_are_in_progress() -> None:
    few, many = look(in_progress(2)), look(in_progress(200))
    assert reads(few) == reads(many) == 0
    assert len(few) == len(many)


def test_a_change_is_stored_although_the_rows_were_read_long_before() -> None:
    service = in_progress(3)
    look(service)
    handle = min(service.cloud.things("volume"))
    service.cloud.change(handle, description="changed")
    look(service)
    assert service.board.job_count == 1
    with service.db.read() as tx:
        stored = tx.exec_driver_sql("SELECT object FROM resource_observed WHERE handle = ?", (handle,)).scalar_one()
    assert '"changed"' in stored


def test_rows_are_read_again_once_a_pass_or_another_observer_has_stored_anything() -> None:
    service = in_progress(3)
    assert reads(look(service)) == 0
    service.cloud.change(min(service.cloud.things("volume")), description="changed")
    other = Observer(service.db, service.clouds, service.clock, 60.0, LIMITS.look_busy_s)
    service.clock.time += LIMITS.look_busy_s
    assert other.round() == 1
    assert reads(look(service)) == 1
    assert reads(look(service)) == 0
    service.work()
    assert reads(look(service)) == 1


def test_rows_are_read_again_after_a_while_whatever_their_shard_says() -> None:
    service = in_progress(3)
    assert reads(look(service)) == 0
    service.clock.time += 60.0
    assert reads(look(service)) == 1


def test_an_observer_that_has_just_begun_reads_the_rows() -> None:
    service = in_progress(3)
    service.observer = Observer(service.db, service.clouds, SystemClock(), 60.0, LIMITS.look_busy_s)
    assert reads(look(service)) == 1


def test_a_cloud_that_does_not_answer_makes_no_known_thing_absent() -> None:
    service = in_progress(3)
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    look(service)
    assert service.board.job_count == 0
    service.cloud.behaviour.faults = Faults()
    service.cloud.vanish(min(service.cloud.things("volume")))
    look(service)
    assert service.board.job_count == 1


def test_looks_at_ten_thousand_things_are_some_seconds_apart_once_these_have_waited_long() -> None:
    waited_s = [60.0] * 10_000
    assert busy_interval(1.0, 0.0, waited_s, 10_000) == 5.0
    assert busy_interval(1.0, 0.0, [60.0], 1, of_project=10_000) == 5.0
    assert busy_interval(1.0, 0.0, [4.0] * 10_000, 10_000) == 2.0
    assert busy_interval(1.0, 0.0, [60.0] * 1000, 1000) == 1.0
