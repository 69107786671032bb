"""The docstring of a package lists the modules of the package, all of them and no others."""

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/homeostat"
ITEM = re.compile(r"^- .*(?:\n  .*)*", re.MULTILINE)
"""An item of a list, with its further lines."""
NAME = re.compile(r"`([a-z_][a-z0-9_]*)`")
"""The name of a module; commands, classes and modules of other packages have blanks, capitals or dots."""


def listed(docstring: str) -> frozenset[str]:
    """Return the modules in the list of a docstring."""
    return frozenset(NAME.findall("\n".join(ITEM.findall(docstring))))


def modules(package: Path) -> frozenset[str]:
    """Return the modules and subpackages of a package."""
    files = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    return frozenset(files | {path.parent.name for path in package.glob("*/*.py")})


@cache
def lists() -> Mapping[str, frozenset[str]]:
    """Package, below the source -> modules in its list, for packages with a list."""
    docstrings = {
        path.parent: ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        for path in sorted(SOURCE.rglob("__init__.py"))
    }
    return {
        str(package.relative_to(SOURCE)): listed(docstring)
        for package, docstring in docstrings.items()
        if listed(docstring)
    }


@pytest.mark.parametrize("package", lists())
def test_a_package_lists_its_modules(package: str) -> None:
    there = modules(SOURCE / package)
    assert not there - lists()[package], "modules without a line in the docstring of the package"
    assert not lists()[package] - there, "names in the docstring of the package without a module"


def test_the_large_packages_have_lists() -> None:
    assert lists().keys() >= {"api", "cli", "clustering", "convergence", "model", "planner", "resources", "store"}


def test_names_of_modules_are_found_in_lists() -> None:
    text = "With `other`.\n\n- `one`, `two`: `Class`, `pkg.module`, `a command`\n  and `three`\n- Subject: `four`\n"
    assert listed(text) == {"one", "two", "three", "four"}
    assert listed("The stages:\n\n    first   -> `second`\n") == frozenset()
