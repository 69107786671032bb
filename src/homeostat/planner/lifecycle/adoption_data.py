"""The existing thing that a row was given to take over, from an exported document. Pure.

The row remembers it in its intent, from the import of the document to the end of its adoption.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.model.world import Resource

KEY = "given"
"""Key of the intent."""
AdoptionData = Mapping[str, Any]
"""Entry of a resource in the document: `{"action", "status", "metadata", "data"}`; of a nested stack `{"document"}`."""


def of(row: Resource) -> AdoptionData | None:
    """Return what the row has to take over; None if its thing was made here, or is taken over already."""
    found: AdoptionData | None = (row.intent or {}).get(KEY)
    return found


def remember(row: Resource, what: AdoptionData | None) -> None:
    """Go on remembering it, with whatever else the intent holds."""
    if what is not None:
        row.intent = {**(row.intent or {}), KEY: what}


def forget(row: Resource) -> None:
    row.intent = {name: value for name, value in (row.intent or {}).items() if name != KEY} or None
