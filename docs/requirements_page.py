"""The page of requirements: what is promised, from `requirements.yaml`; which tests show it, from their markers."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from docs.type_pages import row

DOCS = Path(__file__).parent
TESTS = DOCS.parent / "tests"
SECTIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = yaml.safe_load(
    (DOCS / "requirements.yaml").read_text("utf-8")
)
REQUIREMENTS = {id: entry for section in SECTIONS.values() for id, entry in section.items()}
HEAD = """\
# Requirements

What Homeostat promises, and which tests show it. The ids stand in tests (`@pytest.mark.shows("CV4")`), in decisions and
in comments: CV for convergence, MU for marking unhealthy, RU for rolling updates of metadata, HP for health policies,
HS for what a complete one does, sentence by sentence of its first design, LK for locks. A requirement without tests is
planned, and not built yet.
""".splitlines()


def page() -> str:
    """Return the text of the page."""
    shown = shown_by()
    lines = list(HEAD)
    for name, section in SECTIONS.items():
        lines += ["", f"## {name}", "", "| id | requirement | shown by |", "|---|---|---|"]
        lines += [row(id, entry["says"], _evidence(entry, shown[id])) for id, entry in section.items()]
    return "\n".join([*lines, ""])


def _evidence(entry: Mapping[str, Any], tests: Sequence[str]) -> str:
    if entry.get("planned"):
        return "*planned*"
    found = [f"`{test}`" for test in tests]
    if "measured" in entry:
        found.append(f"[figures]({entry['measured']})")
    return "<br>".join(found)


@cache
def shown_by() -> Mapping[str, list[str]]:
    """Return the tests that show each requirement, as `file::test`, in the order of files and lines."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for test, ids in _marked(path):
            for id in ids:
                found[id].append(f"{path.relative_to(TESTS.parent).as_posix()}::{test}")
    return found


def _marked(path: Path) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            ids = [id for each in node.decorator_list for id in _ids(each)]
            if ids:
                yield node.name, ids


def _ids(decorator: ast.expr) -> list[str]:
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.shows":
        return [ast.literal_eval(each) for each in decorator.args]
    return []
