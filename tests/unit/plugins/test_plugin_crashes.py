"""A worker that dies at any transaction of a plug-in's cloud: nothing is lost, leaked or made twice."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import select
from tests.component.running import PROJECT, Service
from tests.simulation.actors import Killed
from tests.unit.plugins.lamps import SHOP, known, lamp

from homeostat.clouds.combined import JoinedCloud
from homeostat.plugins import loading
from homeostat.plugins.cloud import PluginClouds
from homeostat.store import schema

CREATION, DELETION = 10, 6
"""Points of it at which a worker may die."""
CHANGES: list[tuple[dict[str, Any], int]] = [({"watts": 7}, 8), ({"colour": "blue"}, 22), ({"place": "hall"}, 18)]
"""What an update changes, and at how many points of it a worker may die."""


class DeadlyDatabase:
    """The database as plug-ins use it: the process dies at one point of one of its writing transactions."""

    def __init__(self, db: Any) -> None:
        self._db = db
        self.die_in = -1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def _point(self) -> None:
        self.die_in -= 1
        if self.die_in == -1:
            raise Killed

    @contextmanager
    def write(self) -> Iterator[Any]:
        self._point()
        with self._db.write() as tx:
            yield tx
        self._point()


class Mortal:
    """A service whose worker may die; a new one goes on after it."""

    def __init__(self) -> None:
        self.there = Service()
        self.db = DeadlyDatabase(self.there.db)
        everything = PluginClouds(self.db, loading.classes())  # type: ignore[arg-type]
        self.there.cloud = JoinedCloud(self.there.cloud, everything.of(PROJECT))  # type: ignore[assignment]

    def dying(self, point: int, act: Callable[[], Any]) -> Any:
        """Do something with a worker that dies; time passes, and another one goes on."""
        self.db.die_in = point
        done = None
        try:
            done = act()
        except Killed:
            pass
        self.db.die_in = -1
        self.there.live(60)
        return done

    @property
    def records(self) -> int:
        """Of things that are there, or may come yet."""
        with self.there.db.read() as tx:
            return len(tx.execute(select(schema.record)).all())


@pytest.fixture
def mortal() -> Iterator[Mortal]:
    SHOP.__init__()  # type: ignore[misc]
    with known():
        yield Mortal()


def alone(mortal: Mortal, stack_id: str) -> None:
    """There is one lamp, and it is the one that the row knows."""
    (lamp_id,) = SHOP.lamps
    assert mortal.there.row(stack_id, "lamp").handle == lamp_id


@pytest.mark.parametrize("point", range(CREATION))
def test_a_creation_that_is_interrupted_ends_with_one_thing(mortal: Mortal, point: int) -> None:
    SHOP.warm_up = 1
    stack_id = mortal.there.begin({"lamp": lamp()})
    mortal.dying(point, mortal.there.work)
    assert mortal.there.state(stack_id) == "CREATE_COMPLETE"
    alone(mortal, stack_id)


@pytest.mark.heavy
@pytest.mark.parametrize(("change", "point"), [(change, each) for change, points in CHANGES for each in range(points)])
def test_an_update_that_is_interrupted_ends_as_it_was_wanted(
    mortal: Mortal, change: dict[str, Any], point: int
) -> None:
    stack_id = mortal.there.create({"lamp": lamp()})
    mortal.dying(point, lambda: mortal.there.update(stack_id, {"lamp": lamp(**change)}))
    assert mortal.there.state(stack_id) == "UPDATE_COMPLETE"
    alone(mortal, stack_id)
    (found,) = SHOP.lamps.values()
    assert {name: found[name] for name in change} == change


@pytest.mark.parametrize("point", range(DELETION))
def test_a_deletion_that_is_interrupted_leaves_nothing(mortal: Mortal, point: int) -> None:
    stack_id = mortal.there.create({"lamp": lamp()})
    mortal.dying(point, lambda: mortal.there.delete(stack_id))
    assert mortal.there.stack(stack_id).deleted_at is not None
    assert SHOP.lamps == {}
    assert mortal.records == 0


def test_what_was_interrupted_is_looked_for_until_it_cannot_be_made_any_more(mortal: Mortal) -> None:
    """The worker that had begun it may have been frozen only, and die when it has made it."""
    stack_id = mortal.there.begin({"lamp": lamp()})
    mortal.dying(1, mortal.there.work)
    assert mortal.there.state(stack_id) == "CREATE_COMPLETE"
    assert (SHOP.calls.count("handle_delete None"), mortal.records) == (1, 2)
    with mortal.there.db.read() as tx:
        (name,) = [row.secret["physical_name"] for row in tx.execute(select(schema.record)) if row.object["id"] is None]
    SHOP.lamps["late"] = {"name": name}
    mortal.there.live(120)
    assert "late" not in SHOP.lamps
    alone(mortal, stack_id)
    mortal.there.live(900)
    assert mortal.records == 1
    assert 3 < SHOP.calls.count("handle_delete None") < 20


def points(mortal: Mortal, act: Callable[[], Any]) -> int:
    """How many there are."""
    mortal.db.die_in = 1000
    act()
    return 1000 - mortal.db.die_in


def test_these_are_the_points_of_a_creation_and_a_deletion(mortal: Mortal) -> None:
    SHOP.warm_up = 1
    stack_id = mortal.there.begin({"lamp": lamp()})
    assert points(mortal, mortal.there.work) == CREATION
    mortal.there.rest()
    assert points(mortal, lambda: mortal.there.delete(stack_id)) == DELETION


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_these_are_the_points_of_an_update(mortal: Mortal, change: dict[str, Any], expected: int) -> None:
    stack_id = mortal.there.create({"lamp": lamp()})
    assert points(mortal, lambda: mortal.there.update(stack_id, {"lamp": lamp(**change)})) == expected
