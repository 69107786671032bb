"""Two versions of the program on one database (CV5): expanding lets the older one run, contracting awaits its end."""

import contextlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import Boolean, Column, Float, Integer, MetaData, Numeric, Table, inspect, select, text
from sqlalchemy.exc import DBAPIError
from tests.contract.store_cases import LONG_S, add_stack, claim, stack_row
from tests.waiting import until

from homeostat.cli import maintenance
from homeostat.cli.doctor import examine
from homeostat.cli.errors import Problem
from homeostat.clock import Entropy, SystemClock
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence.limits import Limits
from homeostat.convergence.worker import Worker
from homeostat.doctor.checks import Level
from homeostat.model.status import Status
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.database import Database
from homeostat.store.operation import workers
from homeostat.store.shards import shards
from homeostat.store.sql import migration
from homeostat.store.sql.migration import Outdated, Phase

EXPANDING = [
    revision.revision
    for revision in reversed(list(ScriptDirectory.from_config(migration.alembic_config()).walk_revisions()))
    if not revision.revision.startswith("c")
]
CONTRACTING = """
from alembic import op
import sqlalchemy as sa
revision, down_revision, branch_labels, depends_on = "c9001", "0100", None, None
def upgrade():
    with op.batch_alter_table("stack") as table:
        table.drop_column("tags")
"""
NEWER = """
from alembic import op
import sqlalchemy as sa
revision, down_revision, branch_labels, depends_on = "9001", "{before}", None, None
def upgrade():
    op.add_column("stack", sa.Column("invented", sa.Text(), nullable=True))
"""
UPGRADE_NOTES = Path(__file__).parents[2] / "docs/reference/upgrade-notes.md"
WRONG = """
from alembic import op
revision, down_revision, branch_labels, depends_on = "9998", "{before}", None, None
def upgrade():
    op.execute("SELECT * FROM nowhere")
"""


@pytest.fixture
def empty(database_url: str) -> Iterator[Database]:
    with contextlib.closing(Database(database_url, time.time)) as db:
        yield db


@pytest.fixture
def migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the migrations, for revisions that tests add."""
    there = tmp_path / "migrations"
    shutil.copytree(migration.MIGRATIONS, there)
    monkeypatch.setattr(migration, "MIGRATIONS", there)
    return there


def add_revision(migrations: Path, name: str, text: str) -> None:
    (migrations / "versions" / f"{name}_of_a_test.py").write_text(text.format(before=EXPANDING[-1]))


def go_to(db: Database, revision: str) -> MetaData:
    """The schema as a program of that revision knows it."""
    config = migration.alembic_config()
    with db.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.commit()
        known = MetaData()
        known.reflect(connection)
    known.remove(known.tables["alembic_version"])
    return known


def columns_of(db: Database) -> set[str]:
    return {column["name"] for column in inspect(db.engine).get_columns("stack")}


def schema_check(db: Database) -> Level:
    return next(check.level for check in examine(db, None) if check.name == "schema")


# -- the program before ------------------------------------------------------------------------------------------------


def some_value(table: Table, column: Column[Any]) -> Any:
    """One that fits the column; texts are the same everywhere, so that references hold."""
    if isinstance(column.type, Boolean):
        return True
    if isinstance(column.type, Integer | Float) or column.type._type_affinity in (Integer, Numeric):
        return 1
    return "1"


def row_of(table: Table) -> dict[str, Any]:
    return {column.name: some_value(table, column) for column in table.columns if column.computed is None}


def write_all(db: Database, known: MetaData, after: str) -> None:
    """Write a row into each table, as a program that knows these does, and take them away again."""
    with db.write() as tx:
        for table in known.sorted_tables:
            row = row_of(table)
            tx.execute(table.insert().values(row))
            tx.execute(table.update().values(row))
            found = tx.execute(select(table)).one()._mapping
            assert {name: found[name] for name in row} == row, f"after {after}"
        for table in reversed(known.sorted_tables):
            tx.execute(table.delete())


@pytest.mark.heavy
def test_an_expanded_schema_takes_all_that_the_program_before_writes(empty: Database) -> None:
    """After each revision, also after those to come: what they add must be optional for who does not know it."""
    known = go_to(empty, EXPANDING[0])
    for after in EXPANDING[1:]:
        expanded = go_to(empty, after)
        write_all(empty, known, after)
        known = expanded


def test_what_the_program_before_began_this_one_finishes(empty: Database) -> None:
    """A stack is stored as the first version of the program stores it; workers of today bring it up."""
    known = go_to(empty, EXPANDING[0])
    empty.migrate(Phase.EXPAND)
    server = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "small"}}
    template = {"heat_template_version": "2018-08-31", "resources": {"one": server, "two": server}}
    stack_id = StackService(empty, Entropy(), Quotas()).create("p", None, "web", StackRequest(template))
    written_by_the_program_before(empty, known)

    worker = Worker(empty, SimulatedCloud(time.time), SystemClock(), Entropy(), Limits(look_busy_s=0.1))
    worker.start()
    try:
        until(lambda: stack_row(empty, stack_id).status == Status.COMPLETE, "the stack")
        written_by_the_program_before(empty, known)
        with empty.write() as tx:
            shards.wake(tx, stack_id, tx.now(), shards.USER)
        until(lambda: not list(worker._board.iterjobs()), "the pass over it")
        assert stack_row(empty, stack_id).status == Status.COMPLETE
    finally:
        worker.stop()


def written_by_the_program_before(db: Database, known: MetaData) -> None:
    """All rows again, without what it does not know."""
    with db.write() as tx:
        kept = {
            table: [dict(row._mapping) for row in tx.execute(select(*(table.c[name] for name in row_of(table))))]
            for table in known.sorted_tables
        }
        for table in reversed(known.sorted_tables):
            tx.execute(table.delete())
        for table in known.sorted_tables:
            if kept[table]:
                tx.execute(table.insert(), kept[table])


# -- the two phases ----------------------------------------------------------------------------------------------------


def test_an_empty_database_gets_everything(empty: Database, migrations: Path) -> None:
    add_revision(migrations, "c9001", CONTRACTING)
    done = empty.migrate()
    assert done.heads == (EXPANDING[-1], "c9001")
    assert done.usable
    assert "tags" not in columns_of(empty)


@pytest.mark.heavy
def test_expanding_takes_nothing_away(empty: Database, migrations: Path) -> None:
    go_to(empty, EXPANDING[0])
    add_revision(migrations, "c9001", CONTRACTING)
    assert not empty.schema_status().usable
    assert schema_check(empty) is Level.FAIL
    done = empty.migrate(Phase.EXPAND)
    assert (done.missing, done.pending, done.usable) == ((), ("c9001",), True)
    assert "tags" in columns_of(empty)
    assert schema_check(empty) is Level.WARN

    assert maintenance.migrate(empty, Phase.CONTRACT, as_json=True) == 0
    assert "tags" not in columns_of(empty)
    assert empty.schema_status().pending == ()


@pytest.mark.heavy
def test_contracting_waits_for_workers_of_other_versions(empty: Database, migrations: Path) -> None:
    empty.migrate()
    add_revision(migrations, "c9001", CONTRACTING)
    now = time.time()
    register(empty, "old", "0.0.1", now + LONG_S)
    register(empty, "dead", "0.0.1", now - 60)
    register(empty, "mine", workers.VERSION, now + LONG_S)
    claim(empty, add_stack(empty, at=now), owner="of before the register", at=now, lease_s=LONG_S)
    for phase in (Phase.CONTRACT, Phase.ALL):
        with pytest.raises(Problem, match="of before the register, old;"):
            maintenance.migrate(empty, phase, as_json=True)
    assert maintenance.migrate(empty, Phase.EXPAND, as_json=True) == 0
    assert "tags" in columns_of(empty)


def test_contracting_comes_after_expanding(empty: Database) -> None:
    go_to(empty, EXPANDING[0])
    with pytest.raises(Problem, match="--phase expand"):
        maintenance.migrate(empty, Phase.CONTRACT, as_json=True)


def register(db: Database, name: str, version: str, seen_at: float) -> None:
    with db.write() as tx:
        workers.report(tx, workers.Worker(name, "host", 1, version, "sql", seen_at, seen_at))


# -- the program before, on a schema of the next one -------------------------------------------------------------------


def forget(migrations: Path, name: str) -> None:
    """Be the program of the version before."""
    (migrations / "versions" / f"{name}_of_a_test.py").unlink()


@pytest.mark.heavy
def test_a_program_starts_on_a_schema_that_a_newer_one_has_expanded(empty: Database, migrations: Path) -> None:
    add_revision(migrations, "9001", NEWER)
    empty.migrate()
    forget(migrations, "9001")
    found = empty.migrate()
    assert (found.newer, found.missing, found.usable) == (("9001",), (), True)
    assert schema_check(empty) is Level.OK


@pytest.mark.heavy
def test_a_program_does_not_start_on_a_schema_that_a_newer_one_has_contracted(
    empty: Database, migrations: Path
) -> None:
    add_revision(migrations, "9001", NEWER)
    add_revision(migrations, "c9001", CONTRACTING)
    empty.migrate()
    forget(migrations, "9001")
    forget(migrations, "c9001")
    with pytest.raises(Outdated, match="c9001"):
        empty.migrate()
    assert not empty.schema_status().usable
    assert schema_check(empty) is Level.FAIL


@pytest.mark.heavy
def test_a_worker_does_not_start_without_its_schema(empty: Database, tmp_path: Path) -> None:
    go_to(empty, EXPANDING[0])
    started = [sys.executable, "-m", "homeostat", "worker", "--database", empty.url, "--state-dir", str(tmp_path)]
    ended = subprocess.run([*started, "--cloud", "simulated"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "homeostat migrate --phase expand" in ended.stderr


# -- before the first release ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["0001", "0036"])
def test_a_schema_from_before_the_first_release_is_refused(empty: Database, revision: str) -> None:
    empty.migrate()
    with empty.write() as tx:
        tx.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))
    assert (empty.schema_status().usable, schema_check(empty)) == (False, Level.FAIL)
    for phase in Phase:
        with pytest.raises(Problem, match=f"{revision}.*upgrade notes"):
            maintenance.migrate(empty, phase, as_json=True)


def test_the_statements_of_the_upgrade_notes_bring_it_to_the_first_release(empty: Database) -> None:
    (block,) = re.findall(r"```sql\n(.*?)```", UPGRADE_NOTES.read_text("utf-8"), re.DOTALL)
    *renames, stamp = block.strip().splitlines()
    go_to(empty, "0101")
    released = empty.schema_status()
    with empty.write() as tx:
        for statement in renames:
            _, _, table, _, _, old, _, new = statement.rstrip(";").split()
            tx.execute(text(f"ALTER TABLE {table} RENAME COLUMN {new} TO {old}"))
        tx.execute(text("UPDATE alembic_version SET version_num = '0036'"))
    assert not empty.schema_status().usable
    with empty.write() as tx:
        for statement in (*renames, stamp):
            tx.execute(text(statement.rstrip(";")))
    assert empty.schema_status() == released
    empty.migrate()
    add_stack(empty)


@pytest.mark.heavy
def test_a_migration_that_fails_says_why_and_lets_the_next_one_go_on(empty: Database, migrations: Path) -> None:
    add_revision(migrations, "9998", WRONG)
    with pytest.raises(DBAPIError, match="nowhere"):
        empty.migrate()
    forget(migrations, "9998")
    assert empty.migrate().missing == ()
