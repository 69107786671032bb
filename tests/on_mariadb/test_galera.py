"""Writers on different nodes of a Galera cluster: what the nodes cannot both commit is done again."""

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import make_url, update
from tests import mariadb
from tests.contract.store_cases import add_stack, revise, stack_row
from tests.databases import migrate, missing, new_database
from tests.on_mariadb import galera
from tests.real.world import Users, world_on
from tests.waiting import until

from homeostat.model.errors import Transient, in_detail
from homeostat.store import schema
from homeostat.store.database import Database

KILLS = 6
REVISIONS = 30
pytestmark = [pytest.mark.mariadb, pytest.mark.real, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[str]]:
    """A cluster of three. Without the programs, tests are skipped; in CI they fail."""
    program, provider = mariadb.find_program(), galera.find_provider()
    if program is None or provider is None:
        missing("no Galera: install the packages 'mariadb-server', 'galera-4' and 'rsync'")
    with galera.running(program, provider) as urls:
        yield urls


@pytest.fixture
def nodes(cluster: list[str]) -> Iterator[list[str]]:
    """URLs of one new migrated database, on each node."""
    with new_database(cluster[0]) as url:
        migrate(url)
        name = make_url(url).database
        urls = [make_url(each).set(database=name).render_as_string(hide_password=False) for each in cluster]
        for each in urls:
            with contextlib.closing(Database(each, time.time)) as db:
                until(partial(_is_usable, db), "the schema to be on the node")
        yield urls


def _is_usable(db: Database) -> bool:
    return db.schema_status().usable


def test_what_another_node_has_committed_first_is_transient(nodes: list[str]) -> None:
    """Neither waits for the other: the locks of a node are its own. The later commit is refused."""
    with contextlib.ExitStack() as stack:
        one, two = (stack.enter_context(contextlib.closing(Database(url, time.time))) for url in nodes[:2])
        stack_id = add_stack(one)
        until(lambda: _there(two, stack_id), "the stack to be on the other node")
        renamed = update(schema.stack).where(schema.stack.c.id == stack_id)

        def both() -> None:
            with one.write() as late:
                late.execute(renamed.values(reason="late"))
                with two.write() as early:
                    early.execute(renamed.values(reason="early"))

        with pytest.raises(Transient) as refused:
            both()
        assert "1213" in in_detail(refused.value)
        until(lambda: stack_row(one, stack_id).reason == "early", "what was committed")


def _there(db: Database, stack_id: str) -> bool:
    with contextlib.suppress(Exception):
        return bool(stack_row(db, stack_id))
    return False


def test_users_on_two_nodes_lose_no_revision(nodes: list[str]) -> None:
    """Each asks once more, as a client does that is answered 503."""
    with contextlib.ExitStack() as stack:
        databases = [stack.enter_context(contextlib.closing(Database(url, time.time))) for url in nodes[:2]]
        stack_id = add_stack(databases[0])
        until(lambda: _there(databases[1], stack_id), "the stack to be on the other node")
        again = [0]

        def change(db: Database) -> None:
            for _ in range(REVISIONS):
                while True:
                    try:
                        revise(db, stack_id)
                        break
                    except Transient:
                        again[0] += 1

        threads = [threading.Thread(target=change, args=(db,)) for db in databases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until(lambda: stack_row(databases[0], stack_id).revision == 1 + 2 * REVISIONS, "all revisions")
        assert again[0] > 0, "the nodes got in each other's way"


def test_workers_on_three_nodes_are_killed(nodes: list[str], tmp_path: Path) -> None:
    """Users write through the first node, workers through all."""
    rng = random.Random(8)
    with world_on(nodes[0], tmp_path) as world:
        users = Users(world, rng)
        for _ in range(2):
            users.create()
        for url in nodes:
            world.start_worker(database_url=url)
        for number in range(KILLS):
            if number % 3 == 2 or world.resting():
                users.act()
            world.kill(rng.choice(world.get_under_way(rng)))
            world.start_worker(database_url=nodes[number % len(nodes)])
        world.check()
