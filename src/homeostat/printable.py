"""Makes text of users and clouds safe to print, for the commands `homeostat` and `openstack`, and for logs.

A terminal interprets control characters: an output of a stack could write the clipboard, or rewrite earlier lines.
"""

import re
from typing import Any

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of text
    "\u2028\u2029\ud800-\udfff]"  # line separators, and halves of pairs, which no encoding has
)


def printable(text: str) -> str:
    r"""Return the text with control characters as escapes (`\x1b`, `\u202e`); tabs and newlines stay."""
    return text if text.isascii() and text.isprintable() else _CONTROL.sub(_escape, text)


def printable_line(text: str) -> str:
    """Return the text as a single line: newlines become escapes, too."""
    return printable(text).replace("\n", "\\n")


def printable_values(value: Any) -> Any:
    """Return plain data with all texts made printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable_values(key): printable_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [printable_values(item) for item in value]
    return value


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
