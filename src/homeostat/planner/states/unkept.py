"""Values that the service sends and the cloud does not keep (ADR 0089, ADR 0097). Pure.

A cloud may accept a value and store a different value: it extends a list, or drops unknown entries. Sending the value
again changes nothing. If the answer to our own request shows a different value, the cloud has converted ours, and there
is no drift. If only a later look shows the difference, it is repaired once, and then reported. The observed values are
noted in both cases, so that a change by third parties is recognized as drift.
"""

import json
from dataclasses import replace
from typing import Any

from homeostat.kinds.base import Statuses
from homeostat.kinds.registry import BUILTIN_KINDS
from homeostat.model.marks import NO_MARKS
from homeostat.model.observed import Condition, Observation, Verdict
from homeostat.model.plan import Create, Step, Update
from homeostat.model.world import Resource, World
from homeostat.planner.scope import thing_of
from homeostat.resources.base import Thing, settling
from homeostat.resources.comparison import fingerprint
from homeostat.resources.registry import type_of

OWN_KINDS = {"", *BUILTIN_KINDS}
"""Kinds of the service itself, which keep all values."""
VALUE_MAX = 200
"""Maximum length of a value in a reason."""


def accept(world: World, step: Step, answer: Observation) -> bool:
    """Note the cloud's conversions of the values just sent, as shown by its answer; return whether the notes changed.

    Call this before the answer becomes the newest observation. The answer of a busy thing does not count, since an
    adapter may set some values later, unless the status says that all values are stored. An unchanged former value in
    the answer to an update does not count either.
    """
    row, act, kind = step.row, step.act, type_of(step.row.type)
    if not isinstance(act, (Create, Update)) or not answer.present or answer.unfinished or kind.kind in OWN_KINDS:
        return False
    before = thing_of(world, row, kind)
    after = replace(before, seen=answer)
    known, sent_names = dict[str, str](), set[str]()
    if isinstance(act, Update):
        known, changed = dict(before.accepted), set(act.changed)
        sent_names = {name for name in kind.properties if changed & {*kind.fields_of(name, before.properties)}}
    accepted = {name: value for name, value in known.items() if name not in sent_names}
    if shows_what_is_kept(after, kind.statuses):
        for name in kind.drift(after):
            values = fingerprint(*kind.sent_and_seen(after, name))
            is_new = values != fingerprint(*kind.sent_and_seen(before, name)) or known.get(name) == values
            if isinstance(act, Create) or (name in sent_names and is_new):
                accepted[name] = values
    if accepted == known:
        return False
    row.marks = replace(row.marks or NO_MARKS, accepted=accepted) or None
    return True


def shows_what_is_kept(thing: Thing, statuses: Statuses) -> bool:
    """Return whether an answer shows the final values of a request; a busy thing may get some of them later."""
    return settling(thing, statuses) is None or str(thing.seen.properties.get("status")).lower() in statuses.stored


def sent(world: World, row: Resource, verdict: Verdict) -> None:
    """Note the values that a repair sends, and the observed values before."""
    thing = thing_of(world, row)
    values = {name: fingerprint(*_values(row, thing, name)) for name in verdict.drifted}
    # Stored with the intent of the repair: if the values are still the same at the next look, the repair had no
    # effect.
    known = row.marks.repaired if row.marks is not None else {}
    row.marks = replace(row.marks or NO_MARKS, repaired={**known, **values})


def forget(world: World, row: Resource, verdict: Verdict) -> bool:
    """Remove the notes of successful repairs, by the newest observation; return whether any were removed.

    Notes of unseen values stay: after the update of a handler they may be kept or not.
    """
    if row.marks is None or not row.marks.repaired or verdict.condition not in (Condition.READY, Condition.DRIFTED):
        return False
    thing = thing_of(world, row)
    remaining = {
        name: seen
        for name, seen in row.marks.repaired.items()
        if name in verdict.drifted or _is_unseen(*_values(row, thing, name))
    }
    if remaining == row.marks.repaired:
        return False
    row.marks = replace(row.marks, repaired=remaining) or None
    return True


def of(world: World, row: Resource, verdict: Verdict) -> tuple[str, ...]:
    """Return the names of the properties whose repair had no effect."""
    repaired = row.marks.repaired if row.marks is not None else {}
    if verdict.condition is not Condition.DRIFTED or not repaired:
        return ()
    thing = thing_of(world, row)
    return tuple(name for name in verdict.drifted if repaired.get(name) == fingerprint(*_values(row, thing, name)))


def reason(world: World, row: Resource, names: tuple[str, ...]) -> str:
    """Return the reason for users: the properties, with both values unless the stack may contain secrets."""
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
