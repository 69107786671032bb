"""How long it takes: from events, along the chain that takes longest, and from the rate."""

from typing import Any

import pytest
from tests.unit.planner.worlds import NOW, SERVER, TEST, VOLUME, row, seen, unanswered, wanted, world

from homeostat.planner.report.estimate import Basis, Chain, Estimate, ResourceEvent, critical_path, medians, time_left
from homeostat.planner.report.explain import ShardStatus, explain

DUE = ShardStatus(NOW - 60.0, wake_at=NOW - 1.0)
TOOK = {(SERVER, "CREATE"): 30.0, (VOLUME, "CREATE"): 10.0, (SERVER, "DELETE"): 4.0}


def happened(key: str, action: str, *described: tuple[str, float], type: str = SERVER) -> list[ResourceEvent]:
    return [ResourceEvent(key, type, action, status, at) for status, at in described]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], {}),
        (happened("a", "CREATE", ("IN_PROGRESS", 5), ("COMPLETE", 9)), {(SERVER, "CREATE"): 4}),
        (happened("a", "CREATE", ("COMPLETE", 9)), {}),
        (happened("a", "CREATE", ("IN_PROGRESS", 5), ("FAILED", 9), ("COMPLETE", 11)), {}),
        (happened("a", "CREATE", ("IN_PROGRESS", 5), ("IN_PROGRESS", 7), ("COMPLETE", 9)), {(SERVER, "CREATE"): 4}),
        (
            [
                *happened("a", "CREATE", ("IN_PROGRESS", 0), ("COMPLETE", 2)),
                *happened("b", "CREATE", ("IN_PROGRESS", 0), ("COMPLETE", 3)),
                *happened("c", "CREATE", ("IN_PROGRESS", 0), ("COMPLETE", 90)),
                *happened("c", "UPDATE", ("IN_PROGRESS", 90), ("COMPLETE", 91)),
                *happened("v", "CREATE", ("IN_PROGRESS", 0), ("COMPLETE", 1), type=VOLUME),
            ],
            {(SERVER, "CREATE"): 3, (SERVER, "UPDATE"): 1, (VOLUME, "CREATE"): 1},
        ),
    ],
)
def test_what_took_how_long(events: list[ResourceEvent], expected: dict[Any, float]) -> None:
    assert medians(events) == expected


def chain_of(definitions: list[Any], rows: Any = (), looks: Any = None, inside: Any = None, **more: Any) -> Chain:
    return critical_path(explain(world(definitions, rows, looks, **more), DUE, NOW), TOOK, NOW, inside)


def names(chain: Chain) -> list[str]:
    return [link.explanation.name for link in chain.links]


def test_the_chain_that_takes_longest_is_found() -> None:
    wants = [
        wanted("v1", VOLUME),
        wanted("v2", VOLUME, "v1"),
        wanted("s", SERVER),
        wanted("end", VOLUME, "v2", "s"),
    ]
    chain = chain_of(wants)
    assert names(chain) == ["s", "end"]
    assert chain.seconds == 40.0
    assert chain.unknown == ()


def test_what_has_begun_needs_less() -> None:
    rows = [row("s", state="CREATE_IN_PROGRESS", updated_at=NOW - 25)]
    chain = chain_of([wanted("s"), wanted("v", VOLUME, "s")], rows, {"s1": seen("building")})
    assert [link.seconds for link in chain.links] == [5.0, 10.0]


def test_where_time_alone_releases_it_the_planner_knows_when() -> None:
    waits = row("t", TEST, "CREATE_IN_PROGRESS", acted_at=NOW - 2, properties={"value": "v", "wait_secs": 9})
    assert chain_of([wanted("t", TEST, wait_secs=9)], [waits]).seconds == 7.0
    put_off = unanswered("s", due_at=NOW + 3, updated_at=NOW - 1)
    assert chain_of([wanted("s")], [put_off]).seconds == 33.0
    put_off = unanswered("t", TEST, due_at=NOW + 3, updated_at=NOW - 1)
    assert chain_of([wanted("t", TEST)], [put_off]).seconds is None


def test_what_takes_longer_than_usual_needs_nothing_more_as_far_as_one_knows() -> None:
    rows = [row("s", state="CREATE_IN_PROGRESS", updated_at=NOW - 95)]
    assert chain_of([wanted("s")], rows, {"s1": seen("building")}).seconds == 0.0


def test_what_is_on_its_way_out_counts_too() -> None:
    chain = chain_of([], [row("s")], action="DELETE", revision=2, settled_revision=1)
    assert (names(chain), chain.seconds) == (["s"], 4.0)


def test_what_may_be_done_already_counts_nothing() -> None:
    rows = [row("v", VOLUME), row("s", requires=["v1"])]
    wants = [wanted("v", VOLUME, volume_type="fast"), wanted("s", SERVER, "v")]
    chain = chain_of(wants, rows, revision=2, action="UPDATE", settled_revision=1)
    assert [(link.explanation.name, link.action, link.seconds) for link in chain.links] == [
        ("v", "UPDATE", None),
        ("s", "", 0.0),
    ]


def test_what_was_never_seen_before_is_named() -> None:
    chain = chain_of([wanted("s"), wanted("t", TEST, "s")])
    assert (names(chain), chain.seconds, chain.unknown) == (["s", "t"], 30.0, ((TEST, "CREATE"),))
    nothing = chain_of([wanted("t", TEST)])
    assert (nothing.seconds, nothing.unknown) == (None, ((TEST, "CREATE"),))
    assert chain_of([]) == Chain()


def test_a_nested_stack_needs_what_its_own_chain_needs() -> None:
    assert chain_of([wanted("s"), wanted("v", VOLUME)], inside={"v": 99.0}).seconds == 99.0


def test_a_long_chain_is_not_too_long() -> None:
    wants = [wanted(f"r{n}", SERVER, *([f"r{n - 1}"] if n else [])) for n in range(3000)]
    assert chain_of(wants).seconds == 90_000.0


@pytest.mark.parametrize(
    ("wants", "left", "rate", "expected"),
    [
        ([wanted("s")], 1, None, Estimate(30.0, Basis.CRITICAL_PATH)),
        ([wanted("s")], 100, 2.0, Estimate(50.0, Basis.RATE)),
        ([wanted("s")], 10, 2.0, Estimate(30.0, Basis.CRITICAL_PATH)),
        ([wanted("t", TEST)], 10, 2.0, Estimate(5.0, Basis.RATE)),
        ([wanted("t", TEST)], 10, 0.0, None),
    ],
)
def test_the_longer_of_path_and_rate_counts(wants: Any, left: int, rate: float | None, expected: Any) -> None:
    assert time_left(chain_of(wants), left, rate) == expected
