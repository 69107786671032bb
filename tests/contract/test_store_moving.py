"""The store's contract for stacks that move, on SQLite and on PostgreSQL."""

from functools import partial
from typing import Any

import pytest
from tests.contract.store_cases import NOW, TEMPLATE, TIMEOUT_S, add_stack, at_once, locked, resource, stack_row

from homeostat.model.errors import Terminal
from homeostat.model.status import Action
from homeostat.model.world import KeepPolicy
from homeostat.store.database import Database
from homeostat.store.shards import orphans, shard_state
from homeostat.store.shards.orphans import Orphan
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import action_begin, action_end, revisions
from homeostat.store.stacks.action_begin import NewStack
from homeostat.transfer import adoption


def adopt(db: Database, name: str, *handles: str, project: str = "p", type: str = "OS::Nova::Server") -> str:
    """Nothing where it succeeds, else why it does not."""
    new = NewStack(f"{project}-{name}", project, name, action=Action.ADOPT)
    named = [(f"{name}{project}{place}", f"r{place}", each) for place, each in enumerate(handles)]
    rows = [resource(key, new.id, called, handle=each, type=type) for key, called, each in named]
    try:
        with db.write() as tx:
            action_begin.add(tx, new, revisions.encode(db, TEMPLATE), NOW, TIMEOUT_S)
            adoption.add(tx, project, adoption.write_out(db, rows, secret=False))
    except Terminal as error:
        return str(error)
    return ""


def test_a_stack_is_abandoned_with_all_that_is_nested_in_it_for_good(database: Database) -> None:
    root = add_stack(database)
    child = add_stack(database, "child", parent_id=root, parent_name="a", parent_key="k", parent_shard=0, root_id=root)
    other = add_stack(database, "other")
    retained = add_stack(
        database, "kept", parent_id=root, parent_name="b", parent_key="gone", parent_shard=0, root_id=root
    )
    writes = Writes()
    writes.insert(resource("k", root, "a", type="child.yaml", handle=child))
    with database.write() as tx:
        shard_state.record(tx, root, writes, NOW)

    for _ in range(2):
        with database.write() as tx:
            action_begin.abandon(tx, locked(tx, root), NOW, TIMEOUT_S)
    with database.write() as tx:
        action_begin.converge(tx, locked(tx, root), NOW, TIMEOUT_S)

    spares = [stack_row(database, each).spares for each in (root, child, retained, other)]
    assert spares == [KeepPolicy.ALL, KeepPolicy.ALL, None, None]
    assert stack_row(database, root).action == Action.DELETE


def test_what_is_being_adopted_is_spared_until_it_is_complete(database: Database) -> None:
    assert adopt(database, "web") == ""
    assert stack_row(database, "p-web").spares == KeepPolicy.ADOPTED

    with database.write() as tx:
        action_end.finish(tx, locked(tx, "p-web"), NOW)

    assert stack_row(database, "p-web").spares is None


def test_of_two_who_adopt_the_same_thing_at_once_one_gets_it(database: Database) -> None:
    """Both names are new: nothing but the thing itself tells that they are in each other's way."""
    answers = at_once([partial(adopt, database, name, "server-1", "server-2") for name in ("one", "two", "three")])

    refused = [each for each in answers if each]
    assert len(refused) == 2
    assert all("server-1 is r0 of stack" in each for each in refused)
    with database.read() as tx:
        assert len(shard_state.owners_of(tx, ["server-1", "server-2"])) == 2


def test_another_project_may_have_a_thing_of_that_name_but_not_the_thing_itself(database: Database) -> None:
    assert adopt(database, "one", "server-1") == ""
    assert adopt(database, "keys", "mine", type="OS::Nova::KeyPair") == ""
    assert adopt(database, "keys", "mine", project="q", type="OS::Nova::KeyPair") == ""
    assert adopt(database, "two", "server-1", project="q") == "resources.r0.resource_id: server-1 is not yours to adopt"
    assert "is that of r0, too" in adopt(database, "three", "server-9", "server-9")


@pytest.mark.parametrize(
    ("row", "gone"),
    [
        ({"token": "a-1", "handle": "server-1"}, False),
        ({"token": "a-5", "handle": "server-1"}, False),
        ({"token": "", "handle": "server-1"}, False),
        ({"token": "a-5", "handle": "server-5"}, True),
    ],
)
def test_what_turned_up_late_goes_unless_a_user_has_it(database: Database, row: dict[str, Any], gone: bool) -> None:
    """Its row by the token, or anybody by its id."""
    stack_id = add_stack(database)
    writes = Writes()
    writes.insert(resource("a", stack_id, **row))
    with database.write() as tx:
        shard_state.record(tx, stack_id, writes, NOW)
        orphans.add(tx, [Orphan("a-1", "server", "p")], NOW)
    with database.read() as tx:
        assert orphans.removable(tx, "p", {"a-1": "server-1"}) == ({"a-1"} if gone else set())


def test_what_is_spared_is_not_looked_for_any_more(database: Database) -> None:
    stack_id = add_stack(database)
    row = resource("a", stack_id, token="a-1")
    first, then = Writes(), Writes()
    first.insert(row)
    first.orphans.append(Orphan("a-1", "server", "p"))
    then.remove(row)
    then.kept_tokens.append("a-1")
    with database.write() as tx:
        shard_state.record(tx, stack_id, first, NOW)
    with database.write() as tx:
        shard_state.record(tx, stack_id, then, NOW)
        assert orphans.take_due(tx, NOW + 1000.0, 10) == []
        assert orphans.removable(tx, "p", {"a-1": "server-1"}) == set()
