"""How large a tree becomes when several workers make it, on SQLite and on PostgreSQL."""

import itertools
from collections.abc import Sequence
from functools import partial

from tests.contract.store_cases import NOW, TIMEOUT_S, add_stack, at_once, stack_row
from tests.simulation.actors import VirtualClock

from homeostat.convergence.nested_stacks.tree_size import UNSEEN_SHARE, TooLarge, TreeSizes
from homeostat.store.database import Database
from homeostat.store.stacks import action_begin, revisions, stacks
from homeostat.store.stacks.action_begin import NewStack
from homeostat.store.stacks.contents import Content

QUOTA = 1000


def workers(count: int) -> list[TreeSizes]:
    """They have just counted, and time stands still: none counts again because its count is old."""
    clock = VirtualClock()
    return [TreeSizes(clock, QUOTA) for _ in range(count)]


def grow(db: Database, root_id: str, name: str, size: int, trees: TreeSizes) -> bool:
    """Make a nested group of so many members, unless it would be too many."""
    group = {"resource_def": {"type": "t"}, "index_var": "%index%", "count": size, "skip": []}
    revision, root = revisions.encode(db, Content("group", group), size=size), stacks.facts(stack_row(db, root_id))
    try:
        with db.write() as tx:
            trees.begin(tx, root, size)
            trees.count(tx, root, revision, size, 0)
            new = NewStack(name, "p", name, root_id=root_id, parent_id=root_id, parent_shard=0)
            action_begin.add(tx, new, revision, NOW, TIMEOUT_S)
    except TooLarge:
        return False
    return True


def size_of(db: Database, root_id: str) -> int:
    with db.read() as tx:
        return stacks.size_of_tree(tx, root_id)


def made(db: Database, root_id: str, all_workers: Sequence[TreeSizes], size: int) -> None:
    """Workers take turns until each of them has been refused."""
    for number in itertools.count():
        grown = [grow(db, root_id, f"{number}-{place}", size, each) for place, each in enumerate(all_workers)]
        if not any(grown):
            return


def test_a_large_group_is_refused_for_what_others_have_made_just_now(database: Database) -> None:
    root_id = add_stack(database)
    one, other = workers(2)
    assert grow(database, root_id, "small", 1, one)
    assert grow(database, root_id, "large", 600, other)
    assert not grow(database, root_id, "too-large", 600, one)
    assert grow(database, root_id, "rest", 399, one)


def test_of_large_groups_that_are_made_at_once_no_more_fit_than_may(database: Database) -> None:
    root_id = add_stack(database)
    acts = [partial(grow, database, root_id, f"g{place}", 300, each) for place, each in enumerate(workers(5))]
    assert sum(at_once(acts)) == 3
    assert size_of(database, root_id) == 900


def test_many_small_stacks_exceed_the_quota_by_no_more_than_a_share_of_each_worker(database: Database) -> None:
    root_id = add_stack(database)
    made(database, root_id, workers(3), 7)
    assert QUOTA - 7 < size_of(database, root_id) <= QUOTA + 2 * (UNSEEN_SHARE * QUOTA + 7)
