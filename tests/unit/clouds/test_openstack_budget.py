"""Limits of requests, on virtual time: turns of several processes, pauses, and what is too far away."""

import pytest

from homeostat.clouds.openstack.answers import retry_after_s
from homeostat.clouds.openstack.budget import CHANGE_WAITS_S, LOOK_WAITS_S, Budget, read_limits
from homeostat.model.errors import Transient
from homeostat.model.rates import Rate


class World:
    """Virtual time, and turns that processes share, as the database keeps them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.free_at = 0.0
        self.transactions = 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def take(self, service: str, rate: Rate, wanted: int, within_s: float) -> tuple[list[float], float]:
        self.transactions += 1
        first = max(self.free_at, self.now - (rate.burst - 1) / rate.per_s)
        there = [first + n / rate.per_s for n in range(wanted)]
        turns = [max(each - self.now, 0.0) for each in there if each <= self.now + within_s]
        self.free_at = first + len(turns) / rate.per_s
        return turns, max(self.free_at - self.now, 0.0)

    def process(self, limits: str) -> Budget:
        return Budget(read_limits(limits), self, self.monotonic, self.sleep)


@pytest.fixture
def world() -> World:
    return World()


def test_one_thread_gets_the_whole_limit_with_few_transactions(world: World) -> None:
    budget, started = world.process("compute=50:1"), world.now
    for _ in range(501):
        budget.take("compute")
    assert world.now - started == pytest.approx(10.0)
    assert world.transactions <= 10.0 * 6


def test_a_burst_is_sent_at_once_and_then_the_limit_holds(world: World) -> None:
    budget, started = world.process("compute=2:5"), world.now
    times = []
    for _ in range(9):
        budget.take("compute")
        times.append(round(world.now - started, 3))
    assert times == [0, 0, 0, 0, 0, 0.5, 1.0, 1.5, 2.0]


def test_services_do_not_take_turns_from_one_another_and_the_others_have_none(world: World) -> None:
    budget, started = world.process("compute=1"), world.now
    for _ in range(100):
        budget.take("network")
    assert (world.now, world.transactions) == (started, 0)


def test_a_limit_without_a_service_is_that_of_each_other_one(world: World) -> None:
    budget, started = world.process("10:1,compute=1:1"), world.now
    budget.take("network")
    budget.take("network")
    assert world.now - started == pytest.approx(0.1)


@pytest.mark.parametrize(("looks", "waits_s"), [(True, LOOK_WAITS_S), (False, CHANGE_WAITS_S)])
def test_a_turn_that_is_too_far_away_is_not_waited_for(world: World, looks: bool, waits_s: float) -> None:
    budget, started = world.process("compute=1:1"), world.now
    world.free_at = started + waits_s + 1.5
    with pytest.raises(Transient) as refused:
        budget.take("compute", looks)
    assert refused.value.retry_after_s == pytest.approx(waits_s + 1.5)
    assert "compute: the limit of 1 requests a second" in str(refused.value)
    assert (world.now, world.free_at) == (started, started + waits_s + 1.5)


def test_turns_taken_ahead_and_not_used_are_lost_soon(world: World) -> None:
    budget = world.process("compute=100:1")
    for _ in range(8):  # takes 1, 2, 4, 8 turns
        budget.take("compute")
    world.now += 10
    before = world.now
    for _ in range(11):
        budget.take("compute")
    assert world.now - before == pytest.approx(0.1)


def test_a_pause_that_a_service_asks_for_holds_up_that_service_alone(world: World) -> None:
    budget, started = world.process(""), world.now
    budget.pause("compute", 3.0)
    with pytest.raises(Transient) as refused:
        budget.take("compute", looks=True)
    assert refused.value.retry_after_s == pytest.approx(3.0)
    budget.take("network")
    assert world.now == started
    budget.take("compute")
    assert world.now == started + 3
    budget.take("compute")
    assert world.now == started + 3


def test_a_pause_has_an_end(world: World) -> None:
    budget = world.process("")
    budget.pause("compute", 1e9)
    world.now += 300
    budget.take("compute", looks=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("10", {"": Rate(10.0, 10)}),
        ("compute=20, network=50:100", {"compute": Rate(20.0, 20), "network": Rate(50.0, 100)}),
        ("5,compute=0.5", {"": Rate(5.0, 5), "compute": Rate(0.5, 1)}),
    ],
)
def test_limits_are_read(text: str, expected: dict[str, Rate]) -> None:
    assert read_limits(text) == expected


@pytest.mark.parametrize("text", ["compute", "compute=", "compute=-1", "0", "compute=1,compute=2"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"requests a second|SERVICE="):
        read_limits(text)


@pytest.mark.parametrize(
    ("code", "headers", "expected"),
    [
        (429, {"Retry-After": "7"}, 7.0),
        (503, {"Retry-After": "7"}, 7.0),
        (413, {"Retry-After": "7"}, 7.0),
        (409, {"Retry-After": "7"}, 0.0),
        (429, {}, 0.0),
        (429, {"Retry-After": "soon"}, 0.0),
        (
            429,
            {"Retry-After": "Mon, 23 Nov 2026 22:00:30 GMT", "Date": "Mon, 23 Nov 2026 22:00:00 GMT"},
            30.0,
        ),
        (
            429,
            {"Retry-After": "Mon, 23 Nov 2026 21:00:30 GMT", "Date": "Mon, 23 Nov 2026 22:00:00 GMT"},
            0.0,
        ),
        (429, {"Retry-After": "Mon, 23 Nov 2026 22:00:30 GMT"}, 0.0),
    ],
)
def test_when_a_service_may_be_asked_again(code: int, headers: dict[str, str], expected: float) -> None:
    assert retry_after_s(code, headers) == expected
