"""Names and ids of nodes: functions of a seed and the index of the node, so they never have to be drawn. Pure."""

import hashlib
import re
from string import ascii_letters, digits
from uuid import NAMESPACE_URL, uuid5

DEFAULT_FORMAT = "node-$8R"
RANDOM_LENGTH = 8
"""Characters of `$R` without a number."""
_PART = re.compile(r"\$(?P<width>\d{0,8})(?P<kind>[rRI])")
WIDTH_MAX = 64
"""Most characters that one part of a format makes; a larger number counts as this one."""
NAME_MAX = 255
NAME, IDENTITY, INDEX = "%node_name%", "%node_id%", "%node_index%"
"""What stands for the name, the id and the index of a node in the definition that all nodes of a cluster have."""


def node_name(form: str, seed: str, index: int) -> str:
    """Return the name of a node.

    Args:
        form: Format (`node.name.format` of a cluster's config): `$nR` becomes n letters and digits that look random,
            `$nr` the same in small letters, `$nI` the index with at least n digits. "" for the default format.
        seed: Text that is the node's cluster's own, such as its id.
        index: Index of the node in its cluster.
    """
    parts = 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal parts
        parts += 1
        width = min(int(found["width"]), WIDTH_MAX) if found["width"] else None
        if found["kind"] == "I":
            return str(index).rjust(width or 0, "0")
        drawn = _letters(f"{seed}/{index}/{parts}", RANDOM_LENGTH if width is None else width)
        return drawn.lower() if found["kind"] == "r" else drawn

    return _PART.sub(replaced, form or DEFAULT_FORMAT)[:NAME_MAX]


def node_id(seed: str, index: int) -> str:
    """Return the id of a node: a UUID that the same seed and index always give."""
    return str(uuid5(NAMESPACE_URL, f"homeostat:node:{seed}/{index}"))


def replacements(form: str, seed: str, index: int) -> dict[str, str]:
    """Return what NAME, IDENTITY and INDEX become for one node."""
    return {NAME: node_name(form, seed, index), IDENTITY: node_id(seed, index), INDEX: str(index)}


def _letters(seed: str, length: int) -> str:
    """Return letters and digits made from a text; the first is a letter, as host names want it."""
    number = int.from_bytes(hashlib.shake_256(seed.encode()).digest(length + 16), "big")
    result = ""
    for alphabet in (ascii_letters, *[ascii_letters + digits] * (length - 1))[:length]:
        number, place = divmod(number, len(alphabet))
        result += alphabet[place]
    return result
