"""How rollouts of a tree of stacks are found, on SQLite and on PostgreSQL."""

from typing import Any

from tests.contract.store_cases import NOW, add_stack, resource, stack_row

from homeostat.model.rollout import Rollout, RolloutBegin, RolloutSettings, RolloutState
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


def test_names_of_the_things_of_a_stack(database: Database) -> None:
    stack_id = add_stack(database)
    add_group(database, stack_id, "k1")
    with database.read() as tx:
        assert rollouts.names_of(tx, stack_id, ["h-k1", "gone"]) == {"h-k1": "k1"}
        assert rollouts.names_of(tx, "another", ["h-k1"]) == {}
        assert rollouts.names_of(tx, stack_id, []) == {}
