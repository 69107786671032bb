"""The store's contract, on SQLite and on PostgreSQL: doubts about a look, what ends them, and what the doctor says."""

from typing import Any

from tests.contract.store_cases import NOW, add_stack, resource

from homeostat.cli.doctor import examine
from homeostat.convergence.facts.healing_brake import doubts
from homeostat.doctor.checks import Level
from homeostat.model.observed import Observation, Presence
from homeostat.model.world import Resource, Seen
from homeostat.store.database import Database
from homeostat.store.shards import look_schedule, shard_state
from homeostat.store.shards.brakes import PATIENCE_S
from homeostat.store.shards.shard_state import Writes

ABSENT, PRESENT = Presence.ABSENT, Presence.PRESENT


def stack_of(db: Database, name: str, looked_at: float, *rows: tuple[str, Presence, float]) -> str:
    """A stack whose shard was last looked at then. rows — type, what was seen of it, when it was made."""
    stack_id = add_stack(db, name)
    writes = Writes()
    for number, (kind, presence, created_at) in enumerate(rows):
        key = f"{name}{number}"
        more: dict[str, Any] = {"type": kind, "handle": f"{kind}-{key}", "created_at": created_at, "action": "CREATE"}
        row: Resource = resource(key, stack_id, key, **more)
        writes.insert(row)
        writes.seen[key] = (row, Seen(Observation(presence, row.handle, {}, NOW), 1))
    with db.write() as tx:
        shard_state.record(tx, stack_id, writes, NOW)
        look_schedule.record_look(tx, [(stack_id, 0)], looked_at)
    return stack_id


def line(db: Database) -> tuple[Level, str, str]:
    (check,) = (each for each in examine(db, None) if each.name == "looks")
    return check.level, check.found, check.remedy


def gone(db: Database) -> str:
    return stack_of(db, "gone", NOW + PATIENCE_S, *[("OS::Cinder::Volume", ABSENT, NOW - 100)] * 4)


def is_doubted(db: Database) -> bool:
    with db.read() as tx:
        return bool(doubts(tx))


def test_the_doctor_reports_a_doubt_and_how_it_ends(database: Database) -> None:
    assert line(database)[0] is Level.OK
    gone(database)
    level, found, remedy = line(database)
    assert level is Level.WARN
    assert "4 of kind volume in project p (stacks p-gone)" in found
    assert "homeostat converge STACK" in remedy
    assert "ten minutes later" in remedy


def test_a_canary_counts_once_there_was_patience(database: Database) -> None:
    gone(database)
    stack_of(database, "soon", NOW + PATIENCE_S - 1, ("OS::Cinder::VolumeType", PRESENT, NOW - 100))
    stack_of(database, "other", NOW + PATIENCE_S, ("OS::Nova::Server", PRESENT, NOW - 100))
    stack_of(database, "blind", NOW + PATIENCE_S, ("OS::Cinder::VolumeType", ABSENT, NOW - 100))
    assert is_doubted(database)
    stack_of(database, "canary", NOW + PATIENCE_S, ("OS::Cinder::VolumeType", PRESENT, NOW - 100))
    assert not is_doubted(database)


def test_what_was_made_since_counts_once_there_was_patience(database: Database) -> None:
    gone(database)
    stack_of(database, "young", NOW + 60, ("OS::Cinder::Volume", PRESENT, NOW + 10))
    assert is_doubted(database)
    with database.write() as tx:
        look_schedule.record_look(tx, [("p-young", 0)], NOW + PATIENCE_S)
    assert not is_doubted(database)


def test_one_that_was_there_before_counts_at_once(database: Database) -> None:
    gone(database)
    stack_of(database, "old", NOW + 1, ("OS::Cinder::Volume", PRESENT, NOW - 10))
    assert not is_doubted(database)
