"""Migrate the schema to this version in two phases, so that programs of two versions can share it (CV5, ADR 0015).

The expanding phase only adds, so that programs of the previous version keep running. The contracting phase removes the
leftovers of the previous version, once none of its programs runs any more. Contracting revisions have ids that begin
with `c` and form a separate branch, parallel to the numbered line of expanding revisions. So the heads stored in a
database describe its state even to a program that does not know these revisions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from homeostat.model.errors import HomeostatError

if TYPE_CHECKING:  # only a migration needs Alembic: loading it takes a tenth of a start
    from alembic.config import Config
    from alembic.script import ScriptDirectory

MIGRATIONS = Path(__file__).parents[1] / "migrations"
FIRST = "0100"
"""The initial revision; older revisions led to the first release, and are in no program any more."""
_CONTRACTING = "c"


class Phase(StrEnum):
    EXPAND = "expand"
    CONTRACT = "contract"
    ALL = "all"


class Outdated(HomeostatError):
    """This program cannot use the schema: a newer program has contracted it, or it predates the first release."""


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The state of a schema's migration.

    Attributes:
        heads: The revisions that the database names as its newest.
        missing: Expanding revisions without which this program cannot run.
        pending: Contracting revisions that may be applied when no older program runs any more.
        newer: Expanding revisions of a newer program, compatible with this program.
        outdating: Contracting revisions of a newer program, incompatible with this program.
        unreleased: Revisions from before the first release, which no program migrates.
    """

    heads: tuple[str, ...]
    missing: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()
    outdating: tuple[str, ...] = ()
    unreleased: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether this program can run on the schema."""
        return not (self.missing or self.outdating or self.unreleased)


@dataclass(frozen=True, slots=True)
class Migration:
    """A revision of the schema.

    Attributes:
        description: The changes; after an empty line, their effect on older programs.
        phase: EXPAND or CONTRACT.
    """

    id: str
    description: str
    phase: Phase


def migrations() -> list[Migration]:
    """Return all revisions that this program knows, oldest first, contracting ones last."""
    revisions = _scripts().walk_revisions()
    return [
        Migration(
            script.revision,
            (script.longdoc or "").strip(),
            Phase.CONTRACT if _contracts(script.revision) else Phase.EXPAND,
        )
        for script in sorted(revisions, key=lambda script: (_contracts(script.revision), script.revision))
    ]


def schema_status(connection: Connection) -> SchemaStatus:
    """Compare the revisions named by the database with the revisions of this program."""
    heads = _heads(connection)
    if heads and set(heads) == _newest():
        return SchemaStatus(heads)
    script = _scripts()
    known = [head for head in heads if _knows(script, head)]
    done = {revision for head in known for revision in _line(script, head)}
    unknown = sorted(set(heads) - set(known))
    newer = tuple(head for head in unknown if not _contracts(head) and head >= FIRST)
    unreleased = tuple(head for head in unknown if head < FIRST)
    wanted = sorted(revision.revision for revision in script.walk_revisions())
    return SchemaStatus(
        heads=heads,
        # A newer expanding revision follows all expanding revisions of this program on one line, so these are applied,
        # though the newer revision's history is unknown here.
        missing=()
        if newer or unreleased
        else tuple(revision for revision in wanted if revision not in done and not _contracts(revision)),
        pending=tuple(revision for revision in wanted if revision not in done and _contracts(revision)),
        newer=newer,
        outdating=tuple(head for head in unknown if _contracts(head)),
        unreleased=unreleased,
    )


def migrate(connection: Connection, phase: Phase = Phase.ALL) -> SchemaStatus:
    """Apply the missing revisions of a phase; contracting expands first.

    Returns:
        The state afterwards.

    Raises:
        Outdated: A newer program has removed parts that this program needs, or the schema predates the first release.
    """
    status = schema_status(connection)
    if status.unreleased:
        raise Outdated(
            f"the schema is from before version 0.1.0 ({', '.join(status.unreleased)}): the upgrade notes say which "
            "statements bring it here"
        )
    if status.outdating:
        names = ", ".join(status.outdating)
        raise Outdated(f"a newer version has changed the schema for good ({names}): install that version here as well")
    from alembic import command

    config = alembic_config()
    config.attributes["connection"] = connection
    due = status.missing if phase is Phase.EXPAND else (*status.missing, *status.pending)
    for revision in due:
        command.upgrade(config, revision)
    connection.commit()
    return schema_status(connection)


def alembic_config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def _scripts() -> "ScriptDirectory":
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(alembic_config())


def _heads(connection: Connection) -> tuple[str, ...]:
    """Return the newest revisions in the database, which Alembic has stored."""
    if not inspect(connection).has_table("alembic_version"):
        return ()
    return tuple(sorted(connection.scalars(text("SELECT version_num FROM alembic_version"))))


def _newest() -> set[str]:
    """Return the newest revision of each phase, by the names of the files."""
    names = [file.name.partition("_")[0] for file in (MIGRATIONS / "versions").glob("*_*.py")]
    phases = ([name for name in names if _contracts(name) is contracts] for contracts in (False, True))
    return {max(revisions) for revisions in phases if revisions}


def _knows(script: "ScriptDirectory", head: str) -> bool:
    from alembic.util import CommandError

    try:
        return script.get_revision(head) is not None
    except CommandError:  # Alembic fails for a revision without a file, which belongs to a newer program
        return False


def _line(script: "ScriptDirectory", head: str) -> Iterator[str]:
    """Return a revision and all its predecessors."""
    return (revision.revision for revision in script.iterate_revisions(head, "base"))


def _contracts(revision: str) -> bool:
    return revision.startswith(_CONTRACTING)
