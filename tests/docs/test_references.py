"""Every reference in code and docs resolves: requirements, decisions, invariants."""

import ast
import re
from collections.abc import Iterator, Set
from functools import cache
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
SOURCES += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "pyproject.toml"]
INVARIANTS = len(
    re.findall(
        r"^\d+\. ", (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Invariants")[1].split("\n## ")[0], re.M
    )
)
DECISIONS = {path.name[:4] for path in (DOCS / "adr").glob("0*.md")}


def found(pattern: str) -> Iterator[tuple[str, str]]:
    """Place and group of each match in the sources."""
    for path in SOURCES:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            for match in re.finditer(pattern, line):
                yield f"{path.relative_to(ROOT)}:{number}", match[1]


def test_requirements_are_stated() -> None:
    assert [(place, id) for place, id in found(r"\b((?:CV|MU|RU|HP|HS|LK)\d+)\b") if id not in REQUIREMENTS] == []


@pytest.mark.parametrize("id", REQUIREMENTS)
def test_what_is_built_is_shown(id: str) -> None:
    assert bool(shown_by()[id]) is not REQUIREMENTS[id].get("planned", False)


def test_files_that_pages_name_exist() -> None:
    folders = "src|tests|docs|scripts|packaging|bench|conformance|examples"
    named = [(place, path) for place, path in found(rf"`((?:{folders})/[\w./-]+)`") if ".md:" in place]
    assert [(place, path) for place, path in named if not (ROOT / path).exists()] == []


def test_find_your_way_lists_few_files_for_a_change() -> None:
    page = (DOCS / "explanation/find-your-way.md").read_text("utf-8")
    for change in page.split("\n## ")[1:]:
        rows = re.findall(r"^\| `", change, re.MULTILINE)
        assert 1 <= len(rows) <= 8, change.splitlines()[0]


def test_decisions_exist() -> None:
    assert [(place, number) for place, number in found(r"\bADR (\d{4})\b") if number not in DECISIONS] == []


def test_invariants_exist() -> None:
    assert [(place, number) for place, number in found(r"\binvariant (\d+)\b") if int(number) > INVARIANTS] == []


# -- modules -----------------------------------------------------------------------------------------------------------


def file_of(module: str) -> Path | None:
    path = ROOT / "src" / module.replace(".", "/")
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), None)


@cache
def names_in(path: Path) -> Set[str]:
    """Names at the top of a module."""
    names = set()
    for each in ast.walk(ast.parse(path.read_text("utf-8"))):
        match each:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(each.name)
            case ast.Name(ctx=ast.Store()):
                names.add(each.id)
            case ast.alias():
                names.add((each.asname or each.name).partition(".")[0])
    return names


def exists(dotted: str) -> bool:
    """Whether there is such a module, or such a name in a module. What begins with no package of ours counts too."""
    package, *parts = re.split("[.:]", dotted)
    if file_of(f"{package}.{parts[0]}") is None:
        return True
    module = package
    while parts and file_of(f"{module}.{parts[0]}") is not None:
        module = f"{module}.{parts.pop(0)}"
    path = file_of(module)
    return path is not None and (not parts or parts[0] in names_in(path))


def test_modules_and_their_names_exist() -> None:
    """Also in texts: programs of tests, names of loggers, pages."""
    assert [(place, name) for place, name in found(r"\b(homeostat(?:[.:][A-Za-z_]\w*)+)") if not exists(name)] == []
    imported = [
        (place, *line.split(" import ")) for place, line in found(r"^\s*from (homeostat[\w.]* import [\w, ]+)$")
    ]
    names = [(place, f"{module}.{name.split()[0]}") for place, module, names in imported for name in names.split(",")]
    assert [(place, name) for place, name in names if not exists(name)] == []


def test_modules_that_prose_names_by_their_room_exist() -> None:
    """Such as `planner.members.rollout_move`: docstrings and pages leave the name of the package out."""
    rooms = "|".join(path.name for path in (ROOT / "src/homeostat").iterdir() if (path / "__init__.py").is_file())
    no_modules = {"clouds.yaml", "resources.disk.resource_id"}
    named = [(place, name) for place, name in found(rf"`((?:{rooms})(?:\.[A-Za-z_]\w*)+)`") if name not in no_modules]
    assert len(named) > 100
    assert [(place, name) for place, name in named if not exists(f"homeostat.{name}")] == []
