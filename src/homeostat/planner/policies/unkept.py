"""Values that the service sends and the cloud does not keep: they are repaired once, and then said (ADR 0089). Pure.

A cloud may take a value and have another one: it adds to a list, or drops what it does not know. To send the value
again changes nothing. What others change is told from it by what was seen after the repair: once the value was there,
its loss is drift like any other.
"""

import hashlib
import json
from dataclasses import replace
from typing import Any

from homeostat.model.marks import NO_MARKS
from homeostat.model.observed import Condition, Verdict
from homeostat.model.world import Resource, World
from homeostat.planner.scope import thing_of
from homeostat.resources.base import Thing
from homeostat.resources.registry import type_of

VALUE_MAX = 200
"""Characters of a value that are shown."""


def sent(world: World, row: Resource, verdict: Verdict) -> None:
    """Note what a repair sends, and what is seen in its place before."""
    thing = thing_of(world, row)
    found = {name: _fingerprint(*_values(row, thing, name)) for name in verdict.drifted}
    known = row.marks.repaired if row.marks is not None else {}
    row.marks = replace(row.marks or NO_MARKS, repaired={**known, **found})


def forget(row: Resource, verdict: Verdict) -> bool:
    """Forget what has been repaired with success by what was seen now; return whether there was anything."""
    if row.marks is None or not row.marks.repaired or verdict.condition not in (Condition.READY, Condition.DRIFTED):
        return False
    left = {name: seen for name, seen in row.marks.repaired.items() if name in verdict.drifted}
    if left == row.marks.repaired:
        return False
    row.marks = replace(row.marks, repaired=left) or None
    return True


def of(world: World, row: Resource, verdict: Verdict) -> tuple[str, ...]:
    """Return the names of properties that differ as they did before they were sent again."""
    repaired = row.marks.repaired if row.marks is not None else {}
    if verdict.condition is not Condition.DRIFTED or not repaired:
        return ()
    thing = thing_of(world, row)
    return tuple(name for name in verdict.drifted if repaired.get(name) == _fingerprint(*_values(row, thing, name)))


def reason(world: World, row: Resource, names: tuple[str, ...]) -> str:
    """Return what users read: the properties, and both values unless the stack may have secrets in them."""
    return "; ".join(_told(world, row, name) for name in names)


def _told(world: World, row: Resource, name: str) -> str:
    if world.stack.secret is not False:
        return f"{name} was sent again, and the cloud does not keep it: it is left so"
    wanted, seen = map(_text, _values(row, thing_of(world, row), name))
    return f"{name} was sent again as {wanted}, and the cloud keeps {seen}: it is left so"


def _values(row: Resource, thing: Thing, name: str) -> tuple[Any, Any]:
    """Return the wanted and the observed value of a property."""
    observed = type_of(row.type).observed_properties(thing)
    return thing.properties.get(name), observed.get(name, thing.seen.properties.get(name))


def _text(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}…"


def _fingerprint(wanted: Any, seen: Any) -> str:
    text = json.dumps([wanted, seen], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
