"""JSON that is made piece by piece is the same JSON; and no piece of it is large."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.json_pieces import LIGHT, PIECE_BYTES, Entries, Items, encoded, is_light, pieces

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=30,
)


def late(value: Any) -> Any:
    """The same value, whose lists and maps are made while they are written."""
    if isinstance(value, dict):
        return Entries((name, late(item)) for name, item in value.items())
    return Items(late(item) for item in value) if isinstance(value, list) else value


@given(PLAIN)
def test_what_is_made_late_is_the_same(value: Any) -> None:
    assert b"".join(pieces(late(value))) == b"".join(pieces(value)) == encoded(value)


@pytest.mark.parametrize(
    "value",
    [
        [["x" * 1000] * 1000, {}, [], {"a": []}],
        {"a": {str(number): "y" * 100 for number in range(5000)}},
        {1: "z" * LIGHT, None: [1, 2.5, True, '\u20ac\\"\n'] * 5000},
        [2**70, "x" * LIGHT],
    ],
)
def test_what_is_heavy_is_the_same_json(value: Any) -> None:
    made = list(pieces(value))
    assert json.loads(b"".join(made)) == json.loads(json.dumps(value))
    assert all(len(piece) >= PIECE_BYTES for piece in made[:-1])


def test_a_shared_value_is_never_written_at_once() -> None:
    shared = {"text": "x" * 10_000}
    row = [shared] * 1000
    largest = 0
    for number, piece in enumerate(pieces([row] * 1000)):  # ten gigabytes
        largest = max(largest, len(piece))
        if number == 100:
            break
    assert largest < PIECE_BYTES + 6 * LIGHT


@given(st.lists(PLAIN, max_size=100))
def test_small_items_are_the_same(values: list[Any]) -> None:
    assert b"".join(pieces(Items(iter(values), small=True))) == encoded(values)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 2**70}, {"a": 2**70}, {True: {2.5: "b"}}])
def test_other_keys_and_large_integers_are_written_as_before(value: Any) -> None:
    assert json.loads(encoded(value)) == json.loads(json.dumps(value))


def test_members_are_made_when_it_is_their_turn() -> None:
    made = []

    def members() -> Iterator[str]:
        for number in range(100):
            made.append(number)
            yield "x" * PIECE_BYTES

    text = pieces({"items": Items(members())})
    next(text)
    assert len(made) <= 2


def test_weight_counts_what_is_shared_each_time() -> None:
    text = "x" * 1000
    assert is_light([text] * 10)
    assert not is_light([text] * (LIGHT // 1000 + 1))
    assert not is_light({"a": [{"b": [text] * 30}] * 30})
    assert not is_light({"a": Items([])})
