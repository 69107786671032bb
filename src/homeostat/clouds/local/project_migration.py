"""Migration of objects from before projects existed: each gets the project of its stack."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from homeostat.clouds.local.tree import ThingRecord, Tree

Projects = Callable[[Collection[str]], Mapping[str, str]]
"""Handles -> handle -> project, for the known ones; "" -> the only project, if there is just one."""


def claim(tree: Tree, kinds: Sequence[str], projects: Projects) -> None:
    """Assign projects to objects without one; an object of unknown project stays invisible to all projects.

    Raises:
        Transient: The projects cannot be read, or the directory of the cloud is away.
    """
    with tree.lock():
        unclaimed = [
            record
            for kind in kinds
            for record in tree.all(kind).values()
            if not record.project and not record.is_built_in
        ]
        if not unclaimed:
            return
        known = projects([_handle(record) for record in unclaimed])
        by_id = {record.id: known.get(_handle(record), "") for record in unclaimed}
        for record in unclaimed:
            holder = _holder(record)
            project = by_id[record.id] or by_id.get(holder, "") or known.get("", "")
            if project:
                tree.write(replace(record, project=project))


def _handle(record: ThingRecord) -> str:
    return str(record.spec.get("name") or record.id) if record.kind == "keypair" else record.id


def _holder(record: ThingRecord) -> str:
    """Return the id of the object that an object was created for (a port) or from (a snapshot); "" for none."""
    user = record.facts.get("used_by") if record.facts.get("own") else None
    return str(user[1] if user else record.facts.get("source_id") or "")
