"""What a local cloud has, read from its directory without a cloud being started there."""

from pathlib import Path

from homeostat.clouds.local.cloud import FAMILIES
from homeostat.clouds.local.networks import BUILT_IN
from homeostat.clouds.local.servers import Servers
from homeostat.clouds.local.tree import Record, Tree

Things = dict[str, dict[str, str]]
"""Kind -> handle of a thing -> token that it carries."""


def things(root: Path, known: str = "") -> Things:
    """Everything that somebody asked for; what the cloud made on its own account is left out. known — the identity
    that the cloud has, "" where nobody knows.

    Fails: Transient when it is not there, or a record in it cannot be read.
    """
    kinds = sorted([Servers.kind, *(family.kind for family in FAMILIES)])
    tree = Tree(root)
    tree.recognise(known)
    return {kind: {id: each.token for id, each in tree.all(kind).items() if not _own(each)} for kind in kinds}


def _own(record: Record) -> bool:
    built_in = {f"built-in {name}" for name, _ in BUILT_IN}
    return bool(record.facts.get("own")) or record.token in built_in
