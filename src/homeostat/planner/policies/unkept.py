"""Values that the service sends and the cloud does not keep (ADR 0089, ADR 0097). Pure.

A cloud may take a value and have another one: it adds to a list, or drops what it does not know. To send the value
again changes nothing. Where the answer to our own request shows another value, that is what the cloud makes of ours,
and no drift. Where only a later look shows it, it is repaired once, and then said. What others change is told from both
by what was seen then: another value is drift like any other.
"""

import json
from dataclasses import replace
from typing import Any

from homeostat.kinds.base import Statuses
from homeostat.kinds.registry import BUILTIN_KINDS
from homeostat.model.marks import NO_MARKS
from homeostat.model.observed import Condition, Observation, Verdict
from homeostat.model.plan import Step, Verb
from homeostat.model.world import Resource, World
from homeostat.planner.scope import thing_of
from homeostat.resources.base import Thing, settling
from homeostat.resources.comparison import fingerprint
from homeostat.resources.registry import type_of

OWN_KINDS = {"", *BUILTIN_KINDS}
"""Kinds that the service has itself: nothing makes another value of what it is sent."""
VALUE_MAX = 200
"""Characters of a value that are shown."""


def accept(world: World, step: Step, answer: Observation) -> bool:
    """Note what the cloud makes of values that were just sent, as its answer shows; return whether the notes changed.

    Call it before the answer becomes the newest observation. While the thing is busy, its answer is no sign: an adapter
    may set what it can set only later; unless its status says that all is stored. Nor is the value from before in the
    answer to an update.
    """
    row, kind = step.row, type_of(step.row.type)
    if step.verb not in (Verb.CREATE, Verb.UPDATE) or not answer.present or answer.unfinished or kind.kind in OWN_KINDS:
        return False
    before = thing_of(world, row, kind)
    after = replace(before, seen=answer)
    known = dict(before.accepted) if step.verb is Verb.UPDATE else {}
    asked = {name for name in kind.properties if {*kind.fields_of(name, before.properties)} & {*step.changed}}
    accepted = {name: value for name, value in known.items() if name not in asked}
    if shows_what_is_kept(after, kind.statuses):
        for name in kind.drift(after):
            values = fingerprint(*kind.sent_and_seen(after, name))
            is_new = values != fingerprint(*kind.sent_and_seen(before, name)) or known.get(name) == values
            if step.verb is Verb.CREATE or (name in asked and is_new):
                accepted[name] = values
    if accepted == known:
        return False
    row.marks = replace(row.marks or NO_MARKS, accepted=accepted) or None
    return True


def shows_what_is_kept(thing: Thing, statuses: Statuses) -> bool:
    """Return whether an answer shows what the cloud makes of a request: a busy thing may get the rest only later."""
    return settling(thing, statuses) is None or str(thing.seen.properties.get("status")).lower() in statuses.stored


def sent(world: World, row: Resource, verdict: Verdict) -> None:
    """Note what a repair sends, and what is seen in its place before."""
    thing = thing_of(world, row)
    values = {name: fingerprint(*_values(row, thing, name)) for name in verdict.drifted}
    known = row.marks.repaired if row.marks is not None else {}
    row.marks = replace(row.marks or NO_MARKS, repaired={**known, **values})


def forget(world: World, row: Resource, verdict: Verdict) -> bool:
    """Forget what has been repaired with success by what was seen now; return whether there was anything.

    A value that is not seen, as at the end of an update by a handler, may be kept or not.
    """
    if row.marks is None or not row.marks.repaired or verdict.condition not in (Condition.READY, Condition.DRIFTED):
        return False
    thing = thing_of(world, row)
    left = {
        name: seen
        for name, seen in row.marks.repaired.items()
        if name in verdict.drifted or _is_unseen(*_values(row, thing, name))
    }
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
    return tuple(name for name in verdict.drifted if repaired.get(name) == fingerprint(*_values(row, thing, name)))


def reason(world: World, row: Resource, names: tuple[str, ...]) -> str:
    """Return what users read: the properties, and both values unless the stack may have secrets in them."""
    return "; ".join(_reason_of(world, row, name) for name in names)


def _reason_of(world: World, row: Resource, name: str) -> str:
    if world.stack.secret is not False:
        return f"{name} was sent again, and the cloud does not keep it: it is left so"
    wanted, seen = map(_text, _values(row, thing_of(world, row), name))
    return f"{name} was sent again as {wanted}, and the cloud keeps {seen}: it is left so"


def _values(row: Resource, thing: Thing, name: str) -> tuple[Any, Any]:
    return type_of(row.type).sent_and_seen(thing, name)


def _is_unseen(wanted: Any, seen: Any) -> bool:
    return wanted is not None and seen is None


def _text(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}…"
