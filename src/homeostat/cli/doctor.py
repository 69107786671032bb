"""Diagnoses the service from outside, through its database and its cloud's directory, and suggests remedies.

It changes nothing and needs no running service.
"""

from collections.abc import Iterator
from pathlib import Path

from homeostat.clouds.local import inventory, landlock
from homeostat.doctor.checks import Check, Level, named
from homeostat.doctor.database import examine_database
from homeostat.model.errors import Transient
from homeostat.resources.registry import of_kind, type_of
from homeostat.store.database import Database
from homeostat.store.operation import cloud_identities, health
from homeostat.store.shards import retained

REMEDY_OF_LOST = "a worker heals them within a minute, unless `homeostat explain STACK` shows what holds it back"


def examine(db: Database, cloud: Path | None) -> Iterator[Check]:
    """Return all checks, which run one after the other; without a usable database there is nothing further to check.

    Args:
        cloud: Directory of the local cloud; None for other clouds.
    """
    return examine_database(db, _local_cloud(db, cloud) if cloud is not None else ())


def _local_cloud(db: Database, root: Path) -> Iterator[Check]:
    """Compare the things of the local cloud with the rows.

    Both change during the check: things are read before and after the rows, and only differences that persist count.
    """
    with db.read() as tx:
        known = cloud_identities.identity(tx, "local")
    if not known and not root.exists():
        yield Check("local cloud", Level.OK, "nothing was created in it yet")
        return
    try:
        before = inventory.records(root, known)
    except Transient as error:
        yield Check("local cloud", Level.FAIL, f"it cannot be read: {error}", "restore what the message names")
        return
    guarded = "Landlock keeps user data" if landlock.version() else "without Landlock, nothing keeps user data"
    yield Check("local cloud", Level.OK, f"it is in {root}; {guarded} from the files of the service")
    with db.read() as tx:
        tokens = {kind: {handle: each.token for handle, each in found.items()} for kind, found in before.items()}
        candidates = {kind: health.unowned(tx, found) for kind, found in tokens.items()}
        retained_things = {kind: retained.among(tx, kind, handles) for kind, handles in candidates.items()}
        rows = health.steady(tx, {name for names in of_kind(before).values() for name in names})
    after = inventory.records(root, known)
    left, retained_lines = [], []
    for kind, handles in candidates.items():
        why = {each.handle: f"{each.name} of stack {each.stack}: {each.reason}" for each in retained_things[kind]}
        for handle in sorted(handles & set(after[kind])):
            if handle in why:
                retained_lines.append(f"{kind} {handle} ({why[handle]})")
            else:
                left.append(f"{kind} {handle}")
    yield Check("things that were kept", Level.OK, named(retained_lines) or "none")
    remedy = "left by a database that was lost or set back: see `homeostat untracked`, which adopts or deletes it"
    if left:
        yield Check("things without rows", Level.WARN, named(left), remedy)
    else:
        yield Check("things without rows", Level.OK, "none")
    kinds = {row.type: type_of(row.type).kind for row in rows}
    lost = [f"{row.name} of stack {row.stack_id}" for row in rows if row.handle not in after[kinds[row.type]]]
    if lost:
        yield Check("rows without things", Level.WARN, named(lost), REMEDY_OF_LOST)
    else:
        yield Check("rows without things", Level.OK, "none")
