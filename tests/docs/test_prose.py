"""`scripts/prose.py` sees the faults that it is for."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    spec = spec_from_file_location("prose", Path(__file__).parents[2] / "scripts/prose.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LONG = "it is that of the other one, which those of it have"


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ('"""Rows of stacks."""\n', []),
        ('"""What a stack has."""\n', ["1: the summary says 'what': name the thing"]),
        ('"""Rows of stacks.\n\nThey say what a stack has.\n"""\n', []),
        ('"""The column `what` of stacks."""\n', []),
        ('class A:\n    a = 1\n    """What it is."""\n', ["3: the summary says 'what': name the thing"]),
        (f'"""Rows."""\n# {LONG}\n', ["2: 6 pronouns in 12 words: name the things"]),
        ("for each in ():\n    pass\n", ["1: the variable each is no noun"]),
        ("def f(found: int) -> None: ...\n", ["1: the variable found is no noun"]),
        ("rows = [each for each in ()]\n", ["1: the variable each is no noun"]),
        ("print(each)\n", []),
        ("class Row:\n    made: str\n", []),
    ],
)
def test_a_fault_is_found_with_its_line(prose: ModuleType, source: str, faults: list[str]) -> None:
    assert [f"{line}: {fault}" for line, fault in sorted(prose.problems(source))] == faults


def test_the_rates_are_of_folders(prose: ModuleType) -> None:
    sources = {"src/a/b/c.py": '"""What is it?"""', "src/a/b/d.py": "# two words", "src/a/e/f.py": ""}
    assert prose.rates(sources) == {"src/a/b": (5, 200.0, 200.0), "src/a/e": (0, 0.0, 0.0)}


def test_the_rates_of_pages_leave_out_code_and_generated_pages(prose: ModuleType) -> None:
    page = "# What it is\n\n```console\n$ what\n```\n\nSee [`what`](what.md)."
    sources = {"docs/a/b.md": page, "docs/a/c.md": "<!-- Written by a program -->\nwhat"}
    assert prose.rates(sources) == {"docs/a": (4, 250.0, 250.0)}


def test_pages_have_limits_of_their_own(prose: ModuleType) -> None:
    assert prose.limits("docs/adr") != prose.limits("src/homeostat/store")
