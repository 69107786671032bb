"""The register of workers, on SQLite and on PostgreSQL."""

from dataclasses import replace

from tests.contract.store_cases import NOW

from homeostat.store.database import Database
from homeostat.store.operation import workers
from homeostat.store.operation.workers import FORGOTTEN_S, SILENT_S, Worker

ONE = Worker("host:1:a", "host", 1, "1.0", "sql", NOW, NOW)
TWO = Worker("host:2:b", "host", 2, "1.1", "redis", NOW + 1, NOW + 1)


def report(db: Database, worker: Worker, at: float) -> None:
    with db.write() as tx:
        workers.report(tx, replace(worker, seen_at=at))


def listed(db: Database) -> list[Worker]:
    with db.read() as tx:
        return workers.listed(tx)


def test_workers_are_listed_with_their_last_report(database: Database) -> None:
    report(database, TWO, NOW + 1)
    report(database, ONE, NOW)
    report(database, ONE, NOW + 5)
    assert listed(database) == [replace(ONE, seen_at=NOW + 5), TWO]


def test_who_ends_in_order_is_gone(database: Database) -> None:
    report(database, ONE, NOW)
    report(database, TWO, NOW)
    with database.write() as tx:
        workers.leave(tx, ONE.name)
    assert [each.name for each in listed(database)] == [TWO.name]


def test_who_says_nothing_is_dead_and_forgotten_in_the_end(database: Database) -> None:
    report(database, ONE, NOW)
    (one,) = listed(database)
    assert one.is_alive(NOW + SILENT_S - 1)
    assert not one.is_alive(NOW + SILENT_S)
    report(database, TWO, NOW + FORGOTTEN_S)
    assert len(listed(database)) == 2
    report(database, TWO, NOW + FORGOTTEN_S + 1)
    assert [each.name for each in listed(database)] == [TWO.name]
    report(database, ONE, NOW + FORGOTTEN_S + 2)
    assert len(listed(database)) == 2, "one that was only frozen is back"


def test_how_long_the_dead_are_shown_is_a_setting(database: Database) -> None:
    report(database, ONE, NOW)
    with database.write() as tx:
        workers.report(tx, replace(TWO, seen_at=NOW + 50), forgotten_s=60.0)
    assert len(listed(database)) == 2
    with database.write() as tx:
        workers.report(tx, replace(TWO, seen_at=NOW + 61), forgotten_s=60.0)
    assert [each.name for each in listed(database)] == [TWO.name]
