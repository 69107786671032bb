"""Commands for operators. They work on the database, whether the service runs or not."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.text import Text
from sqlalchemy.exc import SQLAlchemyError

from homeostat.cli import pictures
from homeostat.cli.commands import console
from homeostat.cli.doctor import Check, Level, examine
from homeostat.cli.errors import FAILED, OK, Problem
from homeostat.cli.follow import write_json
from homeostat.model.errors import Transient
from homeostat.resources.registry import listed, register
from homeostat.store.database import Database
from homeostat.store.operation import purge as purging
from homeostat.store.operation import workers
from homeostat.store.operation.purge import PurgeCounts, Rules
from homeostat.store.sql.migration import Outdated, Phase

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


def doctor(db: Database, cloud: Path | None, *, as_json: bool, acknowledge: bool = False) -> int:
    """Print all checks.

    Args:
        acknowledge: Forget dead workers.

    Returns:
        Exit code; 1 when a check fails.
    """
    if acknowledge and not db.missing_file and db.schema_status().usable:
        with db.write() as tx:
            workers.forget_dead(tx, db.now_of(tx))
    checks = list(examine(db, cloud))
    healthy = all(check.level is not Level.FAIL for check in checks)
    if as_json:
        write_json({"healthy": healthy, "checks": [asdict(check) for check in checks]})
    else:
        _print(checks)
    return OK if healthy else FAILED


def types(name_regex: str, *, as_json: bool) -> int:
    """Print the resource types that are not hidden, and the origin of each.

    Raises:
        Rejected: The regular expression could take too long.
    """
    known = register()
    rows = [(name, known.origins[name], known.types[name].support.status.value) for name in listed(name_regex)]
    if as_json:
        write_json([{"resource_type": name, "origin": origin, "support_status": word} for name, origin, word in rows])
    else:
        console().print(pictures.table(("resource type", "from", "support"), [list(row) for row in rows]))
    return OK


def policy_rules(rows: Sequence[tuple[str, str, str]], *, as_json: bool) -> int:
    """Print rules: name, whom it allows, description."""
    return _table(("rule", "allows", "to"), rows, as_json)


def policy_changes(rows: Sequence[tuple[str, str, str]], *, as_json: bool) -> int:
    """Print what a policy file changes: rule, its default, the file's check."""
    return _table(("rule", "default", "here"), rows, as_json)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], as_json: bool) -> int:
    if as_json:
        write_json([dict(zip(head, row, strict=True)) for row in rows])
    else:
        console().print(pictures.table(head, [list(row) for row in rows]))
    return OK


def _print(checks: Sequence[Check]) -> None:
    out = console()
    for check in checks:
        level = Text(f"{check.level:4}  ", _STYLES[check.level])
        out.print(level.append(f"{check.name}: {check.found}", "default"), soft_wrap=True)
        if check.remedy:
            out.print(Text(f"      → {check.remedy}", "dim"), soft_wrap=True)


def migrate(db: Database, phase: Phase, *, as_json: bool) -> int:
    """Migrate the schema.

    Raises:
        Problem: An older program would break, or a newer one has changed the schema irreversibly.
    """
    try:
        if phase is Phase.CONTRACT and db.schema_status().missing:
            raise Problem("the schema lacks what this version needs: run `homeostat migrate --phase expand` first")
        done = db.migrate(Phase.EXPAND)
        if phase is not Phase.EXPAND and done.pending:
            _refuse_beside_others(db)
            done = db.migrate(phase)
    except (Outdated, Transient, SQLAlchemyError) as error:
        raise Problem(f"the schema was not changed, look at --database: {error}") from error
    if as_json:
        write_json(asdict(done))
    else:
        later = f"; left for later: {', '.join(done.pending)}" if done.pending else ""
        console().print(f"The schema is at {', '.join(done.heads)}{later}.")
    return OK


def _refuse_beside_others(db: Database) -> None:
    with db.read() as tx:
        others = workers.of_other_versions(tx, db.now_of(tx))
    if others:
        raise Problem(
            f"these workers are not of version {workers.VERSION} and may need what would be taken away: "
            f"{', '.join(others)}; stop them first (--phase expand takes nothing away)"
        )


def purge(db: Database, rules: Rules, *, dry_run: bool, as_json: bool) -> int:
    """Remove old rows, or print what would be removed. Raise Problem when the database cannot be used."""
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
        raise Problem(f"the purge stopped, and can be run again: {error}") from error
