"""The laws of a simulated world: safety after every step, liveness at the end."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from homeostat.convergence.definitions import compile_graph
from homeostat.model.desired import Identity
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource
from homeostat.planner.current import current_row
from homeostat.store import schema, stacks, worlds

if TYPE_CHECKING:
    from tests.simulation.world import SimulatedWorld

RETAINED = "Retain"


def check_step(world: "SimulatedWorld") -> None:
    """Nothing is created twice for one intent (CV18)."""
    assert not world.cloud.doubled, f"created twice: {world.cloud.doubled}"


def check_rest(world: "SimulatedWorld") -> None:
    """The faults have stopped: everything has come to rest, nothing has leaked, and what differs says why."""
    check_step(world)
    for stack in world.all_stacks():
        assert stack.status != Status.IN_PROGRESS, f"{stack.name} never came to rest: {_reasons(world, stack)}"
        _check_stack(world, stack)
    _check_leaks(world)
    _check_events(world)


def _check_stack(world: "SimulatedWorld", stack: Any) -> None:
    rows = [row for row in world.rows() if row.stack_id == stack.id]
    if stack.deleted_at is not None:
        assert not rows, f"{stack.name} is deleted, but has {[(r.name, r.action, r.status) for r in rows]}"
        return
    if stack.status == Status.FAILED:
        assert stack.reason, f"{stack.name} failed without a reason"
        failed = [row for row in rows if row.status == Status.FAILED]
        assert failed or "Timed out" in stack.reason, f"{stack.name} failed, but no resource did: {stack.reason}"
        return
    desired = world.desired(stack.id, stack.revision)
    identity = Identity(stack.id, stack.name, stack.project)
    wanted = {n for shard in range(stack.shards) for n in compile_graph(desired, identity, shard)}
    states = sorted((row.name, row.action, row.status) for row in rows)
    assert {row.name for row in rows} == wanted, f"{stack.name} should have {sorted(wanted)}, has {states}"
    assert len(rows) == len(wanted), f"{stack.name} has leftovers: {states}"
    assert all(row.status == Status.COMPLETE for row in rows), f"{stack.name} is COMPLETE with {states}"
    _check_reality(world, stack, rows)


def _check_reality(world: "SimulatedWorld", stack: Any, rows: list[Any]) -> None:
    """What the cloud has is what the rows say: present, running, with the properties last asked for."""
    things = world.cloud.things()
    for row in rows:
        if row.handle and row.handle.split("-")[0] in ("server", "volume", "network"):
            thing = things.get(row.handle)
            assert thing is not None, f"{stack.name}.{row.name}: {row.handle} is gone and nobody minds"
            assert thing.get("status") in ("active", "available"), f"{stack.name}.{row.name}: {thing}"
            for name, value in row.properties.items():
                if name in ("flavor", "metadata", "description", "name"):
                    assert thing[name] == value, f"{stack.name}.{row.name}: {name} is {thing[name]}, not {value}"


def _check_leaks(world: "SimulatedWorld") -> None:
    """Every thing in the cloud belongs to exactly one row, but for what a Retain policy let go of."""
    handles = Counter(row.handle for row in world.rows() if row.handle)
    retained = _retained(world)
    leaked = [handle for handle in world.cloud.things() if handles[handle] != 1 and handle not in retained]
    assert not leaked, f"leaked: {leaked}"


def _retained(world: "SimulatedWorld") -> set[str]:
    table = schema.event
    with world.db.read() as tx:
        kept = select(table.c.handle).where(table.c.action == Action.DELETE, table.c.reason.like("kept%"))
        return set(tx.execute(kept).scalars())


def _check_events(world: "SimulatedWorld") -> None:
    """The newest event of each row tells its state (law 6)."""
    table = schema.event
    with world.db.read() as tx:
        for row in world.rows():
            newest = tx.execute(
                select(table.c.action, table.c.status)
                .where(table.c.key == row.key)
                .order_by(table.c.seq.desc())
                .limit(1)
            ).first()
            if row.action != Action.INIT:
                assert newest is not None, f"{row.name} has no event"
                assert tuple(newest) == (row.action, row.status), (
                    f"{row.name}: {newest} is not {row.action} {row.status}"
                )


def _reasons(world: "SimulatedWorld", stack: Any) -> list[Any]:
    with world.db.read() as tx:
        rows: dict[str, Resource] = {}
        for number in range(stack.shards):
            rows |= worlds.load_rows(tx, stack.id, number)[0]
        facts = stacks.facts(stack)
    current = {row.name: current_row([r for r in rows.values() if r.name == row.name], facts) for row in rows.values()}
    return [
        (row.name, row.action, row.status, row.reason, row.due_at, current[row.name] is row)
        for row in rows.values()
        if row.status != Status.COMPLETE or current[row.name] is not row
    ]
