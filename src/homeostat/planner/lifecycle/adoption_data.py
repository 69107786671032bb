"""What a row was given to take over: a thing that is there already, by a document of export. Pure.

The row remembers it from the document to the end of its adoption, in its intent.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.model.world import Resource

GIVEN = "given"
Given = Mapping[str, Any]
"""`{"action", "status", "metadata", "data"}` of a resource, as its entry in the document says them; of one that is a
stack `{"document": …}`."""


def of(row: Resource) -> Given | None:
    """What the row is to take over; None where it was made, or has taken it over."""
    found: Given | None = (row.intent or {}).get(GIVEN)
    return found


def keep(row: Resource, what: Given | None) -> None:
    """Go on remembering it, with whatever else the intent holds."""
    if what is not None:
        row.intent = {**(row.intent or {}), GIVEN: what}


def forget(row: Resource) -> None:
    row.intent = {name: value for name, value in (row.intent or {}).items() if name != GIVEN} or None
