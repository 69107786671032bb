"""Names and ids of nodes, computed from a seed and the index of the node without randomness. Pure."""

import hashlib
import re
from string import ascii_letters, digits
from uuid import NAMESPACE_URL, uuid5

DEFAULT_FORMAT = "node-$8R"
RANDOM_LENGTH = 8
"""Characters of `$R` without a number."""
_PART = re.compile(r"\$(?P<width>\d{0,8})(?P<kind>[rRI])")
WIDTH_MAX = 64
"""Maximum of characters for one part of a format; a larger number is reduced to it."""
NAME_MAX = 255
NAME, IDENTITY, INDEX = "%node_name%", "%node_id%", "%node_index%"
"""Placeholders for the name, id and index of a node in the common definition of the nodes of a cluster."""


def node_name(form: str, seed: str, index: int) -> str:
    """Return the name of a node.

    Args:
        form: Format (`node.name.format` of a cluster's config): `$nR` becomes n letters and digits that look random,
            `$nr` the same in small letters, `$nI` the index with at least n digits. "" for the default format.
        seed: A text unique to the node's cluster, such as the id.
        index: Index of the node in its cluster.
    """
    parts = 0

    def replacement(match: re.Match[str]) -> str:
        nonlocal parts
        parts += 1
        width = min(int(match["width"]), WIDTH_MAX) if match["width"] else None
        if match["kind"] == "I":
            return str(index).rjust(width or 0, "0")
        letters = _letters(f"{seed}/{index}/{parts}", RANDOM_LENGTH if width is None else width)
        return letters.lower() if match["kind"] == "r" else letters

    return _PART.sub(replacement, form or DEFAULT_FORMAT)[:NAME_MAX]


def node_id(seed: str, index: int) -> str:
    """Return the id of a node: always the same UUID for a seed and an index."""
    return str(uuid5(NAMESPACE_URL, f"homeostat:node:{seed}/{index}"))


def replacements(form: str, seed: str, index: int) -> dict[str, str]:
    """Return the values of NAME, IDENTITY and INDEX for a node."""
    return {NAME: node_name(form, seed, index), IDENTITY: node_id(seed, index), INDEX: str(index)}


def _letters(seed: str, length: int) -> str:
    """Return letters and digits computed from a text, with a letter first, as in host names."""
    number = int.from_bytes(hashlib.shake_256(seed.encode()).digest(length + 16), "big")
    result = ""
    for alphabet in (ascii_letters, *[ascii_letters + digits] * (length - 1))[:length]:
        number, place = divmod(number, len(alphabet))
        result += alphabet[place]
    return result
