"""The status of nested stacks, as the resources of their parent stacks see it, and their shards."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, false, func, not_, or_, select

from homeostat.model.intent import left_alone_for
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import brakes
from homeostat.store.sql.prepared import prepared
from homeostat.store.stacks import stacks

INTENTS_MAX = 1000
"""Number of intents read to detect neglect; if there are more, all unconverged stacks count as neglected."""


@dataclass(frozen=True, slots=True)
class NestedStatus:
    """The status of a nested stack.

    Attributes:
        skip: Of a group, names that no member may have.
        changes: A number that changes whenever its shards were woken or have stored anything.
        staged: Of a group whose members get a new definition in a rollout, the revision that introduced the definition.
    """

    name: str
    project: str
    action: str
    status: str
    reason: str
    skip: Sequence[str]
    changes: int
    failures: int
    suspended: bool
    staged: int | None = None


def is_nested(tx: Transaction, stack: StackRow) -> bool:
    """Return whether a stack belongs to a resource; a stack that a deletion policy has retained no longer does."""
    return stack.parent_key is not None and brakes.owner_of(tx, stack.parent_key) is not None


def of(tx: Transaction, stack_ids: Sequence[str]) -> dict[str, NestedStatus]:
    """Return the status of each of these stacks that is live, in few queries however many stacks there are."""
    return {
        stack_id: status
        for start in range(0, len(stack_ids), stacks.STACKS_PER_QUERY)
        for stack_id, status in _statuses(tx, stack_ids[start : start + stacks.STACKS_PER_QUERY]).items()
    }


def _statuses(tx: Transaction, stack_ids: Sequence[str]) -> dict[str, NestedStatus]:
    counts = {stack_id: (int(changes), int(failures)) for stack_id, changes, failures in _counts(tx, stack_ids)}
    statuses = {}
    for stack_id, name, project, action, status, reason, suspended, template in _reported(tx, stack_ids):
        skip = (template or {}).get("skip", [])
        counted = counts.get(stack_id, (0, 0))
        staged = ((template or {}).get("staged") or {}).get("since")
        statuses[stack_id] = NestedStatus(name, project, action, status, reason, skip, *counted, suspended, staged)
    return statuses


@prepared
def _counts(stack_ids: Sequence[str]) -> Select[Any]:
    """Select the change number and the number of FAILED resources, by stack."""
    shard = schema.shard
    # A pass that stores nothing, such as a check whether an operation has ended, moves neither column. An observation
    # that differs wakes the shard, so it counts.
    changes = func.sum(shard.c.stored + shard.c.wakes)
    counts = select(shard.c.stack_id, changes, func.sum(shard.c.failures))
    return counts.where(shard.c.stack_id.in_(stack_ids)).group_by(shard.c.stack_id)


@prepared
def _reported(stack_ids: Sequence[str]) -> Select[Any]:
    """Select the status that live stacks report, with the group definition of each group."""
    stack, revision = schema.stack, schema.revision
    group = and_(revision.c.stack_id == stack.c.id, revision.c.number == stack.c.revision, revision.c.kind == "group")
    columns = (stack.c.id, stack.c.name, stack.c.project, stack.c.action, stack.c.status, stack.c.reason)
    chosen = select(*columns, stack.c.suspended, revision.c.template).outerjoin(revision, group)
    return chosen.where(stack.c.id.in_(stack_ids), stack.c.deleted_at.is_(None))


def neglected(tx: Transaction, root_id: str, parent_id: str) -> set[str]:
    """Return the ids of the nested stacks of a stack that have a known problem which is left alone.

    A problem is left alone if convergence is switched off for the stack or for the resource. An observation that was
    not judged yet counts, too. At most `INTENTS_MAX` rows are read.

    Args:
        parent_id: The parent of the returned stacks; a problem deeper down counts for its ancestor among them.
    """
    rows = _unconverged_resources(tx, root_id).all()
    everything = len(rows) > INTENTS_MAX
    neglected_ids = {str(row.stack_id) for row in rows if everything or row.unjudged or left_alone_for(row.intent)}
    if everything:
        neglected_ids.update(_unconverged(tx, root_id).scalars())
    return _children_above(tx, neglected_ids, parent_id)


def marked(tx: Transaction, root_id: str, parent_id: str) -> set[str]:
    """Return the ids of the nested stacks of a stack with a resource that is marked unhealthy or replaced for a mark.

    A mark deeper down counts for the ancestor among them.
    """
    rows = [row for row in _marked(tx, root_id) if row.marks is not None and row.marks.unhealthy is not None]
    return _children_above(tx, {str(row.stack_id) for row in rows}, parent_id)


@prepared
def _marked(root_id: str) -> Select[Any]:
    """Select the marked resources of nested stacks in shards that are not at rest: only there a replacement can wait.

    Replaced resources whose deletion has failed are left out: no one waits for them.
    """
    stack, resource, shard = schema.stack, schema.resource, schema.shard
    restless = or_(shard.c.failures > 0, shard.c.planned > shard.c.done, shard.c.wake_at.is_not(None))
    joined = resource.join(stack, stack.c.id == resource.c.stack_id).join(
        shard, and_(shard.c.stack_id == resource.c.stack_id, shard.c.number == resource.c.shard)
    )
    chosen = select(resource.c.stack_id, resource.c.marks).select_from(joined)
    below = (stack.c.root_id == root_id, stack.c.parent_id.is_not(None), stack.c.deleted_at.is_(None))
    stays = (resource.c.action == Action.DELETE) & (resource.c.status == Status.FAILED)
    waits = or_(resource.c.status == Status.FAILED, resource.c.replaced_by.is_not(None))
    return chosen.where(*below, restless, resource.c.marks.is_not(None), waits, not_(stays))


def _children_above(tx: Transaction, stack_ids: set[str], parent_id: str) -> set[str]:
    """Return the stacks nested directly in `parent_id` that are, or contain, one of these stacks."""
    return {child for stack_id in stack_ids if (child := _child_above(tx, stack_id, parent_id)) is not None}


def _child_above(tx: Transaction, stack_id: str, parent_id: str) -> str | None:
    while (row := stacks.get(tx, stack_id)) is not None and row.parent_id is not None:
        if row.parent_id == parent_id:
            return stack_id
        stack_id = row.parent_id
    return None


@prepared
def _unconverged_resources(root_id: str) -> Select[Any]:
    """Select resources at rest in unconverged stacks that have an intent or an unjudged observation."""
    stack, resource, observed = schema.stack, schema.resource, schema.resource_observed
    unjudged = func.coalesce(observed.c.number != resource.c.judged_observation, False)
    joined = resource.join(stack, stack.c.id == resource.c.stack_id).outerjoin(
        observed, observed.c.key == resource.c.key
    )
    chosen = select(resource.c.stack_id, resource.c.intent, unjudged.label("unjudged")).select_from(joined)
    noted = or_(resource.c.intent.is_not(None), unjudged)
    return chosen.where(*_is_unconverged(root_id), resource.c.status == Status.COMPLETE, noted).limit(INTENTS_MAX + 1)


@prepared
def _unconverged(root_id: str) -> Select[Any]:
    return select(schema.stack.c.id).where(*_is_unconverged(root_id))


def _is_unconverged(root_id: str) -> tuple[ColumnElement[bool], ...]:
    """Select the nested stacks of a tree that are not converged, or contain a resource that is not."""
    stack = schema.stack
    switched = or_(stack.c.converge.is_(False), stack.c.exceptions.is_not(None))
    return stack.c.root_id == root_id, stack.c.parent_id.is_not(None), stack.c.deleted_at.is_(None), switched


# -- shards, however deep ----------------------------------------------------------------------------------------------


def shards_below(tx: Transaction, tops: Collection[str]) -> dict[tuple[str, int], str]:
    """Return stack and number of each shard -> its top stack; suspended stacks and their descendants are left out."""
    top_of: dict[tuple[str, int], str] = {}
    level = _live(tx, {top: top for top in tops}, schema.stack.c.id)
    while level:
        for ids in _parts(level):
            chosen = select(schema.shard.c.stack_id, schema.shard.c.number).where(schema.shard.c.stack_id.in_(ids))
            top_of |= {(row.stack_id, row.number): level[row.stack_id] for row in tx.execute(chosen)}
        level = _live(tx, level, schema.stack.c.parent_id)
    return top_of


def _live(tx: Transaction, level: dict[str, str], column: Any) -> dict[str, str]:
    """Return the live stacks with one of these ids in `column`, each with its top stack."""
    top_of: dict[str, str] = {}
    for ids in _parts(level):
        stack = schema.stack.c
        live = (stack.deleted_at.is_(None), stack.parent_key.is_not(None), stack.suspended == false())
        chosen = select(stack.id, column.label("of")).where(column.in_(ids), *live)
        top_of |= {row.id: level[row.of] for row in tx.execute(chosen)}
    return top_of


def _parts(level: Collection[str]) -> list[list[str]]:
    ids = sorted(level)
    return [ids[start : start + stacks.STACKS_PER_QUERY] for start in range(0, len(ids), stacks.STACKS_PER_QUERY)]
