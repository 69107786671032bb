"""Inventory of a local cloud, read from its directory without starting the cloud."""

from pathlib import Path

from homeostat.clouds.local.cloud import FAMILIES
from homeostat.clouds.local.tree import ThingRecord, Tree

Records = dict[str, dict[str, ThingRecord]]
"""Kind -> handle of an object -> its record."""


def records(root: Path, known: str = "") -> Records:
    """Return the records of all requested objects, without objects that the cloud created by itself.

    Args:
        known: Required identity of the cloud; "" for any.

    Raises:
        Transient: The cloud is absent, or a record cannot be read.
    """
    tree = Tree(root)
    tree.recognise(known)
    families = sorted((family(tree) for family in FAMILIES), key=lambda family: family.kind)
    return {
        family.kind: {family.handle(record): record for record in tree.all(family.kind).values() if not _own(record)}
        for family in families
    }


def _own(record: ThingRecord) -> bool:
    return bool(record.facts.get("own")) or record.is_built_in
