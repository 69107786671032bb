"""Diagnoses the service through its database and the local cloud's directory, and suggests remedies.

Read-only; works without a running service.
"""

from collections.abc import Iterator
from pathlib import Path

from homeostat.cli import untracked
from homeostat.clouds.local import landlock
from homeostat.doctor.checks import Check, Level, named
from homeostat.doctor.database import examine_database
from homeostat.model.errors import Transient
from homeostat.store.database import Database
from homeostat.store.operation import cloud_identities

REMEDY_OF_LOST = "a worker heals them within a minute, unless `homeostat explain STACK` shows what holds it back"


def examine(db: Database, cloud: Path | None) -> Iterator[Check]:
    """Run all checks lazily. Without a usable database, the following checks are left out.

    Args:
        cloud: Directory of the local cloud; None for other clouds.
    """
    return examine_database(db, _local_cloud(db, cloud) if cloud is not None else ())


def _local_cloud(db: Database, root: Path) -> Iterator[Check]:
    """Compare the things of the local cloud with the rows."""
    with db.read() as tx:
        known = cloud_identities.identity(tx, "local")
    if not known and not root.exists():
        yield Check("local cloud", Level.OK, "nothing was created in it yet")
        return
    try:
        compared = untracked.compare(db, root, known)
    except Transient as error:
        yield Check("local cloud", Level.FAIL, f"it cannot be read: {error}", "restore what the message names")
        return
    guarded = "Landlock keeps user data" if landlock.version() else "without Landlock, nothing keeps user data"
    yield Check("local cloud", Level.OK, f"it is in {root}; {guarded} from the files of the service")
    retained_things = [f"{thing.kind} {thing.id} ({thing.kept})" for thing in compared.untracked if thing.kept]
    yield Check("things that were kept", Level.OK, named(retained_things) or "none")
    left = [f"{thing.kind} {thing.id}" for thing in compared.untracked if not thing.kept]
    remedy = "left by a database that was lost or set back: see `homeostat untracked`, which adopts or deletes it"
    if left:
        yield Check("things without rows", Level.WARN, named(left), remedy)
    else:
        yield Check("things without rows", Level.OK, "none")
    lost = [f"{row.name} of stack {row.stack_id}" for row in compared.lost]
    if lost:
        yield Check("rows without things", Level.WARN, named(lost), REMEDY_OF_LOST)
    else:
        yield Check("rows without things", Level.OK, "none")
