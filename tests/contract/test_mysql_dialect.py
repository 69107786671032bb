"""What statements become for MariaDB and MySQL; no server is needed for that."""

from typing import Any

import pytest
from sqlalchemy import Column, Index, Integer, MetaData, Table, Text, text, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from homeostat.model.errors import Bug
from homeostat.store import schema
from homeostat.store.shards.shards import USER, wake_values
from homeostat.store.sql.mysql_dialect import Dialect

HERE = Dialect()
thing = Table("thing", MetaData(), Column("id", Integer, primary_key=True), *(Column(each, Integer) for each in "abc"))
A, B, C = thing.c.a, thing.c.b, thing.c.c


def said(statement: Any) -> str:
    return " ".join(str(statement.compile(dialect=HERE)).split())


@pytest.mark.parametrize(
    ("values", "order"),
    [
        pytest.param({A: B, B: 0}, "a=thing.b, b=%s", id="what is read is assigned later"),
        pytest.param({A: 0, B: A}, "b=thing.a, a=%s", id="also where it comes first"),
        pytest.param({A: A + 1, B: A + B}, "b=(thing.a + thing.b), a=(thing.a + %s)", id="its own value"),
        pytest.param({A: 0, B: A, C: B}, "c=thing.b, b=thing.a, a=%s", id="a chain"),
    ],
)
def test_each_assignment_sees_the_row_as_it_was(values: dict[Column[int], Any], order: str) -> None:
    found = said(update(thing).values(values))
    assert [each.partition("=")[0] for each in found.partition("SET ")[2].split(", ")] == [
        each.partition("=")[0] for each in order.split(", ")
    ]


def test_a_swap_is_no_update() -> None:
    with pytest.raises(Bug):
        said(update(thing).values({A: B, B: A}))


def test_a_wake_up_reads_when_a_shard_was_to_be_woken_before_it_says_so() -> None:
    found = said(update(schema.shard).values(**wake_values(1.0, int(USER))))
    assert found.index("priority=") < found.index("wake_at=")


def test_a_conflict_leaves_what_its_condition_protects() -> None:
    new = postgresql.insert(thing)
    found = said(new.on_conflict_do_update(index_elements=["id"], set_={"a": new.excluded.a}, where=new.excluded.b > B))
    assert found.endswith("ON DUPLICATE KEY UPDATE a = CASE WHEN VALUES(b) > thing.b THEN VALUES(a) ELSE a END")
    assert said(new.on_conflict_do_nothing()).endswith("ON DUPLICATE KEY UPDATE id = id")


def test_texts_of_keys_have_a_length_and_others_have_none() -> None:
    found = said(CreateTable(schema.stack))
    assert "name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL" in found
    assert "reason LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL" in found
    assert "FOREIGN KEY" not in said(CreateTable(schema.event)), (
        "a pass must not wait for a user who has locked its stack"
    )
    assert "FOREIGN KEY(stack_id, shard) REFERENCES shard" in said(CreateTable(schema.resource))


def test_a_unique_index_of_some_rows_is_one_on_a_generated_column() -> None:
    table = Table("some", MetaData(), Column("project", Text), Column("name", Text), Column("gone", Integer))
    index = Index("uq_some", table.c.project, table.c.name, unique=True, postgresql_where=text("gone IS NULL"))
    assert said(CreateIndex(index)) == (
        "ALTER TABLE some ADD COLUMN uq_some_key LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        " GENERATED ALWAYS AS (CASE WHEN gone IS NULL THEN name END) STORED,"
        " ADD UNIQUE INDEX uq_some (project, uq_some_key)"
    )
