"""Handing over what one thing at a time can hold, to the thing that takes its place, and back (ADR 0094). Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.kinds.exclusive import EXCLUSIVE, LETS_GO_IN, Shared, Way, can_let_go, shared, without
from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.marks import LetGoMark
from homeostat.model.plan import Handover, Step, Verb
from homeostat.model.status import Action, DeletionPolicy
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.context import Context
from homeostat.planner.handover_outcome import let_go_of, put
from homeostat.planner.lifecycle import intents
from homeostat.planner.lifecycle.deletion_policy import policy_of
from homeostat.planner.lifecycle.names import physical_name
from homeostat.planner.policies import unhealthy
from homeostat.planner.retry import conditions
from homeostat.resources.registry import kind_of

OTHER = "other"
"""Key of a row that is not made yet, for the name that its thing gets where its template gives it none."""


def needs(context: Context, definition: Definition, row: Resource) -> Shared:
    """Return what a thing and the one in its place cannot both have."""
    kind = kind_of(row.type)
    if kind not in EXCLUSIVE or kind_of(definition.type) != kind or not row.handle:
        return Shared()
    if conditions.is_gone(context.world, row):
        return Shared()
    try:
        want = context.resolve(definition)
    except (Rejected, Terminal):  # its creation fails of that, and nothing has to make room
        return Shared()
    name = physical_name(context.world.stack.name, row.name, OTHER, want.kind.name_limit)
    new = want.kind.spec(want.kind.complete(want.values), name)
    found = shared(kind, intents.requested_spec(context, row), new)
    return found if found.way is not Way.LETS_GO or _may_let_go(context, row) else replace(found, way=Way.GOES)


def refusal(context: Context, row: Resource, shared: Shared) -> str:
    """Return why a thing that has to make room may not go; "" where it may."""
    what = ", ".join(shared.destroyed or shared.held)
    if shared.destroyed:
        return f"its deletion would delete {what}, which the one in its place needs"
    if policy_of(context, row) == DeletionPolicy.RETAIN:
        return f"its deletion policy keeps it, and with it {what}, which the one in its place needs"
    return ""


def reason(shared: Shared) -> str:
    """Return why a thing is deleted before the one in its place is made."""
    return f"the one in its place needs {', '.join(shared.held)}, which one at a time can hold"


def let_go(context: Context, definition: Definition, row: Resource, held: tuple[str, ...], now: float) -> Step:
    """Replace a thing by one that is made once the old one has let go of this."""
    before = let_go_of(row)
    new = intents.new_row(context, definition, now, replaces=row)
    put(row, LetGoMark(tuple(dict.fromkeys((*(before.held if before is not None else ()), *held)))))
    return Step(Verb.RECORD, new, inserted=True, also=[row])


def before_creation(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Have what a row replaces let go of what both need; None once it has.

    What cannot let go is deleted.
    """
    old = context.world.rows.get(row.replaces or "")
    mark = let_go_of(old)
    if old is None or mark is None or mark.done or old.deleting:
        return None
    if conditions.is_gone(context.world, old):
        return None
    if not mark.refused:
        return _ask(context, old, mark, row, now)
    why = refusal(context, old, Shared(mark.held))
    if why:
        return context.acts.fail(row, f"{why}: {mark.refused}", now, Action.CREATE)
    events = outcome.begin(old, Action.DELETE, f"{reason(Shared(mark.held))}: {mark.refused}")
    old.acted_at = old.due_at = old.intent = None
    old.revision, old.updated_at = context.world.stack.revision, now
    return Step(Verb.RECORD, row, events=events, also=[old], handover=Handover.LET_GO)


def after_refusal(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Have what a row replaces let go of what others cannot get, where the cloud refuses the row its own thing.

    Each of two things that swap what they hold waits for what the other one replaces.
    """
    if not _is_refused(row) or row.action != Action.CREATE:
        return None
    old = context.world.rows.get(row.replaces or "")
    if old is None or not old.handle or old.deleting or kind_of(old.type) not in EXCLUSIVE:
        return None
    if let_go_of(old) is None and _may_let_go(context, old):
        mine = set(can_let_go(kind_of(old.type), intents.requested_spec(context, old)))
        others = (each for each in context.world.rows.values() if _is_refused(each) and each.name != row.name)
        alike = (each for each in others if kind_of(each.type) == kind_of(old.type))
        wanted = {
            what for each in alike for what in can_let_go(kind_of(each.type), intents.requested_spec(context, each))
        }
        if mine & wanted:
            put(old, LetGoMark(tuple(sorted(mine & wanted))))
    mark = let_go_of(old)
    return None if mark is None or mark.done or mark.refused else _ask(context, old, mark, row, now)


def take_back(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Have a thing take back what it let go of, since it is to stay after all; None where it has all."""
    mark = let_go_of(row)
    if mark is None or unhealthy.mark_of(row) is not None:
        return None
    if conditions.is_gone(context.world, row):
        put(row, None)
        return None
    for other in context.world.rows.values():
        if other.name == row.name and other is not row and (other.handle or other.token):
            hindered = _hindered(context, other, mark, row, now)
            if hindered is not None:
                return hindered
    spec = intents.requested_spec(context, row)
    _, changed = without(kind_of(row.type), spec, mark.held)
    if mark.due_at is not None and mark.due_at > now and mark.said:
        said = f"it gets {', '.join(mark.held)} back: {mark.said}"
        return Waiting(row.name, Why.HANDOVER, (), said, row.updated_at, mark.due_at, row.key)
    return Step(Verb.UPDATE, row, spec=spec, changed=changed, handover=Handover.TAKE_BACK)


def _hindered(context: Context, other: Resource, mark: LetGoMark, row: Resource, now: float) -> Step | Waiting | None:
    """Return what comes before a thing can have back what the other one of its name may hold; None for nothing."""
    theirs = let_go_of(other)
    if theirs is not None and theirs.done:
        return None
    held = tuple(
        what for what in can_let_go(kind_of(other.type), intents.requested_spec(context, other)) if what in mark.held
    )
    used = any(other.key in each.requires for each in context.world.rows.values() if not each.deleting)
    able = held and used and other.handle and not other.deleting and _may_let_go(context, other)
    # What nothing uses is deleted at once; what is used can go only when its users have the old one again.
    if able and (theirs is None or not theirs.refused):
        if theirs is None:
            theirs = LetGoMark(held)
            put(other, theirs)
        return _ask(context, other, theirs, row, now)
    said = f"it gets {', '.join(mark.held)} back when what was to replace it is gone"
    return Waiting(row.name, Why.HANDOVER, (other.key,), said, row.updated_at, key=row.key)


def _ask(context: Context, old: Resource, mark: LetGoMark, row: Resource, now: float) -> Step | Waiting:
    """Ask a thing to let go, again where that is not confirmed yet; `row` waits for it."""
    if mark.due_at is not None and mark.due_at > now:
        said = f"the one before lets go of {', '.join(mark.held)}: {mark.said}"
        return Waiting(row.name, Why.HANDOVER, (old.key,), said, row.updated_at, mark.due_at, row.key)
    spec, changed = without(kind_of(old.type), intents.requested_spec(context, old), mark.held)
    return Step(Verb.UPDATE, old, spec=spec, changed=changed, handover=Handover.LET_GO)


def _may_let_go(context: Context, row: Resource) -> bool:
    """Return whether a thing is in a state in which it can let go of something."""
    seen, states = context.world.seen.get(row.key), LETS_GO_IN.get(kind_of(row.type))
    properties: Mapping[str, Any] = seen.observation.properties if seen is not None else {}
    return states is None or properties.get("status") in (None, *states)


def _is_refused(row: Resource) -> bool:
    """Return whether the cloud has refused the last request for a row, for now."""
    return row.busy and row.acted_at is None and row.retries > 0
