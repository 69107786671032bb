"""The store's contract, on SQLite and on PostgreSQL: a deletion goes on under other deletion policies (ADR 0048)."""

from dataclasses import replace

from sqlalchemy import update
from tests.contract.store_cases import NOW, TIMEOUT_S, add_stack, locked, shard_row, stack_row

from homeostat.model.status import Action
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.stacks import action_begin, deletion, revisions
from homeostat.store.stacks.revisions import Desired

SAID = Desired("template", {"resources": {}}, files={"inner.yaml": "new"})


def test_what_is_nested_is_woken_and_asks_for_the_newest_word(database: Database) -> None:
    root = add_stack(database, "root")
    going = add_stack(database, "going", parent_id=root, parent_shard=0, root_id=root, depth=1)
    below = add_stack(database, "below", parent_id=going, parent_shard=0, root_id=root, depth=2)
    still = add_stack(database, "still", parent_id=root, parent_shard=0, root_id=root, depth=1)
    with database.write() as tx:
        for each in (root, going, below):
            action_begin.revise(
                database, tx, locked(database, tx, each), Action.DELETE, revisions.EMPTY, NOW, TIMEOUT_S
            )
        tx.execute(update(schema.shard).values(wake_at=None))
        assert deletion.newest_policies(tx, root, below) is None
        deletion.continue_deletion(database, tx, locked(database, tx, root), SAID, {"a": "Retain"}, NOW + 1, TIMEOUT_S)
    assert [shard_row(database, each).wake_at for each in (root, going, below, still)] == [
        NOW + 1,
        NOW + 1,
        NOW + 1,
        None,
    ]
    assert (stack_row(database, root).action, stack_row(database, root).revision) == (Action.DELETE, 4)
    with database.write() as tx:
        assert [deletion.newest_policies(tx, root, each) for each in (going, below, still)] == [3, 3, 3]
        assert deletion.file_of(tx, root, 3, "inner.yaml") == "new"
        assert deletion.file_of(tx, root, 3, "other.yaml") is None
        deletion.continue_deletion(
            database, tx, locked(database, tx, going), replace(SAID, files={}), {"a": "Delete"}, NOW + 2, TIMEOUT_S
        )
        assert [deletion.newest_policies(tx, root, each) for each in (going, below)] == [None, 3]
        action_begin.revise(database, tx, locked(database, tx, root), Action.UPDATE, SAID, NOW + 3, TIMEOUT_S)
        assert deletion.newest_policies(tx, root, below) is None
