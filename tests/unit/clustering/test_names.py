"""Names and ids of nodes."""

import re
from uuid import UUID

import pytest

from homeostat.clustering.decisions.names import node_id, node_name

SEED = "5bbac2f7-1111-4444-8888-000000000000"


@pytest.mark.parametrize(
    ("form", "index", "pattern"),
    [
        ("", 1, r"node-[A-Za-z][A-Za-z0-9]{7}"),
        ("node-$8R", 1, r"node-[A-Za-z][A-Za-z0-9]{7}"),
        ("$R", 1, r"[A-Za-z][A-Za-z0-9]{7}"),
        ("web-$3I", 7, r"web-007"),
        ("web-$I", 1234, r"web-1234"),
        ("web-$2I", 1234, r"web-1234"),
        ("$4r-$5I.x", 3, r"[a-z][a-z0-9]{3}-00003\.x"),
        ("$0R-a", 1, r"-a"),
        ("plain", 1, r"plain"),
        ("cost$", 1, r"cost\$"),
        ("$99999999R", 1, r"[A-Za-z][A-Za-z0-9]{63}"),
        ("$99999999I", 1, r"0{63}1"),
        ("$99999999I" * 9, 1, r"[01]{255}"),
    ],
)
def test_a_format_makes_a_name(form: str, index: int, pattern: str) -> None:
    assert re.fullmatch(pattern, node_name(form, SEED, index))


def test_names_follow_from_seed_and_index_alone() -> None:
    assert node_name("", SEED, 1) == node_name("", SEED, 1)
    names = {node_name("", seed, index) for seed in (SEED, "other") for index in range(1, 501)}
    assert len(names) == 1000


def test_each_part_of_a_format_is_drawn_anew() -> None:
    first, second = node_name("$8R/$8R", SEED, 1).split("/")
    assert first != second


def test_letters_are_spread_evenly() -> None:
    drawn = "".join(node_name("$1R", SEED, index) for index in range(5200))
    counts = [drawn.count(letter) for letter in set(drawn)]
    assert len(counts) == 52
    assert min(counts) > 50
    assert max(counts) < 160


def test_ids_are_uuids_that_follow_from_seed_and_index() -> None:
    ids = {node_id(seed, index) for seed in (SEED, "other") for index in range(1, 501)}
    assert len(ids) == 1000
    assert {str(UUID(each)) for each in ids} == ids
    assert node_id(SEED, 1) == node_id(SEED, 1)
