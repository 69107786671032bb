"""Handing over what one thing at a time can hold, to the thing that takes its place, and back (ADR 0094). Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.kinds.exclusive import EXCLUSIVE, LETS_GO_IN, Shared, Way, can_let_go, held_by, shared, without
from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.marks import LetGoMark
from homeostat.model.plan import Handover, Step, Verb
from homeostat.model.status import Action, DeletionPolicy
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.context import Context
from homeostat.planner.graph import leftover_node
from homeostat.planner.handover_outcome import let_go_of, put
from homeostat.planner.lifecycle import intents
from homeostat.planner.lifecycle.deletion_policy import policy_of
from homeostat.planner.lifecycle.names import physical_name
from homeostat.planner.lifecycle.recovery_state import keeps_identity
from homeostat.planner.policies import unhealthy
from homeostat.planner.retry import conditions
from homeostat.resources.registry import kind_of

OTHER = "other"
"""Key of a row that is not made yet, for the name that its thing gets where its template gives it none."""


def decide(context: Context, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
    """Decide what is handed over before anything else is done about a resource; None for nothing."""
    if row is None:
        return room_for(context, definition, None, now)
    if row.action == Action.INIT:
        return before_creation(context, row, now) or room_for(context, definition, row, now)
    if row.busy and row.action == Action.CREATE:
        refused = row.acted_at is None and row.retries > 0 and not row.handle
        room = room_for(context, definition, row, now) if refused else None
        # What an answer that was lost has made is looked for, whatever has yet to go.
        return None if isinstance(room, Waiting) and room.after else room
    return take_back(context, row, now)


def needs(context: Context, definition: Definition, row: Resource) -> Shared:
    """Return what a thing and the one in its place cannot both have."""
    kind = kind_of(row.type)
    if kind not in EXCLUSIVE or kind_of(definition.type) != kind or not row.handle:
        return Shared()
    if conditions.is_gone(context.world, row) or row.external_id is not None:
        return Shared()
    try:
        want = context.resolve(definition)
    except (Rejected, Terminal):  # its creation fails of that, and nothing has to make room
        return Shared()
    name = physical_name(context.world.stack.name, row.name, OTHER, want.kind.name_limit)
    new = want.kind.spec(want.kind.complete(want.values), name)
    found = shared(kind, intents.requested_spec(context, row), new)
    passed_on = keeps_identity(context, row) if definition.type == row.type else {}
    if passed_on:  # the cloud gave it that, and its object says nothing of it
        return replace(found, held=(*found.held, *(f"its {name}" for name in passed_on)), way=Way.GOES)
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
        return _ask(context, old, mark, row.name, row, now)
    why = refusal(context, old, Shared(mark.held))
    if why:
        return context.acts.fail(row, f"{why}: {mark.refused}", now, Action.CREATE)
    events = outcome.begin(old, Action.DELETE, f"{reason(Shared(mark.held))}: {mark.refused}")
    old.acted_at = old.due_at = old.intent = None
    old.revision, old.updated_at = context.world.stack.revision, now
    return Step(Verb.RECORD, row, events=events, also=[old], handover=Handover.LET_GO, needed_by=row.name)


def room_for(context: Context, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
    """Have leftovers let go of what a thing needs that is to be made, or wait for their deletion; None if it has room.

    Args:
        context: The shard.
        definition: What is to be made.
        row: Its row; None where there is none yet.
        now: The time.
    """
    kind = kind_of(definition.type)
    if kind not in EXCLUSIVE or not _holders(context):
        return None
    for what in _wanted(context, definition, kind):
        for key in _holders(context).get(f"{kind} {what}", ()):
            old = context.world.rows.get(key)
            if old is None or old is row or context.current.get(old.name) is old or not old.handle:
                continue
            hindered = _leaves(context, definition, row, old, what, now)
            if hindered is not None:
                return hindered
    return None


def _leaves(
    context: Context, definition: Definition, row: Resource | None, old: Resource, what: str, now: float
) -> Step | Waiting | None:
    """Have a leftover let go of something, or wait for its deletion; None where it does not hold it, or stays."""
    mark = let_go_of(old)
    if (mark is not None and mark.done and what in mark.held) or conditions.is_gone(context.world, old):
        return None
    if policy_of(context, old) == DeletionPolicy.RETAIN:
        return None
    kind = kind_of(old.type)
    able = what in can_let_go(kind, intents.requested_spec(context, old)) and not old.deleting
    if able and (mark is None or not mark.refused) and _may_let_go(context, old):
        if mark is None or what not in mark.held:
            mark = LetGoMark((*(mark.held if mark is not None else ()), what))
            put(old, mark)
        return _ask(context, old, mark, definition.name, row, now)
    key, since = (row.key, row.updated_at) if row is not None else ("", None)
    said = f"{old.name} goes first, which has {what}"
    after = (leftover_node(old.key),)
    return Waiting(definition.name, Why.HANDOVER, (old.key,), said, since, key=key, after=after)


def _wanted(context: Context, definition: Definition, kind: str) -> tuple[str, ...]:
    """Return what a thing will hold that is to be made."""
    try:
        want = context.resolve(definition)
    except (Rejected, Terminal):
        return ()
    name = physical_name(context.world.stack.name, definition.name, OTHER, want.kind.name_limit)
    return tuple(held_by(kind, want.kind.spec(want.kind.complete(want.values), name)))


def _holders(context: Context) -> dict[str, list[str]]:
    """Return what leftovers hold, see `Context.holders`."""
    if context.holders is None:
        context.holders = {}
        for row in context.world.rows.values():
            if context.current.get(row.name) is not row:
                left(context, row)
    return context.holders


def left(context: Context, row: Resource) -> None:
    """Note what a thing holds that is to go, unless that is asked for later."""
    kind = kind_of(row.type)
    if context.holders is None or kind not in EXCLUSIVE or not row.handle:
        return
    for what in held_by(kind, intents.requested_spec(context, row)):
        context.holders.setdefault(f"{kind} {what}", []).append(row.key)


def take_back(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Have a thing take back what it let go of, since it is to stay after all; None where it has all."""
    mark = let_go_of(row)
    if mark is None or unhealthy.mark_of(row) is not None:
        return None
    if conditions.is_gone(context.world, row):
        put(row, None)
        return None
    for other in context.world.rows.values():
        if other.type == row.type and context.current.get(other.name) is not other and (other.handle or other.token):
            hindered = _hindered(context, other, mark, row, now)
            if hindered is not None:
                return hindered
    spec = intents.requested_spec(context, row)
    _, changed = without(kind_of(row.type), spec, mark.held)
    if mark.due_at is not None and mark.due_at > now and mark.failure:
        said = f"it gets {', '.join(mark.held)} back: {mark.failure}"
        return Waiting(row.name, Why.HANDOVER, (), said, row.updated_at, mark.due_at, row.key)
    return Step(Verb.UPDATE, row, spec=spec, changed=changed, handover=Handover.TAKE_BACK, needed_by=row.name)


def _hindered(context: Context, other: Resource, mark: LetGoMark, row: Resource, now: float) -> Step | Waiting | None:
    """Return what comes before a thing can have back what the other one of its name may hold; None for nothing."""
    theirs = let_go_of(other)
    if theirs is not None and theirs.done:
        return None
    held_things = held_by(kind_of(other.type), intents.requested_spec(context, other))
    held = tuple(what for what, way in held_things.items() if what in mark.held and way is Way.LETS_GO)
    if not held:
        return None
    used = any(other.key in each.requires for each in context.world.rows.values() if not each.deleting)
    able = used and other.handle and not other.deleting and _may_let_go(context, other)
    # What nothing uses is deleted at once; what is used can go only when its users have the old one again.
    if able and (theirs is None or not theirs.refused):
        if theirs is None:
            theirs = LetGoMark(held)
            put(other, theirs)
        return _ask(context, other, theirs, row.name, row, now)
    said = f"it gets {', '.join(mark.held)} back when what was to replace it is gone"
    after = (leftover_node(other.key),)
    return Waiting(row.name, Why.HANDOVER, (other.key,), said, row.updated_at, key=row.key, after=after)


def _ask(
    context: Context, old: Resource, mark: LetGoMark, name: str, row: Resource | None, now: float
) -> Step | Waiting:
    """Ask a thing to let go, again where that is not confirmed yet.

    Args:
        context: The shard.
        old: The row of the thing.
        mark: What it lets go of.
        name: Name of the resource that waits for that.
        row: The row of the resource that waits; None where it has none yet.
        now: The time.
    """
    if mark.due_at is not None and mark.due_at > now:
        said = f"the one before lets go of {', '.join(mark.held)}: {mark.failure}"
        key, since = (row.key, row.updated_at) if row is not None else ("", None)
        return Waiting(name, Why.HANDOVER, (old.key,), said, since, mark.due_at, key)
    spec, changed = without(kind_of(old.type), intents.requested_spec(context, old), mark.held)
    return Step(Verb.UPDATE, old, spec=spec, changed=changed, handover=Handover.LET_GO, needed_by=name)


def _may_let_go(context: Context, row: Resource) -> bool:
    """Return whether a thing is in a state in which it can let go of something."""
    seen, states = context.world.seen.get(row.key), LETS_GO_IN.get(kind_of(row.type))
    properties: Mapping[str, Any] = seen.observation.properties if seen is not None else {}
    return states is None or properties.get("status") in (None, *states)
