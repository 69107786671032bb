"""Nested stacks as the reality of resources: a group's resource is there when its child stack is (design section 5).

The child lives in the same database, so making it and knowing of it are one transaction: nothing can be made twice.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from sqlalchemy import Connection, Row, select

from homeostat.clouds.port import Answer
from homeostat.convergence.clock import Clock, Entropy
from homeostat.convergence.definitions import group_desired, touched_shards
from homeostat.model.errors import Terminal
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Step, Verb
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, Seen, World
from homeostat.planner.naming import physical_name
from homeostat.planner.scope import thing_of
from homeostat.resources import groups
from homeostat.resources.registry import resource_type
from homeostat.store import schema, shards, stacks, worlds
from homeostat.store.database import Database

DEPTH_MAX = 5
STACK = "stack"
"""Kind of resources whose reality is a child stack."""


class Guard(Protocol):
    """Ownership of the shard that acts (law 4)."""

    def check(self) -> None:
        """Fails: Superseded when this worker must not act any more, as far as it can tell by its own clock."""

    def fence(self, tx: Connection) -> None:
        """Fails: Superseded when somebody else owns the shard; for acts that are transactions themselves."""


class Children:
    """Performs steps on child stacks. timeout_s — for children, which stay within their parent's time anyway."""

    def __init__(self, db: Database, clock: Clock, entropy: Entropy, timeout_s: float) -> None:
        self._db = db
        self._clock = clock
        self._entropy = entropy
        self._timeout_s = timeout_s

    def perform(self, world: World, step: Step, guard: Guard) -> Answer:
        """Carry out one step, if its owner still owns the parent's shard. Fails: Superseded if not; nothing is done.

        The parent's shard is checked last: whoever takes a child and its parent takes the child first.
        """
        with self._db.write() as tx:
            answer = self._perform(tx, world, step)
            guard.fence(tx)
            return answer

    def _perform(self, tx: Connection, world: World, step: Step) -> Answer:
        now = self._clock.now()
        child = self._child(tx, step)
        if step.verb is Verb.CREATE and child is None:
            return self._create(tx, world, step, now)
        if child is None:
            return Observation(Presence.ABSENT, step.row.handle, seen_at=now)
        if step.verb in (Verb.CREATE, Verb.FIND):
            return _observe(tx, child.id, now)
        desired = self._desired(world, step) if step.verb is Verb.UPDATE else replace(stacks.EMPTY, shards=child.shards)
        action = Action.UPDATE if step.verb is Verb.UPDATE else Action.DELETE
        before = stacks.desired_of(tx, child.id, child.revision)
        touched = touched_shards(before, desired)
        stacks.revise(self._db, tx, child, action, desired, now, self._timeout_s, touched=touched)
        return Observation(Presence.PRESENT, child.id, {"status": "in_progress"}, now)

    def _child(self, tx: Connection, step: Step) -> Row[Any] | None:
        table = schema.stack
        mine = select(table.c.id).where(table.c.parent_key == step.row.key, table.c.deleted_at.is_(None))
        child_id = tx.execute(mine).scalar_one_or_none()
        return None if child_id is None else stacks.lock(self._db, tx, child_id)

    def _create(self, tx: Connection, world: World, step: Step, now: float) -> Answer:
        stack, row = world.stack, step.row
        if stack.depth >= DEPTH_MAX:
            return Terminal(f"Recursion depth exceeds {DEPTH_MAX}.")
        new = stacks.NewStack(
            id=self._entropy.stack_id(),
            project=stack.project,
            name=physical_name(stack.name, row.name, row.key),
            parent_id=stack.id,
            parent_name=row.name,
            parent_key=row.key,
            parent_shard=world.shard,
            root_id=stack.root_id or stack.id,
            depth=stack.depth + 1,
            converge=stack.converge,
        )
        stacks.add(self._db, tx, new, self._desired(world, step), now, self._timeout_s)
        return Observation(Presence.PRESENT, new.id, {"status": "in_progress"}, now)

    def _desired(self, world: World, step: Step) -> stacks.Desired:
        """Revision of a group's stack. Members once removed by name stay out while they are in the skip list."""
        seen = world.seen.get(step.row.key)
        before = seen.observation.properties if seen is not None else {}
        values = resource_type(step.row.type).complete(step.row.properties)
        references = {name: member["reference"] for name, member in before.get("members", {}).items()}
        skip = groups.skip_list(
            before.get("skip", []), values["removal_policies"], values["removal_policies_mode"], references
        )
        return group_desired({**values, "skip": skip})

    def look(self, tx: Connection, world: World, now: float) -> list[tuple[Resource, Seen]]:
        """Bring the observations of child stacks up to date, and give those that changed, to be stored.

        Reading the child itself, not a message from it, makes a lost wake-up cost time only (law 1).
        """
        changed = []
        for row in [row for row in world.rows.values() if resource_type(row.type).kind == STACK and row.handle]:
            before = world.seen.get(row.key)
            observation = _observe(tx, row.handle, now)
            if before is not None and _same(before.observation, observation):
                continue
            seen = Seen(observation, before.number + 1 if before is not None else 1)
            world.seen[row.key] = seen
            changed.append((row, seen))
        return changed


def wake_parent(tx: Connection, child: Row[Any], now: float) -> None:
    """A child stack came to rest: whoever owns it must look."""
    if child.parent_id is not None:
        shards.wake(tx, child.parent_id, now, shards.USER, [child.parent_shard])


def _observe(tx: Connection, stack_id: str, now: float) -> Observation:
    child = stacks.get(tx, stack_id)
    if child is None or child.deleted_at is not None:
        return Observation(Presence.ABSENT, stack_id, seen_at=now, reason="its stack is gone")
    properties: dict[str, Any] = {
        "status": child.status.lower(),
        "reason": child.reason,
        "action": child.action,
    }
    if child.status == Status.COMPLETE:
        properties |= _members(tx, child)
    return Observation(Presence.PRESENT, stack_id, properties, now)


def _same(one: Observation, other: Observation) -> bool:
    return one.presence is other.presence and dict(one.properties) == dict(other.properties)


def _members(tx: Connection, child: Row[Any]) -> Mapping[str, Any]:
    """What the owner's attributes are made of: each member's reference and attributes."""
    desired = stacks.desired_of(tx, child.id, child.revision)
    members: dict[str, Any] = {}
    for number in range(child.shards):
        rows, seen = worlds.load_rows(tx, child.id, number)
        world = World(stacks.facts(child), number, {}, rows, seen)
        for row in rows.values():
            if row.status == Status.COMPLETE and not row.leaving and row.replaced_by is None:
                kind = resource_type(row.type)
                thing = thing_of(world, row, kind)
                attributes = {name: kind.attribute(thing, name) for name in kind.attributes}
                members[row.name] = {"reference": kind.reference(thing), "attributes": attributes}
    return {"members": members, "skip": desired.template.get("skip", [])}
