"""What a local cloud has, read from its directory without a cloud being started there."""

from pathlib import Path

from homeostat.clouds.local.cloud import FAMILIES
from homeostat.clouds.local.tree import ThingRecord, Tree

Things = dict[str, dict[str, str]]
"""Kind -> handle of a thing -> token that it carries."""


def things(root: Path, known: str = "") -> Things:
    """Everything that somebody asked for; what the cloud made on its own account is left out. known — the identity
    that the cloud has, "" where nobody knows.

    Fails: Transient when it is not there, or a record in it cannot be read.
    """
    tree = Tree(root)
    tree.recognise(known)
    families = sorted((family(tree) for family in FAMILIES), key=lambda family: family.kind)
    return {
        family.kind: {family.handle(each): each.token for each in tree.all(family.kind).values() if not _own(each)}
        for family in families
    }


def _own(record: ThingRecord) -> bool:
    return bool(record.facts.get("own")) or record.is_built_in
