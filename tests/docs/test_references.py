"""Every reference in code and docs resolves: requirements, decisions, invariants."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.requirements_page import REQUIREMENTS, shown_by

from tests.docs.pages import DOCS

ROOT = DOCS.parent
SOURCES = [
    path
    for folder in ("src", "tests", "bench", "docs", "conformance")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".md", ".yaml") and path != Path(__file__)
]
SOURCES += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
INVARIANTS = len(re.findall(r"^\d+\. ", (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Invariants")[1], re.M))
DECISIONS = {path.name[:4] for path in (DOCS / "adr").glob("0*.md")}


def found(pattern: str) -> Iterator[tuple[str, str]]:
    """Place and group of each match in the sources."""
    for path in SOURCES:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            for match in re.finditer(pattern, line):
                yield f"{path.relative_to(ROOT)}:{number}", match[1]


def test_requirements_are_stated() -> None:
    assert [(place, id) for place, id in found(r"\b((?:CV|MU|RU|HP|LK)\d+)\b") if id not in REQUIREMENTS] == []


@pytest.mark.parametrize("id", REQUIREMENTS)
def test_what_is_built_is_shown(id: str) -> None:
    assert bool(shown_by()[id]) is not REQUIREMENTS[id].get("planned", False)


def test_find_your_way_names_files_that_exist() -> None:
    page = (DOCS / "explanation/find-your-way.md").read_text("utf-8")
    paths = {
        path for path in re.findall(r"`([\w./-]+/[\w./-]+)`", page) if path.split("/")[0] in ("src", "tests", "docs")
    }
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    for change in page.split("\n## ")[1:]:
        rows = re.findall(r"^\| `", change, re.MULTILINE)
        assert 1 <= len(rows) <= 8, change.splitlines()[0]


def test_decisions_exist() -> None:
    assert [(place, number) for place, number in found(r"\bADR (\d{4})\b") if number not in DECISIONS] == []


def test_invariants_exist() -> None:
    assert [(place, number) for place, number in found(r"\binvariant (\d+)\b") if int(number) > INVARIANTS] == []
