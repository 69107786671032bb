"""Wait conditions judge by what is counted of signals as they would by the signals themselves."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from homeostat.resources.signals import FAILURE, SUCCESS, SignalCount, count_heard, tallied


def settled(signals: list[dict[str, Any]], wanted: int, until: float) -> SignalCount:
    """The rule as one reads it: signal after signal, until one fails or there are enough."""
    senders: dict[str, None] = {}
    for each in signals:
        if each["at"] > until:
            break
        if each["status"] != SUCCESS:
            return SignalCount(len(senders), failures=[each["reason"]])
        senders[each["id"]] = None
        if len(senders) >= wanted:
            return SignalCount(wanted)
    return SignalCount(len(senders))


SIGNAL = st.fixed_dictionaries(
    {"id": st.sampled_from("abcd"), "status": st.sampled_from([SUCCESS] * 4 + [FAILURE]), "reason": st.text(max_size=3)}
)


@given(st.lists(SIGNAL, max_size=8), st.integers(1, 4), st.integers(0, 8))
def test_counting_settles_as_reading_does(sent: list[dict[str, Any]], wanted: int, until: int) -> None:
    signals = [{**each, "at": float(at)} for at, each in enumerate(sent)]
    found, right = count_heard(tallied(signals, wanted), wanted, float(until)), settled(signals, wanted, float(until))
    assert (found.count >= wanted, list(found.failures)) == (right.count >= wanted, list(right.failures))
    if not found.failures and until >= len(signals):
        assert found.count == right.count


def test_another_number_than_was_counted_for_is_not_met_before_it_is_looked_at() -> None:
    signals = [{"id": each, "status": SUCCESS, "reason": each, "at": 1.0} for each in "ab"]
    assert count_heard(tallied(signals, 3), 2, 9.0).count == 1
    assert count_heard(tallied(signals, 2), 2, 9.0).count == 2
