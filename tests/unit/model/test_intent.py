"""Intents of rows: one JSON for each, the same in every version."""

from typing import Any

import pytest

from homeostat.model import intent
from homeostat.model.errors import Bug
from homeostat.model.intent import AdoptionIntent, ChangeIntent, Intent, LeftAlone, OperationIntent, SnapshotMade

STORED: dict[str, tuple[Intent, dict[str, Any]]] = {
    "a change": (ChangeIntent(("flavor", "name"), 7), {"changed": ["flavor", "name"], "stamp": 7}),
    "a repair": (ChangeIntent(("flavor",)), {"changed": ["flavor"]}),
    "a creation that may come late": (ChangeIntent((), 7, late_s=30.0), {"changed": [], "stamp": 7, "late_s": 30.0}),
    "an adoption": (ChangeIntent((), 3, {"data": {}}), {"changed": [], "stamp": 3, "given": {"data": {}}}),
    "an adoption to come": (AdoptionIntent({"document": {}}), {"given": {"document": {}}}),
    "an operation": (OperationIntent("start"), {"operation": "start"}),
    "a request to a nested stack": (OperationIntent("check", 4), {"operation": "check", "stamp": 4}),
    "a snapshot": (OperationIntent("snapshot", token="a-7"), {"operation": "snapshot", "token": "a-7"}),
    "an operation with arguments": (
        OperationIntent("reboot", arguments={"type": "HARD"}),
        {"operation": "reboot", "arguments": {"type": "HARD"}},
    ),
    "a complete snapshot": (SnapshotMade("s-1"), {"snapshot": "s-1"}),
    "a thing left as it is": (LeftAlone("it is gone"), {"left": "it is gone"}),
}


@pytest.mark.parametrize(("value", "stored"), STORED.values(), ids=STORED.keys())
def test_intents_are_stored_and_read_back(value: Intent, stored: dict[str, Any]) -> None:
    assert intent.dump(value) == stored
    assert intent.load(stored) == value


def test_an_intent_of_an_unknown_kind_is_an_internal_error() -> None:
    with pytest.raises(Bug, match="stop"):
        intent.load({"stop": 1})


def test_an_adoption_ends_and_the_change_that_it_began_with_stays() -> None:
    assert intent.with_adoption(ChangeIntent(("name",), 2), {"data": {}}) == ChangeIntent(("name",), 2, {"data": {}})
    assert intent.without_adoption(ChangeIntent(("name",), 2, {"data": {}})) == ChangeIntent(("name",), 2)
    assert intent.without_adoption(AdoptionIntent({"data": {}})) is None
    assert intent.adoption_of(OperationIntent("start")) is None
