"""Reading the documentation as a reader does: files to save, commands to type, and what they print.

A block after "Save this as `NAME`:" is a file. In a block of kind `console`, lines that begin with `$ ` are commands,
the lines below are what they print; `…` stands for any text, on a line of its own for any number of lines.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
ANY = "…"
NEEDS_OPENSTACK = ("howto/openstack.md", "tutorial/on-an-openstack.md")
"""Pages whose commands `tests/openstack` types."""
_FILE = re.compile(r"[Ss]ave this as `([^`]+)`:\n\n```\w*\n(.*?)```", re.DOTALL)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(slots=True)
class Command:
    """One command and the lines it should print."""

    text: str
    expected: list[str] = field(default_factory=list)

    def explains(self, printed: str) -> bool:
        """Is this what was to be expected?"""
        return bool(re.fullmatch(self._pattern(), "".join(f"{line.rstrip()}\n" for line in printed.splitlines())))

    def _pattern(self) -> str:
        lines = []
        for line in self.expected:
            if line.strip() == ANY:
                lines.append(r"(?:.*\n)*?")
            else:
                parts = (re.sub(r"(\\ )+", r" +", re.escape(part)) for part in line.rstrip().split(ANY))
                lines.append(".*".join(parts) + r"\n")
        return "".join(lines)


def files(page: Path) -> dict[str, str]:
    return dict(_FILE.findall(page.read_text(encoding="utf-8")))


def commands(page: Path) -> list[Command]:
    found: list[Command] = []
    for kind, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "console":
            for line in block.splitlines():
                if line.startswith("$ "):
                    found.append(Command(line[2:]))
                else:
                    found[-1].expected.append(line)
    return found


def templates(page: Path) -> Iterator[str]:
    """All blocks that are templates."""
    for kind, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "yaml" and re.search(r"^heat_template_version", block, re.MULTILINE):
            yield block
