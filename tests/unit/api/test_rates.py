import pytest

from homeostat.api.http import rate_limits
from homeostat.api.http.rate_limits import TokenBuckets
from homeostat.model.errors import TooManyRequests
from homeostat.model.rates import Rate, read_rate


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_as_many_as_at_once_then_at_the_rate() -> None:
    clock = Clock()
    buckets = TokenBuckets(Rate(2.0, 3), clock)
    for _ in range(3):
        buckets.take("p", "ann")
    with pytest.raises(TooManyRequests) as refused:
        buckets.take("p", "ann")
    assert refused.value.retry_after_s == pytest.approx(0.5)
    assert refused.value.headers == {"Retry-After": "1"}
    clock.now += 0.5
    buckets.take("p", "ann")
    with pytest.raises(TooManyRequests):
        buckets.take("p", "ann")
    clock.now += 100
    for _ in range(3):
        buckets.take("p", "ann")
    with pytest.raises(TooManyRequests):
        buckets.take("p", "ann")


def test_each_caller_and_project_has_its_own() -> None:
    buckets = TokenBuckets(Rate(1.0, 1), Clock())
    for key in (("p", "ann"), ("p", "bob"), ("q", "ann"), ("p", None)):
        buckets.take(*key)
        with pytest.raises(TooManyRequests):
            buckets.take(*key)


def test_no_rate_no_limit() -> None:
    buckets = TokenBuckets(None, Clock())
    for _ in range(1000):
        buckets.take("p")
    assert len(buckets) == 0


def test_buckets_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where they are full again, nor where everybody asks at once."""
    monkeypatch.setattr(rate_limits, "BUCKETS_MAX", 8)
    clock = Clock()
    buckets = TokenBuckets(Rate(1.0, 5), clock)
    for number in range(100):
        buckets.take(number)
        assert len(buckets) <= 8
        clock.now += 0.01


@pytest.mark.parametrize(
    ("text", "rate"),
    [("", None), ("10", Rate(10.0, 10)), ("0.5", Rate(0.5, 1)), ("10:50", Rate(10.0, 50)), ("2.5", Rate(2.5, 3))],
)
def test_read_rate(text: str, rate: Rate | None) -> None:
    assert read_rate(text) == rate


@pytest.mark.parametrize("text", ["0", "-1", "x", "10:", "10:0", "10:x", ":5", "1:2:3", "inf"])
def test_no_rate(text: str) -> None:
    with pytest.raises(ValueError, match="10 or 10:50"):
        read_rate(text)
