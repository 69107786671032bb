#!/usr/bin/env python3
"""Check the prose of code and pages, and the names of the code: `[tool.prose]` of pyproject.toml has the limits.

Prose is docstrings, comments and Markdown pages, without the names in backticks, blocks of code and generated pages. A
relative clause or a pronoun in the place of a noun makes a reader look for the noun, so each text has a limit for them.
The first paragraph of a docstring names its subject. A variable is a noun. With paths, only these files and folders are
checked; `--rates` prints how often each folder uses such words.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["prose"]
PRONOUNS = frozenset(SETTINGS["pronouns"])
NAMES = frozenset(SETTINGS["names"])
GENERATED = "<!-- Written by"
CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
LINK_TARGET = re.compile(r"\]\([^)]*\)")
WORD = re.compile(r"[A-Za-z][A-Za-z']*")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Text:
    """A docstring or a comment; `line` is where it begins."""

    line: int
    prose: str
    is_docstring: bool

    @property
    def summary(self) -> str:
        """The first paragraph of a docstring."""
        return self.prose.split("\n\n")[0] if self.is_docstring else ""


def words(prose: str) -> list[str]:
    return [word.lower() for word in WORD.findall(re.sub(r"`[^`]*`", "", prose))]


def texts(source: str) -> Iterator[Text]:
    """Yield the docstrings of modules, classes, functions and attributes, and the comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for statement in getattr(node, "body", ()) if isinstance(node, Documented) else ():
            value = getattr(statement, "value", None) if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield Text(statement.lineno, value.value, True)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string, False)


def page_texts(page: str) -> Iterator[Text]:
    """Yield the prose of a Markdown page that people write."""
    if not page.startswith(GENERATED):
        yield Text(1, LINK_TARGET.sub("]", CODE_BLOCK.sub("", page)), False)


def variables(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each variable and parameter where a value is bound to it.

    Fields of classes are left out: columns of tables and keys of JSON have the same names.
    """
    tree = ast.parse(source)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    fields = {
        id(statement.target) for node in classes for statement in node.body if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def problems(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and message of each fault of a file."""
    for text in texts(source):
        if "what" in words(text.summary):
            yield text.line, "the summary says 'what': name the thing"
        used = words(text.prose)
        count = sum(word in PRONOUNS for word in used)
        if count > max(SETTINGS["pronouns_min"], SETTINGS["pronouns_share"] * len(used)):
            yield text.line, f"{count} pronouns in {len(used)} words: name the things"
    for line, name in variables(source):
        if name in NAMES:
            yield line, f"the variable {name} is no noun"


def rates(sources: dict[str, str]) -> dict[str, tuple[int, float, float]]:
    """Return folder -> number of words, and how many of a thousand are 'what' and pronouns.

    Packages of the code are folders, and directories of pages.
    """
    counts: dict[str, Counter[str]] = {}
    for name, source in sources.items():
        is_page = name.endswith(".md")
        folder = Path(name).parent.as_posix() if is_page else "/".join(name.split("/")[:3])
        counter = counts.setdefault(folder, Counter())
        for text in (page_texts if is_page else texts)(source):
            used = words(text.prose)
            counter.update(words=len(used), what=used.count("what"), pronouns=sum(word in PRONOUNS for word in used))
    per_thousand = {folder: 1000 / max(counter["words"], 1) for folder, counter in counts.items()}
    return {
        folder: (counter["words"], counter["what"] * per_thousand[folder], counter["pronouns"] * per_thousand[folder])
        for folder, counter in counts.items()
    }


def limits(folder: str) -> tuple[float, float]:
    """Return how many of a thousand words may be 'what' and pronouns."""
    what, pronouns = SETTINGS["pages"].get(folder, (SETTINGS["what"], SETTINGS["pronoun_rate"]))
    return what, pronouns


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=SETTINGS["paths"], help="files and folders to check")
    parser.add_argument("--rates", action="store_true", help="print the rates of each folder")
    args = parser.parse_args()
    listed = subprocess.run(["git", "ls-files", *args.paths], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.split() if name.endswith((".py", ".md")) and (ROOT / name).exists()]
    sources = {name: (ROOT / name).read_text("utf-8") for name in names}
    folders = rates(sources)
    if args.rates:
        for folder, (count, what, pronouns) in sorted(folders.items()):
            print(f"{folder:40} {count:7} words, of 1,000: {what:5.1f} 'what', {pronouns:5.1f} pronouns")
    code = [name for name in names if name.endswith(".py")]
    faults = [f"{name}:{line}: {fault}" for name in code for line, fault in sorted(problems(sources[name]))]
    for folder, (count, what, pronouns) in sorted(folders.items()):
        what_max, pronouns_max = limits(folder)
        if count >= SETTINGS["rate_words_min"] and (what > what_max or pronouns > pronouns_max):
            faults.append(f"{folder}: {what:.1f} times 'what' and {pronouns:.1f} pronouns in 1,000 words")
    print("\n".join(faults or [f"{len(names)} files: prose and names are plain"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
