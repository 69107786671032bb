"""How rollouts of a tree of stacks are found, on SQLite and on PostgreSQL."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import insert, select, update
from tests.contract.store_cases import NOW, add_stack, resource, stack_row

from homeostat.model.rollout import Rollout, RolloutBegin, RolloutRevised, RolloutSettings, RolloutState, WaitGate
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.stacks import rollouts


def add_group(database: Database, stack_id: str, key: str, state: str = RolloutState.RUNNING, **more: Any) -> None:
    """A group with a rollout."""
    with database.write() as tx:
        shard_state.encode_new(database, [resource(key, stack_id, key, handle=f"h-{key}", **more)]).store(tx)
        begun = Rollout(key, stack_id, 0, key, f"m-{key}", state, RolloutSettings(steps=("1", "50%")), started_at=NOW)
        rollouts.apply(tx, [stack_id], [RolloutBegin(begun)], NOW, 60.0)


def found(database: Database, stack_id: str, depth: int, after: str = "", limit: int = 10) -> list[str]:
    with database.read() as tx:
        return [each.key for each in rollouts.in_progress(tx, stack_row(database, stack_id), depth, after, limit)]


def test_the_rollouts_of_a_stack_and_of_those_in_it_are_found_in_pages(database: Database) -> None:
    top, other = add_stack(database), add_stack(database, "other")
    inner = add_stack(database, "inner", parent_id=top, parent_name="inner", root_id=top, depth=1)
    innermost = add_stack(database, "innermost", parent_id=inner, parent_name="x", root_id=top, depth=2)
    for stack_id, key in ((top, "k3"), (inner, "k1"), (innermost, "k2"), (other, "k0")):
        add_group(database, stack_id, key)
    add_group(database, top, "k9", RolloutState.ABORTED)
    add_group(database, top, "k8", RolloutState.HELD)
    assert found(database, top, 0) == ["k3", "k8"]
    assert found(database, top, 1) == ["k1", "k3", "k8"]
    assert found(database, top, 2**31 - 1) == ["k1", "k2", "k3", "k8"]
    assert found(database, top, 2, limit=2) == ["k1", "k2"]
    assert found(database, top, 2, "k2", 2) == ["k3", "k8"]
    assert found(database, inner, 5) == ["k1", "k2"]
    assert found(database, other, 5, "k0") == []


def test_all_that_a_resource_is_inside_of_is_found_in_one_query(database: Database) -> None:
    top = add_stack(database)
    add_group(database, top, "outer")
    inside: dict[str, Any] = {"parent_shard": 0, "root_id": top}
    middle = add_stack(database, "middle", parent_id=top, parent_name="outer", parent_key="outer", depth=1, **inside)
    add_group(database, middle, "inner")
    bottom = add_stack(database, "bottom", parent_id=middle, parent_name="inner", parent_key="inner", depth=2, **inside)
    table = schema.resource
    with database.write() as tx:
        both = {"metadata": {"v": 1}, "new_metadata": {"v": 2}}
        tx.execute(update(table).where(table.c.key.in_(["outer", "inner"])).values(**both))
        tx.execute(insert(schema.active_metadata_updates).values(resource_id="outer", instance_id="h-inner", step=1))
    with database.read() as tx:
        around = rollouts.groups_around(tx, bottom, "server")
        assert [(group.name, group.stack_id, member, group.member_metadata) for group, member in around] == [
            ("inner", middle, "server", {"v": 1}),
            ("outer", top, "h-inner", {"v": 2}),
        ]
        assert [group.name for group, _ in rollouts.groups_around(tx, middle, "h-inner")] == ["outer"]
        assert rollouts.groups_around(tx, top, "h-outer") == []


def test_names_of_the_things_of_a_stack(database: Database) -> None:
    stack_id = add_stack(database)
    add_group(database, stack_id, "k1")
    with database.read() as tx:
        assert rollouts.names_of(tx, stack_id, ["h-k1", "gone"]) == {"h-k1": "k1"}
        assert rollouts.names_of(tx, "another", ["h-k1"]) == {}
        assert rollouts.names_of(tx, stack_id, []) == {}


def add_handles(database: Database, *ids: str) -> None:
    with database.write() as tx:
        for id in ids:
            values = {"id": id, "project": "p", "kind": "signal_handle", "token": id, "object": {}}
            tx.execute(insert(schema.record).values(**values, created_at=NOW))


def test_a_rollout_follows_its_handles_and_keeps_the_rest(database: Database) -> None:
    stack_id = add_stack(database)
    add_group(database, stack_id, "k1")
    add_handles(database, "old", "new", "alarm")
    gate, states = WaitGate("wait", "old", 60.0), {"k1": RolloutState.RUNNING, "k2": RolloutState.HELD}
    for key, state in states.items():
        if key != "k1":
            add_group(database, stack_id, key)
        begun = Rollout(
            key, stack_id, 0, key, f"m-{key}", state, RolloutSettings(gates=(gate,)), step=2, started_at=NOW
        )
        with database.write() as tx:
            rollouts.apply(tx, [stack_id], [RolloutBegin(begun)], NOW, 60.0)
    with database.write() as tx:
        tx.execute(insert(schema.active_metadata_updates).values(resource_id="k1", instance_id="m", step=2, reported=1))
        settings = RolloutSettings(gates=(WaitGate("wait", "new", 60.0),), alarms=("alarm",))
        changes = [RolloutRevised(key, settings) for key in states]
        rollouts.apply(tx, [stack_id], changes, NOW + 5, 60.0)
    with database.read() as tx:
        running, held = (rollouts.of_group(tx, key) for key in states)
        assert running is not None
        assert held is not None
        assert (running.settings.gates[0].handle, running.settings.alarms) == ("new", ("alarm",))
        assert (running.step, running.step_at, running.due_at) == (2, NOW + 5, NOW + 5)
        assert (held.state, held.step, held.step_at, held.due_at) == (RolloutState.HELD, 2, 0.0, None)
        gates = tx.execute(select(schema.rollout_gate).where(schema.rollout_gate.c.key == "k1")).all()
        assert {(each.handle, each.bit, each.gates) for each in gates} == {("new", 0, 1), ("alarm", -1, 1)}
        (member,) = tx.execute(select(schema.active_metadata_updates)).all()
        assert (member.step, member.reported) == (2, 1)


def test_a_rollout_that_has_ended_follows_no_handle(database: Database) -> None:
    stack_id = add_stack(database)
    add_handles(database, "new")
    add_group(database, stack_id, "k1", RolloutState.SUCCEEDED)
    with database.write() as tx:
        revised = RolloutRevised("k1", RolloutSettings(gates=(WaitGate("wait", "new", 60.0),)))
        rollouts.apply(tx, [stack_id], [revised], NOW, 60.0)
    with database.read() as tx:
        found = rollouts.of_group(tx, "k1")
        assert found is not None
        assert found.settings.gates == ()
        assert tx.execute(select(schema.rollout_gate)).all() == []


ONE, TWO, THREE = (WaitGate(name, f"h-{name}", 60.0) for name in ("one", "two", "three"))


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ((ONE, TWO, THREE), {"a": (0b111, "SUCCESS"), "b": (0b101, ""), "c": (0, ""), "d": (0b1, "FAILURE")}),
        ((ONE, THREE), {"a": (0b11, "SUCCESS"), "b": (0b11, "SUCCESS"), "c": (0, ""), "d": (0b1, "FAILURE")}),
        ((TWO, THREE), {"a": (0b11, "SUCCESS"), "b": (0b10, ""), "c": (0, ""), "d": (0b1, "FAILURE")}),
        ((THREE, WaitGate("zero", "h-one", 9.0)), {"a": (0b11, "SUCCESS"), "b": (0b11, "SUCCESS"), "c": (0, "")}),
        ((), {"a": (0b111, "SUCCESS"), "b": (0b101, ""), "c": (0, ""), "d": (0b1, "FAILURE")}),
    ],
    ids=["the same", "one less", "the first less", "another name", "none"],
)
def test_what_members_have_reported_stays_when_the_gates_change(
    database: Database, after: tuple[WaitGate, ...], expected: dict[str, tuple[int, str]]
) -> None:
    stack_id = add_stack(database)
    add_group(database, stack_id, "k1")
    settings = RolloutSettings(gates=(ONE, TWO, THREE))
    begun = Rollout("k1", stack_id, 0, "k1", "m", RolloutState.RUNNING, settings, step=1, started_at=NOW)
    members = {"a": (0b111, "SUCCESS"), "b": (0b101, ""), "c": (0, ""), "d": (0b1, "FAILURE")}
    with database.write() as tx:
        rollouts.apply(tx, [stack_id], [RolloutBegin(begun)], NOW, 60.0)
        for name, (reported, status) in members.items():
            row = {"resource_id": "k1", "instance_id": name, "step": 1, "reported": reported, "status": status}
            tx.execute(insert(schema.active_metadata_updates).values(**row))
        rollouts.apply(tx, [stack_id], [RolloutRevised("k1", replace(settings, gates=after))], NOW, 60.0)
    with database.read() as tx:
        found = {row.instance_id: row for row in tx.execute(select(schema.active_metadata_updates))}
        assert {name: (found[name].reported, found[name].status) for name in expected} == expected
        times = rollouts.of_group(tx, "k1")
        assert times is not None
        assert times.settings.gates == after


@pytest.mark.parametrize(
    ("changed", "again"),
    [({"steps": ("50%",)}, False), ({"bake_s": 5.0}, False), ({"progress_s": 7.0}, True), ({"gates": (TWO,)}, True)],
    ids=["steps", "bake time", "time", "handle"],
)
def test_a_step_has_its_time_again_where_that_or_a_handle_is_another_one(
    database: Database, changed: dict[str, Any], again: bool
) -> None:
    stack_id = add_stack(database)
    add_group(database, stack_id, "k1")
    settings = RolloutSettings(gates=(ONE,))
    begun = Rollout("k1", stack_id, 0, "k1", "m", RolloutState.RUNNING, settings, step=1, step_at=NOW)
    with database.write() as tx:
        rollouts.apply(tx, [stack_id], [RolloutBegin(begun)], NOW, 60.0)
        rollouts.apply(tx, [stack_id], [RolloutRevised("k1", replace(settings, **changed))], NOW + 9, 60.0)
    with database.read() as tx:
        found = rollouts.of_group(tx, "k1")
    assert found is not None
    assert (found.settings, found.step_at) == (replace(settings, **changed), NOW + 9 if again else NOW)
    assert found.due_at == NOW + 9
