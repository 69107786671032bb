"""Each property that templates can set on what a cloud has: values of it were tried, or it is said why not."""

import json
from collections.abc import Iterator

from docs.normalisations_page import REASONS, RECORDED, reason, untried

from homeostat.kinds.registry import CLOUD_KINDS
from homeostat.resources.registry import types
from tests.customers.magnum_values import CONTAINERS
from tests.openstack.further_values import FURTHER
from tests.openstack.normal_values import TABLE
from tests.openstack.service_values import SERVICES

TRIED: dict[str, list[dict[str, object]]] = json.loads(RECORDED.read_text("utf-8"))
TRIALS = {**TABLE, **FURTHER, **SERVICES, **CONTAINERS}


def test_each_property_has_values_that_were_tried_or_a_reason() -> None:
    assert [place for place in untried(TRIED) if not reason(*place)] == []


def test_what_was_tried_is_tried_still() -> None:
    """Rows are of types and properties that there are, and of the values of their trials."""
    found = {f"{name} {key}": [*each] for name, values in TRIALS.items() for key, each in values.tried.items()}
    assert {place: [row["sent"] for row in rows] for place, rows in TRIED.items()} == found


def test_nothing_that_was_tried_drifts_or_stays_once_it_is_taken_out() -> None:
    assert [
        place for place, rows in TRIED.items() if any(row["drift"] or row["default"] is False for row in rows)
    ] == []


def test_no_reason_is_left_over() -> None:
    """Each is of something that was not tried."""
    assert [each for kind in REASONS.values() for each in kind if each not in {*_said()}] == []


def _said() -> Iterator[str]:
    """Yield types, families of types and properties that a reason is given for."""
    for name, key in untried(TRIED):
        yield from (f"{name} {key}", key)
        yield from (family for family in REASONS["types"] if name.startswith(family))


def test_what_is_recorded_is_of_kinds_that_a_cloud_has() -> None:
    names = {place.rpartition(" ")[0] for place in TRIED}
    assert [name for name in sorted(names) if types()[name].kind not in CLOUD_KINDS] == []
