"""Bringing the schema to this version in two phases, so that programs of two versions can share it (CV5, ADR 0015).

The expanding phase only adds, so that programs of the previous version keep running. The contracting phase removes what
only they needed, once none of them runs any more. Contracting revisions have ids that begin with `c` and are a branch
of their own, beside the numbered line of expanding ones. So the heads that are stored in a database tell what was done
to it even to a program that does not know these revisions.
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
FIRST = "0100"
"""The initial revision. Those before it led to the first release, and are in no program any more."""
_CONTRACTING = "c"


class Phase(StrEnum):
    EXPAND = "expand"
    CONTRACT = "contract"
    ALL = "all"


class Outdated(HomeostatError):
    """This program cannot use the schema: a newer one has contracted it, or it is from before the first release."""


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The state of a schema's migration.

    Attributes:
        heads: The revisions that the database names as its newest.
        missing: Expanding revisions without which this program cannot run.
        pending: Contracting revisions that may be applied when no older program runs any more.
        newer: Expanding revisions of a newer program, with which this one can run.
        outdating: Contracting revisions of a newer program, with which this one cannot run.
        unreleased: Revisions from before the first release, which no program brings further.
    """

    heads: tuple[str, ...]
    missing: tuple[str, ...]
    pending: tuple[str, ...]
    newer: tuple[str, ...]
    outdating: tuple[str, ...]
    unreleased: tuple[str, ...]

    @property
    def usable(self) -> bool:
        """Whether this program can run on the schema."""
        return not (self.missing or self.outdating or self.unreleased)


@dataclass(frozen=True, slots=True)
class Migration:
    """A revision of the schema.

    Attributes:
        id: As it is stored in databases.
        description: What it brings; after an empty line, what older programs make of that.
        phase: EXPAND or CONTRACT.
    """

    id: str
    description: str
    phase: Phase


def migrations() -> list[Migration]:
    """Return all that this program knows, oldest first, those that contract last."""
    found = ScriptDirectory.from_config(alembic_config()).walk_revisions()
    return [
        Migration(
            each.revision, (each.longdoc or "").strip(), Phase.CONTRACT if _contracts(each.revision) else Phase.EXPAND
        )
        for each in sorted(found, key=lambda each: (_contracts(each.revision), each.revision))
    ]


def schema_status(connection: Connection) -> SchemaStatus:
    """Compare the revisions that the database names with those that this program knows."""
    script = ScriptDirectory.from_config(alembic_config())
    heads = MigrationContext.configure(connection).get_current_heads()
    known = [head for head in heads if _knows(script, head)]
    done = {each for head in known for each in _line(script, head)}
    unknown = sorted(set(heads) - set(known))
    newer = tuple(each for each in unknown if not _contracts(each) and each >= FIRST)
    unreleased = tuple(each for each in unknown if each < FIRST)
    wanted = sorted(revision.revision for revision in script.walk_revisions())
    return SchemaStatus(
        heads=tuple(sorted(heads)),
        # A newer expanding revision follows all those of this program on one line, so they are all applied, though its
        # history is unknown here.
        missing=()
        if newer or unreleased
        else tuple(each for each in wanted if each not in done and not _contracts(each)),
        pending=tuple(each for each in wanted if each not in done and _contracts(each)),
        newer=newer,
        outdating=tuple(each for each in unknown if _contracts(each)),
        unreleased=unreleased,
    )


def migrate(connection: Connection, phase: Phase = Phase.ALL) -> SchemaStatus:
    """Apply the revisions of a phase that have not been applied yet; contracting expands first.

    Returns:
        How far the schema has been migrated then.

    Raises:
        Outdated: A newer program has removed what this one needs, or the schema is from before the first release.
    """
    found = schema_status(connection)
    if found.unreleased:
        raise Outdated(
            f"the schema is from before version 0.1.0 ({', '.join(found.unreleased)}): the upgrade notes say which "
            "statements bring it here"
        )
    if found.outdating:
        names = ", ".join(found.outdating)
        raise Outdated(f"a newer version has changed the schema for good ({names}): install that version here as well")
    config = alembic_config()
    config.attributes["connection"] = connection
    due = found.missing if phase is Phase.EXPAND else (*found.missing, *found.pending)
    for revision in due:
        command.upgrade(config, revision)
    connection.commit()
    return schema_status(connection)


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def _knows(script: ScriptDirectory, head: str) -> bool:
    try:
        return script.get_revision(head) is not None
    except CommandError:  # Alembic fails for a revision without a file, which is one of a newer program
        return False


def _line(script: ScriptDirectory, head: str) -> Iterator[str]:
    """Return a revision and all before it."""
    return (revision.revision for revision in script.iterate_revisions(head, "base"))


def _contracts(revision: str) -> bool:
    return revision.startswith(_CONTRACTING)
