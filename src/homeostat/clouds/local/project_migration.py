"""Things that were made before things had a project get the one that they belong to."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from homeostat.clouds.local.tree import ThingRecord, Tree

Projects = Callable[[Collection[str]], Mapping[str, str]]
"""Handles -> the project of each, for those that are known; "" for the only project, where there is one only."""


def claim(tree: Tree, kinds: Sequence[str], projects: Projects) -> None:
    """What nobody is known to have stays nobody's, and no project sees it. Fails: Transient."""
    with tree.lock():
        nobodys = [
            each for kind in kinds for each in tree.all(kind).values() if not each.project and not each.is_built_in
        ]
        if not nobodys:
            return
        known = projects([_handle(each) for each in nobodys])
        found = {each.id: known.get(_handle(each), "") for each in nobodys}
        for record in nobodys:
            holder = _holder(record)
            project = found[record.id] or found.get(holder, "") or known.get("", "")
            if project:
                tree.write(replace(record, project=project))


def _handle(record: ThingRecord) -> str:
    return str(record.spec.get("name") or record.id) if record.kind == "keypair" else record.id


def _holder(record: ThingRecord) -> str:
    """The thing that it was made for, or of."""
    user = record.facts.get("used_by") if record.facts.get("own") else None
    return str(user[1] if user else record.facts.get("source_id") or "")
