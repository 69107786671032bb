"""Migration of things that were made before things had a project: each gets the project that it belongs to."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from homeostat.clouds.local.tree import ThingRecord, Tree

Projects = Callable[[Collection[str]], Mapping[str, str]]
"""Handles -> handle -> project, for the known ones; "" -> the only project, if there is just one."""


def claim(tree: Tree, kinds: Sequence[str], projects: Projects) -> None:
    """Give the things without a project theirs; a thing whose project is not known stays invisible to all projects.

    Raises:
        Transient: The projects cannot be read, or the directory of the cloud is away.
    """
    with tree.lock():
        unclaimed = [
            each for kind in kinds for each in tree.all(kind).values() if not each.project and not each.is_built_in
        ]
        if not unclaimed:
            return
        known = projects([_handle(each) for each in unclaimed])
        found = {each.id: known.get(_handle(each), "") for each in unclaimed}
        for record in unclaimed:
            holder = _holder(record)
            project = found[record.id] or found.get(holder, "") or known.get("", "")
            if project:
                tree.write(replace(record, project=project))


def _handle(record: ThingRecord) -> str:
    return str(record.spec.get("name") or record.id) if record.kind == "keypair" else record.id


def _holder(record: ThingRecord) -> str:
    """Return the id of the thing that a thing was made for (a port) or from (a snapshot); "" for none."""
    user = record.facts.get("used_by") if record.facts.get("own") else None
    return str(user[1] if user else record.facts.get("source_id") or "")
