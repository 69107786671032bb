"""What the APIs read from the store, on both databases."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.contract.store_cases import NOW, add_stack, come_to_rest, event, resource, revise

from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Action
from homeostat.model.world import Seen
from homeostat.store import events
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import stacks, views
from homeostat.store.stacks.contents import EMPTY
from homeostat.store.stacks.views import Listing, Tags

TAGS = {"a": ["red"], "b": ["red", "blue"], "c": ["blue", "dark blue"], "d": None, "e": ['say "red"', "Red", "é"]}


@pytest.fixture
def tagged(database: Database) -> Database:
    for number, (name, tags) in enumerate(TAGS.items()):
        add_stack(database, name, tags=tags, at=NOW + number // 2)
    return database


def names(db: Database, **listing: Any) -> str:
    with db.read() as tx:
        return "".join(each.name for each in views.stacks_page(tx, Listing("p", newest_first=False, **listing)))


@pytest.mark.parametrize(
    ("tags", "expected", "reason"),
    [
        (Tags(), "abcde", "none asked for"),
        (Tags(every=["red"]), "ab", "a tag, not a part of one, and no other case"),
        (Tags(every=["red", "blue"]), "b", "all of them"),
        (Tags(some=["red", "blue"]), "abc", "one of them"),
        (Tags(not_every=["red", "blue"]), "acde", "not all of them"),
        (Tags(none_of=["red", "blue"]), "de", "none of them; no tags at all will do"),
        (Tags(every=['say "red"']), "e", "quotes are quoted"),
        (Tags(every=["é"]), "e", "any letters"),
        (Tags(every=["%"]), "", "no patterns"),
    ],
)
def test_tags(tagged: Database, tags: Tags, expected: str, reason: str) -> None:
    assert names(tagged, tags=tags) == expected, reason


def test_hidden_tags(tagged: Database) -> None:
    assert names(tagged, hidden_tags=("blue", "é")) == "ad"


@pytest.mark.parametrize("order", [("created_at",), ("name",), ("status", "name"), ("updated_at",)])
@pytest.mark.parametrize("newest_first", [True, False])
def test_pages_hold_every_stack_once(tagged: Database, order: Sequence[str], newest_first: bool) -> None:
    """Also where many are alike in what they are ordered by, or have nothing there."""
    revise(tagged, "p-c")
    found: list[str] = []
    while True:
        marker = found[-1] if found else None
        with tagged.read() as tx:
            page = views.stacks_page(tx, Listing("p", order=order, newest_first=newest_first, marker=marker, limit=2))
        found += [each.id for each in page]
        if len(page) < 2:
            break
    assert sorted(found) == [f"p-{name}" for name in "abcde"]
    with tagged.read() as tx:
        whole = views.stacks_page(tx, Listing("p", order=order, newest_first=newest_first))
        assert [each.id for each in whole] == found
        assert views.stacks_count(tx, Listing("p", limit=2)) == 5


def test_deleted_nested_and_others(database: Database) -> None:
    add_stack(database, "root")
    add_stack(database, "child", parent_id="p-root", root_id="p-root", depth=1)
    add_stack(database, "grandchild", parent_id="p-child", root_id="p-root", depth=2)
    add_stack(database, "root", project="q")
    assert names(database) == "root"
    assert names(database, nested=True, order=("name",)) == "childgrandchildroot"
    assert names(database, nested=True, only={"parent_id": ["p-root"]}) == "child"
    with database.read() as tx:
        root = stacks.get(tx, "p-root")
        assert root is not None
        for depth, expected in ((0, []), (1, ["child"]), (5, ["child", "grandchild"])):
            assert [each.name for each in views.descendants(tx, root, depth)] == expected
    delete(database, "p-grandchild")
    assert names(database, nested=True, order=("name",)) == "childroot"
    assert names(database, nested=True, deleted=True, order=("name",)) == "childgrandchildroot"
    with database.read() as tx:
        assert [each.name for each in views.descendants(tx, root, 5)] == ["child"]


def delete(db: Database, stack_id: str) -> None:
    number = revise(db, stack_id, EMPTY, Action.DELETE)
    with db.write() as tx:
        come_to_rest(tx, stack_id, 0, number)


def test_resources_of_some_names_and_shards(database: Database) -> None:
    add_stack(database, shard_count=2)
    writes = Writes()
    for shard, key, name in ((0, "k1", "a"), (0, "k2", "b"), (1, "k3", "c"), (0, "k4", "a")):
        writes.insert(resource(key, "p-web", name, shard, born=int(key[1])))
    row = writes.inserted["k1"]
    writes.seen["k1"] = (row, Seen(Observation(Presence.PRESENT, "h", {"status": "active"}, NOW), 1))
    writes.properties.append((row, {"flavor": "small", "tags": [1]}))
    with database.write() as tx:
        shard_state.record(tx, "p-web", writes, NOW)
    with database.read() as tx:
        rows, seen = views.resources(tx, "p-web")
        assert list(rows) == ["k1", "k2", "k4", "k3"], "by shard, in the order they were made"
        assert seen["k1"].observation.properties == {"status": "active"}
        assert seen.keys() == {"k1"}
        assert list(views.resources(tx, "p-web", ["a"])[0]) == ["k1", "k4"]
        assert list(views.resources(tx, "p-web", ["a", "c"], [1])[0]) == ["k3"]
        assert list(views.resources(tx, "p-web", [])[0]) == []
        assert views.observed_properties(tx, "p-web", ["k1"]) == {"k1": {"flavor": ("small", NOW), "tags": ([1], NOW)}}
        assert views.observed_properties(tx, "p-web", ["k2"]) == {}


def test_the_revision_that_says_something(database: Database) -> None:
    add_stack(database)
    assert revise(database, "p-web") == 2
    revise(database, "p-web", EMPTY, Action.DELETE)
    with database.read() as tx:
        assert views.described_revision(tx, "p-web") == 2
        assert views.described_revision(tx, "nobody") == 0


def test_events_paged_by_type(database: Database) -> None:
    """Pages in an order with equal places hold every event once."""
    add_stack(database)
    with database.write() as tx:
        events.append(tx, "p-web", [event(name) for name in "abc"], NOW)
    for newest_first in (False, True):
        found: list[int] = []
        while True:
            after = found[-1] if found else None
            with database.read() as tx:
                page = events.page(tx, ["p-web"], after=after, newest_first=newest_first, limit=1, order_by="type")
            if not page:
                break
            found += [each.seq for each in page]
        with database.read() as tx:
            whole = events.page(tx, ["p-web"], newest_first=newest_first, order_by="type")
        assert found == [each.seq for each in whole]
        assert len(found) == 4
