"""Maintenance of the database, with or without a running service: migrating its schema, purging old rows."""

from dataclasses import asdict

from sqlalchemy.exc import SQLAlchemyError

from homeostat.cli import pictures
from homeostat.cli.errors import OK, Problem
from homeostat.cli.output import console, write_json
from homeostat.model.errors import Transient, in_detail
from homeostat.store.database import Database
from homeostat.store.operation import purge as purging
from homeostat.store.operation import workers
from homeostat.store.operation.purge import PurgeCounts, Rules
from homeostat.store.sql.migration import Outdated, Phase


def migrate(db: Database, phase: Phase, *, as_json: bool) -> int:
    """Migrate the schema.

    Raises:
        Problem: An older program would break, or a newer version has changed the schema irreversibly.
    """
    try:
        if phase is Phase.CONTRACT and db.schema_status().missing:
            raise Problem("the schema lacks what this version needs: run `homeostat migrate --phase expand` first")
        done = db.migrate(Phase.EXPAND)
        if phase is not Phase.EXPAND and done.pending:
            _check_workers(db)
            done = db.migrate(phase)
    except (Outdated, Transient, SQLAlchemyError) as error:
        raise Problem(f"the schema was not changed, look at --database: {in_detail(error)}") from error
    if as_json:
        write_json(asdict(done))
    else:
        later = f"; left for later: {', '.join(done.pending)}" if done.pending else ""
        console().print(f"The schema is at {', '.join(done.heads)}{later}.")
    return OK


def _check_workers(db: Database) -> None:
    """Raise Problem if workers of other versions run, which may need columns that the migration removes."""
    with db.read() as tx:
        others = workers.of_other_versions(tx, tx.now())
    if others:
        raise Problem(
            f"these workers are not of version {workers.VERSION} and may need what would be taken away: "
            f"{', '.join(others)}; stop them first (--phase expand takes nothing away)"
        )


def purge(db: Database, rules: Rules, *, dry_run: bool, as_json: bool) -> int:
    """Remove old rows, or count them (`dry_run`). Raise Problem when the database cannot be used."""
    removed = _purge(db, rules, dry_run)
    if as_json:
        write_json({"dry_run": dry_run, "removed": asdict(removed)})
    else:
        rows = [[name, str(count)] for name, count in asdict(removed).items()]
        console().print(pictures.table(("would be removed" if dry_run else "removed", "rows"), rows))
    return OK


def _purge(db: Database, rules: Rules, dry_run: bool) -> PurgeCounts:
    if db.missing_file:
        raise Problem(f"there is no database {db.missing_file}: name it with --database, or its --state-dir")
    try:
        if not db.schema_status().usable:
            raise Problem("the database is of another version: `homeostat doctor` says more")
        if not dry_run:
            return purging.purge(db, rules)
        with db.read() as tx:
            return purging.would_remove(tx, rules)
    except (Transient, SQLAlchemyError) as error:
        raise Problem(f"the purge stopped, and can be run again: {in_detail(error)}") from error
