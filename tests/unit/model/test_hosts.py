"""Hosts: when one that is called down is believed to be so."""

import pytest

from homeostat.model import hosts
from homeostat.model.hosts import AT_ONCE_S, DOWN, UP, Host

NOW = 1_000_000.0


def listed(*shown: tuple[str, float | None, str]) -> list[Host]:
    """Hosts `a`, `b`, …, each by its state, how long ago it was heard of, and `forced` or `disabled`."""
    return [
        Host(name, state, "disabled" if more == "disabled" else "enabled", ago_s and NOW - ago_s, more == "forced")
        for name, (state, ago_s, more) in zip("abcdefgh", shown, strict=False)
    ]


HEARD, SILENT = (UP, 5.0, ""), (DOWN, 70.0, "")
LONG_AGO = (DOWN, AT_ONCE_S + 100.0, "")
FORCED = (DOWN, 70.0, "forced")


@pytest.mark.parametrize(
    ("shown", "blind", "reason"),
    [
        ([HEARD, HEARD], False, "all are heard of"),
        ([SILENT, HEARD], False, "half of two"),
        ([SILENT], True, "the only one"),
        ([SILENT, SILENT], True, "all"),
        ([SILENT, SILENT, HEARD], True, "most"),
        ([SILENT, SILENT, HEARD, HEARD], False, "half"),
        ([LONG_AGO, LONG_AGO, LONG_AGO, SILENT, HEARD], False, "those that failed long ago say nothing"),
        ([LONG_AGO, SILENT], True, "nor does one that failed long ago help"),
        ([FORCED, FORCED, SILENT, HEARD], False, "those that were declared down say nothing"),
        ([FORCED, SILENT], True, "nor does one that was declared down help"),
        ([(DOWN, None, ""), HEARD], False, "one that was never heard of"),
        ([], False, "none"),
    ],
)
def test_most_hosts_are_not_down_at_once(shown: list[tuple[str, float, str]], blind: bool, reason: str) -> None:
    assert bool(hosts.blindness(listed(*shown))) == blind, reason


@pytest.mark.parametrize(
    ("shown", "doubted", "reason"),
    [
        ([SILENT, HEARD], "", "silent for longer than the others"),
        ([HEARD, HEARD], "", "nobody calls it down"),
        ([SILENT, SILENT], "control plane", "blind"),
        ([(DOWN, 20.0, ""), HEARD], "less than 20 s", "it has not stood still for long enough"),
        ([(DOWN, 60.0, ""), HEARD, (UP, 50.0, "")], "less than 20 s", "another one was heard of hardly later"),
        ([(DOWN, 80.0, ""), HEARD, (UP, 50.0, "")], "less than", "others beat as seldom"),
        ([(DOWN, None, ""), HEARD], "", "it was never heard of"),
        ([FORCED, HEARD], "", "it was declared down, and is silent"),
        ([(DOWN, 4.0, "forced"), HEARD], "--up a nova-compute", "it was declared down, and beats"),
    ],
)
def test_a_host_that_is_called_down_may_be_heard_of(
    shown: list[tuple[str, float, str]], doubted: str, reason: str
) -> None:
    found = hosts.doubt(listed(*shown)[0], listed(*shown))
    assert (doubted in found, bool(found)) == (True, bool(doubted)), reason


def test_others_take_its_servers_that_are_heard_of_and_enabled() -> None:
    found = listed(SILENT, HEARD, SILENT, (UP, 5.0, "disabled"), FORCED)
    assert [each.name for each in hosts.others_that_take(found[0], found)] == ["b"]


@pytest.mark.parametrize(
    ("before", "now", "beaten"),
    [
        ((NOW, False), (NOW, False), False),
        ((NOW, False), (NOW + 10.0, False), True),
        ((NOW, False), (NOW + 10.0, True), False),
        ((NOW, True), (NOW + 10.0, True), True),
        ((NOW, True), (NOW + 10.0, False), True),
        ((None, False), (None, False), False),
    ],
)
def test_to_declare_a_host_down_is_no_beat(
    before: tuple[float | None, bool], now: tuple[float | None, bool], beaten: bool
) -> None:
    one, other = (hosts.beat_of(at, forced_down=forced) for at, forced in (before, now))
    assert hosts.has_beaten(one, other) == beaten
    assert not hosts.has_beaten("", other)
