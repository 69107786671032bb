"""Inventory of a local cloud, read from its directory without starting the cloud."""

from pathlib import Path

from homeostat.clouds.local.cloud import FAMILIES
from homeostat.clouds.local.tree import ThingRecord, Tree

Records = dict[str, dict[str, ThingRecord]]
"""Kind -> handle of a thing -> its record."""


def records(root: Path, known: str = "") -> Records:
    """Return everything that was requested; things that the cloud made by itself are left out.

    Args:
        root: Directory of the cloud.
        known: Identity that the cloud must have; "" for any.

    Raises:
        Transient: The cloud is not there, or a record cannot be read.
    """
    tree = Tree(root)
    tree.recognise(known)
    families = sorted((family(tree) for family in FAMILIES), key=lambda family: family.kind)
    return {
        family.kind: {family.handle(each): each for each in tree.all(family.kind).values() if not _own(each)}
        for family in families
    }


def _own(record: ThingRecord) -> bool:
    return bool(record.facts.get("own")) or record.is_built_in
