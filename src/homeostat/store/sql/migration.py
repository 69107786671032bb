"""Bringing the schema to this version in two phases, so that programs of two versions can share it (CV5, ADR 0015).

Expanding only adds: the program of the version before runs on. Contracting takes away what that program needs and this
one does not; it waits until the other one runs nowhere. Contracting revisions have ids that begin with `c` and are a
branch of their own, beside the numbered line of expanding ones; so the heads that are stored in a database tell even a
program that does not know them what was done to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from homeostat.model.errors import HomeostatError

MIGRATIONS = Path(__file__).parents[1] / "migrations"
_CONTRACTING = "c"


class Phase(StrEnum):
    EXPAND = "expand"
    CONTRACT = "contract"
    ALL = "all"


class Outdated(HomeostatError):
    """The schema was contracted by a newer program: this one cannot use it any more."""


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """How far the schema is. heads — revisions stored in it; missing — expanding revisions without which this program
    cannot run; pending — contracting ones that may be applied when no older program runs; newer — expanding revisions
    of a newer program, beside which this one can run; outdating — contracting ones, which leave no room for it."""

    heads: tuple[str, ...]
    missing: tuple[str, ...]
    pending: tuple[str, ...]
    newer: tuple[str, ...]
    outdating: tuple[str, ...]

    @property
    def usable(self) -> bool:
        """Can this program run on it?"""
        return not self.missing and not self.outdating


def standing(connection: Connection) -> SchemaStatus:
    script = ScriptDirectory.from_config(alembic_config())
    heads = MigrationContext.configure(connection).get_current_heads()
    known = [head for head in heads if _knows(script, head)]
    done = {each for head in known for each in _line(script, head)}
    unknown = sorted(set(heads) - set(known))
    newer = tuple(each for each in unknown if not _contracts(each))
    wanted = sorted(revision.revision for revision in script.walk_revisions())
    return SchemaStatus(
        heads=tuple(sorted(heads)),
        missing=() if newer else tuple(each for each in wanted if each not in done and not _contracts(each)),
        pending=tuple(each for each in wanted if each not in done and _contracts(each)),
        newer=newer,
        outdating=tuple(each for each in unknown if _contracts(each)),
    )


def migrate(connection: Connection, phase: Phase = Phase.ALL) -> SchemaStatus:
    """Apply what is left of this phase; contracting begins with expanding. Gives how far the schema is then.

    Fails: Outdated when a newer program has taken away what this one needs.
    """
    found = standing(connection)
    if found.outdating:
        names = ", ".join(found.outdating)
        raise Outdated(f"a newer version has changed the schema for good ({names}): install that version here as well")
    config = alembic_config()
    config.attributes["connection"] = connection
    due = found.missing if phase is Phase.EXPAND else (*found.missing, *found.pending)
    for revision in due:
        command.upgrade(config, revision)
    connection.commit()
    return standing(connection)


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def _knows(script: ScriptDirectory, head: str) -> bool:
    try:
        return script.get_revision(head) is not None
    except CommandError:
        return False


def _line(script: ScriptDirectory, head: str) -> Iterator[str]:
    """A revision and all before it."""
    return (revision.revision for revision in script.iterate_revisions(head, "base"))


def _contracts(revision: str) -> bool:
    return revision.startswith(_CONTRACTING)
