"""A thing on its way out is waited for, whatever its kind: the cloud port says so of every deletion."""

import pytest
from tests.unit.resources.resource_cases import MINIMAL, thing

from homeostat.model.observed import Condition
from homeostat.resources.registry import resource_type

OUTSIDE = sorted(name for name in MINIMAL if resource_type(name).kind not in ("", "stack"))


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_being_deleted_is_waited_for(name: str) -> None:
    leaving = thing(name, seen={"status": "deleting"}, action="DELETE")
    assert resource_type(name).judge(leaving, 101.0).condition is Condition.PENDING
