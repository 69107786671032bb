"""Marks, as a row stores them."""

from typing import Any

import orjson
import pytest

from homeostat.model import marks
from homeostat.model.errors import Bug
from homeostat.model.marks import NO_MARKS, Marks, RecoveryMark, RestoredMark, UnhealthyMark

SMELLS = {"reason": "it smells", "since": 7.0, "by": "ann", "reporter": None, "expires_at": 9.0}
BEGUN: dict[str, Any] = {"begun_at": 3.0, "step": 0, "acted_at": None, "fenced": [], "rounds": 0, "tried": []}
STORED: list[tuple[Marks, dict[str, Any]]] = [
    (Marks(UnhealthyMark("it smells", 7.0, "ann", None, 9.0)), {"unhealthy": {**SMELLS, "before": None}}),
    (
        Marks(UnhealthyMark("it smells", 7.0, "ann", None, 9.0, ("CREATE", "quota"))),
        {"unhealthy": {**SMELLS, "before": ["CREATE", "quota"]}},
    ),
    (Marks(maintained={"locked": 2.0, "suspended": 1.0}), {"suspended": {"at": 1.0}, "locked": {"at": 2.0}}),
    (Marks(healing=True, lost_at=3.0), {"healing": {}, "lost": {"at": 3.0}}),
    (Marks(recovery=RecoveryMark(3.0)), {"recovery": BEGUN}),
    (
        Marks(recovery=RecoveryMark(3.0, identity={"networks": []}, unsure=("COMPUTE",))),
        {"recovery": {**BEGUN, "identity": {"networks": []}, "unsure": ["COMPUTE"]}},
    ),
    (Marks(restored=RestoredMark("s/2", {"image": "i"})), {"restored": {"run": "s/2", "said": {"image": "i"}}}),
]


@pytest.mark.parametrize(("value", "stored"), STORED)
def test_marks_are_stored_and_read_back(value: Marks, stored: dict[str, Any]) -> None:
    assert orjson.loads(orjson.dumps(marks.dump(value))) == stored
    assert marks.load(stored) == value


def test_marks_are_true_if_there_is_any() -> None:
    assert all(value for value, _ in STORED)
    assert not NO_MARKS


def test_a_mark_of_a_newer_version_is_not_dropped_silently() -> None:
    with pytest.raises(Bug, match="marks that this version does not know: \\['painted'\\]"):
        marks.load({"healing": {}, "painted": {}})
