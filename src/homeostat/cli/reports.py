"""Reports for operators: the checks of `doctor`, resource types, access rules."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from homeostat.cli import pictures
from homeostat.cli.doctor import examine
from homeostat.cli.errors import FAILED, OK
from homeostat.cli.output import console, write_json
from homeostat.doctor.checks import Check, Level
from homeostat.resources.registry import listed, register
from homeostat.store.database import Database
from homeostat.store.operation import workers

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


def doctor(
    db: Database, cloud: Path | None, more: Iterable[Check] = (), *, as_json: bool, acknowledge: bool = False
) -> int:
    """Print all checks.

    Args:
        cloud: Directory of the local cloud; None for other clouds.
        more: Further checks.
        acknowledge: Forget dead workers.

    Returns:
        Exit code; 1 when a check fails.
    """
    if acknowledge and not db.missing_file and db.schema_status().usable:
        with db.write() as tx:
            workers.forget_dead(tx, tx.now())
    checks = [*examine(db, cloud), *more]
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
    """Print rules as rows of name, check and description."""
    return _table(("rule", "allows", "to"), rows, as_json)


def policy_changes(rows: Sequence[tuple[str, str, str]], *, as_json: bool) -> int:
    """Print the changes of a policy file as rows of rule, default and the file's check."""
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
