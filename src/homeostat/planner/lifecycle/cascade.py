"""Things that are deleted together with their parts, in one request (ADR 0070). Pure.

A load balancer is a whole; its listeners, pools, members, health monitors and policies are its parts. A row is a part
of a whole if it requires the whole, directly or through further parts, in the same shard.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from homeostat.kinds.registry import KINDS, PART_KINDS
from homeostat.model.intent import PARTS_FIRST, operation_of
from homeostat.model.observed import Condition
from homeostat.model.stack_actions import LOCKED
from homeostat.model.status import Action, DeletionPolicy
from homeostat.model.world import Resource, World
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import hooks
from homeostat.planner.lifecycle.deletion_policy import is_kept, policy_of
from homeostat.planner.policies.healing import is_lost
from homeostat.planner.scope import thing_of
from homeostat.planner.states import maintenance_state
from homeostat.resources.nested import STACK
from homeostat.resources.registry import is_known, kind_of, type_of
from homeostat.templates.registry import PRE_DELETE

Parts = Mapping[str, Sequence[str]]
"""Kind -> handles of the parts that may be deleted together with their whole."""


class Deletion(Enum):
    """Whether a leftover that is a whole or a part can be deleted.

    Attributes:
        DUE: At once: nothing has to be done or decided before.
        UNCLEAR: An observation comes first: whether its creation made a thing, or a lost thing has come back.
        BLOCKED: It is kept, or a hook stops its deletion, or it has to be unlocked first.
    """

    DUE = "due"
    UNCLEAR = "unclear"
    BLOCKED = "blocked"


def part_kinds(row: Resource) -> tuple[str, ...]:
    """Return the kinds of parts that a row's thing can have; empty if it is no whole."""
    kind = KINDS.get(kind_of(row.type))
    return kind.parts if kind is not None else ()


def is_part(row: Resource) -> bool:
    """Return whether a row's thing is of a kind of parts."""
    return kind_of(row.type) in PART_KINDS


def whole_of(world: World, row: Resource) -> Resource | None:
    """Return the row of the whole that a part was built on; None if the shard has no such row."""
    kind, seen, pending = kind_of(row.type), {row.key}, [row]
    while pending:
        for key in pending.pop().requires:
            used = world.rows.get(key)
            if used is None or key in seen:
                continue
            seen.add(key)
            if kind in part_kinds(used):
                return used
            if is_part(used):
                pending.append(used)
    return None


def has_lost_its_whole(world: World, row: Resource) -> bool:
    """Return whether a requirement of a part, direct or through other parts, is deleted already."""
    if not is_part(row):
        return False
    seen, pending = {row.key}, [row]
    while pending:
        for key in pending.pop().requires:
            used = world.rows.get(key)
            # The rows of users are removed before the rows they use, except in a cascade: a missing row
            # means that the whole is deleted.
            if used is None:
                return True
            if key not in seen and is_part(used):
                seen.add(key)
                pending.append(used)
    return False


def parts_of(world: World, users: Mapping[str, Iterable[str]], whole: Resource) -> list[Resource]:
    """Return the rows of the parts of a whole; `users` maps a key to the keys of the rows built on this row."""
    kinds, parts, pending = part_kinds(whole), dict[str, Resource](), [whole.key]
    while pending:
        for key in users.get(pending.pop(), ()):
            row = world.rows.get(key)
            if row is not None and key not in parts and kind_of(row.type) in kinds:
                parts[key] = row
                pending.append(key)
    return list(parts.values())


def deletion_of(context: Context, row: Resource) -> Deletion:
    """Return whether a leftover that is a whole or a part can be deleted."""
    if is_kept(context, row) or policy_of(context, row) != DeletionPolicy.DELETE:
        return Deletion.BLOCKED
    # One request would delete the part before its hook or its unlocking.
    if maintenance_state.has_mark(row, LOCKED) or hooks.stops_deletion(row, PRE_DELETE):
        return Deletion.BLOCKED
    # The request lists the handles of the parts: a part without a handle would be taken for a part of another owner,
    # and the adapter would refuse the whole request.
    unanswered = row.busy and row.action in (Action.CREATE, Action.ADOPT) and row.acted_at is None
    return Deletion.UNCLEAR if unanswered or is_lost(row) or not row.handle else Deletion.DUE


def is_stuck(context: Context, whole: Resource, now: float) -> bool:
    """Return whether a whole is broken: a load balancer in ERROR refuses changes and deletions of its parts."""
    if not whole.handle or whole.key not in context.world.seen or not is_known(whole.type):
        return False
    verdict = type_of(whole.type).judge(thing_of(context.world, whole), now)
    return verdict.condition is Condition.BROKEN


def is_stack(row: Resource) -> bool:
    """Return whether a row's thing is a nested stack."""
    return kind_of(row.type) == STACK


def is_deleted_stack(row: Resource) -> bool:
    """Return whether a row's thing is a nested stack whose deletion has begun."""
    return row.deleting and row.busy and row.acted_at is not None and is_stack(row)


def is_refused(world: World, whole: Resource) -> bool:
    """Return whether the cloud has refused, for this revision, to delete a whole together with its parts."""
    # A newer revision, such as another request to delete the stack, tries the single request again.
    return operation_of(whole.intent) == PARTS_FIRST and whole.revision == world.stack.revision


def handles_by_kind(parts: Iterable[Resource]) -> dict[str, list[str]]:
    """Return the handles of parts by kind."""
    handles: dict[str, list[str]] = {}
    for part in parts:
        if part.handle:
            handles.setdefault(kind_of(part.type), []).append(part.handle)
    return handles
