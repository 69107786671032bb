"""Handover of exclusive claims, such as a port or an address, to a replacement, and back (ADR 0094). Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.kinds.exclusive import EXCLUSIVE, LETS_GO_IN, Shared, Way, can_let_go, held_by, shared, without
from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.marks import LetGoMark
from homeostat.model.plan import Handover, Step, Update
from homeostat.model.status import Action, DeletionPolicy
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome, specs
from homeostat.planner.context import Context
from homeostat.planner.graph import leftover_node
from homeostat.planner.handover_outcome import let_go_of, put
from homeostat.planner.lifecycle import intents
from homeostat.planner.lifecycle.deletion_policy import policy_of
from homeostat.planner.lifecycle.recovery_state import keeps_identity
from homeostat.planner.names import physical_name
from homeostat.planner.policies import unhealthy
from homeostat.planner.states import absence
from homeostat.resources.registry import kind_of

OTHER = "other"
"""Stand-in for the key of a future row, from which the default name of its thing is made."""


def decide(context: Context, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
    """Decide about handovers before any other act on a resource; None if there are none."""
    if row is None:
        return room_for(context, definition, None, now)
    if row.action == Action.INIT:
        return before_creation(context, row, now) or room_for(context, definition, row, now)
    if row.busy and row.action == Action.CREATE:
        refused = row.acted_at is None and row.retries > 0 and not row.handle
        room = room_for(context, definition, row, now) if refused else None
        # The thing of a lost answer is looked for first, even if leftovers still have to be deleted.
        return None if isinstance(room, Waiting) and room.after else room
    return take_back(context, row, now)


def needs(context: Context, definition: Definition, row: Resource) -> Shared:
    """Return the exclusive claims that a thing and its replacement would both need."""
    kind = kind_of(row.type)
    if kind not in EXCLUSIVE or kind_of(definition.type) != kind or not row.handle:
        return Shared()
    if absence.is_gone(context.world, row) or row.external_id is not None:
        return Shared()
    try:
        want = context.resolve(definition)
    except (Rejected, Terminal):  # the creation will fail with this error, and needs no room
        return Shared()
    name = physical_name(context.world.stack.name, row.name, OTHER, want.kind.name_limit)
    new = want.kind.spec(want.kind.complete(want.values), name)
    claims = shared(kind, specs.requested_spec(context, row), new)
    passed_on = keeps_identity(context, row) if definition.type == row.type else {}
    if passed_on:  # assigned by the cloud, and so not in the requested object
        return replace(claims, held=(*claims.held, *(f"its {name}" for name in passed_on)), way=Way.GOES)
    return claims if claims.way is not Way.LETS_GO or _may_let_go(context, row) else replace(claims, way=Way.GOES)


def refusal(context: Context, row: Resource, shared: Shared) -> str:
    """Return why a thing that has to make room may not be deleted; "" if it may."""
    what = ", ".join(shared.destroyed or shared.held)
    if shared.destroyed:
        return f"its deletion would delete {what}, which the one in its place needs"
    if policy_of(context, row) == DeletionPolicy.RETAIN:
        return f"its deletion policy keeps it, and with it {what}, which the one in its place needs"
    return ""


def reason(shared: Shared) -> str:
    """Return the reason for deleting a thing before the creation of its replacement."""
    return f"the one in its place needs {', '.join(shared.held)}, which one at a time can hold"


def let_go(context: Context, definition: Definition, row: Resource, held: tuple[str, ...], now: float) -> Step:
    """Replace a thing; the new one is created after the old one has released these claims."""
    before = let_go_of(row)
    new = intents.new_row(context, definition, now, replaces=row)
    # Stored with the new row before the first request, so that the next owner of the shard continues the
    # handover.
    put(row, LetGoMark(tuple(dict.fromkeys((*(before.held if before is not None else ()), *held)))))
    return Step(new, inserted=True, also=[row])


def before_creation(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Make the predecessor of a row release the shared claims, or delete it if it refuses; None if done."""
    old = context.world.rows.get(row.replaces or "")
    mark = let_go_of(old)
    if old is None or mark is None or mark.done or old.deleting:
        return None
    if absence.is_gone(context.world, old):
        return None
    if not mark.refused:
        return _ask(context, old, mark, row.name, row, now)
    why = refusal(context, old, Shared(mark.held))
    if why:
        return context.acts.fail(row, f"{why}: {mark.refused}", now, Action.CREATE)
    events = outcome.begin(old, Action.DELETE, f"{reason(Shared(mark.held))}: {mark.refused}")
    # The deletion is recorded here and executed by the next decision about the leftover.
    old.acted_at = old.due_at = old.intent = None
    old.revision, old.updated_at = context.world.stack.revision, now
    return Step(row, events=events, also=[old], handover=Handover(row.name))


def room_for(context: Context, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
    """Make leftovers release the claims of a future thing, or wait for their deletion; None if there is room."""
    kind = kind_of(definition.type)
    if kind not in EXCLUSIVE or not _holders(context):
        return None
    for what in _future_claims(context, definition, kind):
        for key in _holders(context).get(f"{kind} {what}", ()):
            old = context.world.rows.get(key)
            if old is None or old is row or context.current.get(old.name) is old or not old.handle:
                continue
            blocked = _release_or_wait(context, definition, row, old, what, now)
            if blocked is not None:
                return blocked
    return None


def _release_or_wait(
    context: Context, definition: Definition, row: Resource | None, old: Resource, what: str, now: float
) -> Step | Waiting | None:
    """Make a leftover release a claim, or wait for its deletion; None if it does not hold the claim, or is kept."""
    mark = let_go_of(old)
    if (mark is not None and mark.done and what in mark.held) or absence.is_gone(context.world, old):
        return None
    # A kept thing is never deleted for a claim: the creation is tried, and fails with the error of the cloud.
    if policy_of(context, old) == DeletionPolicy.RETAIN:
        return None
    kind = kind_of(old.type)
    able = what in can_let_go(kind, specs.requested_spec(context, old)) and not old.deleting
    if able and (mark is None or not mark.refused) and _may_let_go(context, old):
        if mark is None or what not in mark.held:
            mark = LetGoMark((*(mark.held if mark is not None else ()), what))
            put(old, mark)
        return _ask(context, old, mark, definition.name, row, now)
    key, since = (row.key, row.updated_at) if row is not None else ("", None)
    text = f"{old.name} goes first, which has {what}"
    after = (leftover_node(old.key),)
    return Waiting(definition.name, Why.HANDOVER, (old.key,), text, since, key=key, after=after)


def _future_claims(context: Context, definition: Definition, kind: str) -> tuple[str, ...]:
    """Return the exclusive claims of a future thing."""
    try:
        want = context.resolve(definition)
    except (Rejected, Terminal):
        return ()
    name = physical_name(context.world.stack.name, definition.name, OTHER, want.kind.name_limit)
    return tuple(held_by(kind, want.kind.spec(want.kind.complete(want.values), name)))


def _holders(context: Context) -> dict[str, list[str]]:
    """Return the holders of exclusive claims among the leftovers, see `Context.holders`."""
    if context.holders is None:
        context.holders = {}
        for row in context.world.rows.values():
            if context.current.get(row.name) is not row:
                note_claims(context, row)
    return context.holders


def note_claims(context: Context, row: Resource) -> None:
    """Add the claims of a new leftover to `Context.holders`, if computed already."""
    kind = kind_of(row.type)
    if context.holders is None or kind not in EXCLUSIVE or not row.handle:
        return
    for what in held_by(kind, specs.requested_spec(context, row)):
        context.holders.setdefault(f"{kind} {what}", []).append(row.key)


def take_back(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Give a thing that stays after all its released claims back; None if it has them all."""
    mark = let_go_of(row)
    if mark is None or unhealthy.mark_of(row) is not None:
        return None
    if absence.is_gone(context.world, row):
        put(row, None)
        return None
    for other in context.world.rows.values():
        if other.type == row.type and context.current.get(other.name) is not other and (other.handle or other.token):
            blocked = _claim_conflict(context, other, mark, row, now)
            if blocked is not None:
                return blocked
    spec = specs.requested_spec(context, row)
    _, changed = without(kind_of(row.type), spec, mark.held)
    if mark.due_at is not None and mark.due_at > now and mark.failure:
        text = f"it gets {', '.join(mark.held)} back: {mark.failure}"
        return Waiting(row.name, Why.HANDOVER, (), text, row.updated_at, mark.due_at, row.key)
    return Step(row, Update(spec, changed), handover=Handover(row.name, returns=True))


def _claim_conflict(
    context: Context, other: Resource, mark: LetGoMark, row: Resource, now: float
) -> Step | Waiting | None:
    """Return the step or wait before a thing can take back claims that a sibling row may hold, if any."""
    other_mark = let_go_of(other)
    if other_mark is not None and other_mark.done:
        return None
    held_things = held_by(kind_of(other.type), specs.requested_spec(context, other))
    held = tuple(what for what, way in held_things.items() if what in mark.held and way is Way.LETS_GO)
    if not held:
        return None
    used = any(other.key in user.requires for user in context.world.rows.values() if not user.deleting)
    able = used and other.handle and not other.deleting and _may_let_go(context, other)
    # An unused thing is deleted at once. A used thing is deleted only after its users have moved back, so it has to
    # release the claims first.
    if able and (other_mark is None or not other_mark.refused):
        # An interrupted handover keeps its mark, with the number of its tries.
        if other_mark is None:
            other_mark = LetGoMark(held)
            put(other, other_mark)
        return _ask(context, other, other_mark, row.name, row, now)
    text = f"it gets {', '.join(mark.held)} back when what was to replace it is gone"
    after = (leftover_node(other.key),)
    return Waiting(row.name, Why.HANDOVER, (other.key,), text, row.updated_at, key=row.key, after=after)


def _ask(
    context: Context, old: Resource, mark: LetGoMark, name: str, row: Resource | None, now: float
) -> Step | Waiting:
    """Request the release of claims, again if it is not confirmed yet.

    Args:
        old: Row of the thing that holds the claims.
        mark: The claims.
        name: Name of the waiting resource.
        row: Row of the waiting resource, if any.
    """
    if mark.due_at is not None and mark.due_at > now:
        text = f"the one before lets go of {', '.join(mark.held)}: {mark.failure}"
        key, since = (row.key, row.updated_at) if row is not None else ("", None)
        return Waiting(name, Why.HANDOVER, (old.key,), text, since, mark.due_at, key)
    spec, changed = without(kind_of(old.type), specs.requested_spec(context, old), mark.held)
    return Step(old, Update(spec, changed), handover=Handover(name))


def _may_let_go(context: Context, row: Resource) -> bool:
    """Return whether the status of a thing allows the release of claims."""
    seen, states = context.world.seen.get(row.key), LETS_GO_IN.get(kind_of(row.type))
    properties: Mapping[str, Any] = seen.observation.properties if seen is not None else {}
    return states is None or properties.get("status") in (None, *states)
