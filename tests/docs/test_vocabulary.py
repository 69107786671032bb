"""One word for one meaning: the words that the project does not use any more (`vocabulary.yaml`) are nowhere in it."""

import io
import re
import token
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PLACES = ("src", "tests", "bench", "conformance", "docs", "scripts", "README.md", "CONTRIBUTING.md", "pyproject.toml")
SUFFIXES = frozenset({".py", ".md", ".yaml", ".toml"})
LIST = yaml.safe_load((ROOT / "tests/docs/vocabulary.yaml").read_text())
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""A word of a name such as `read_key` or `ReadKey`."""


@dataclass(frozen=True)
class Text:
    """A piece of a file: a name of the code, or some prose."""

    place: str
    line: int
    text: str
    is_name: bool

    @property
    def words(self) -> str:
        """Its words, apart by single spaces, in small letters."""
        return " ".join(WORD.findall(self.text)).lower() if self.is_name else " ".join(self.text.split()).lower()


@cache
def files() -> Mapping[str, str]:
    """Path below the root -> text."""
    paths = [
        path for place in PLACES for path in ([ROOT / place] if (ROOT / place).is_file() else (ROOT / place).rglob("*"))
    ]
    found = {str(path.relative_to(ROOT)): path for path in paths if path.suffix in SUFFIXES}
    return {place: path.read_text() for place, path in found.items() if not is_below(place, LIST["everywhere"])}


def is_below(place: str, paths: Mapping[str, str]) -> bool:
    return any(place.startswith(each) for each in paths)


@cache
def texts(place: str) -> tuple[Text, ...]:
    """The pieces of a file: its own name, names and prose of a program, the paragraphs of a page."""
    return (Text(place, 0, place, True), *(of_program(place) if place.endswith(".py") else of_page(place)))


def of_program(place: str) -> Iterator[Text]:
    for each in tokenize.generate_tokens(io.StringIO(files()[place]).readline):
        if each.type == token.NAME:
            yield Text(place, each.start[0], each.string, True)
        elif each.type not in (token.OP, token.NUMBER, token.NEWLINE, token.INDENT):
            yield Text(place, each.start[0], each.string, False)


def of_page(place: str) -> Iterator[Text]:
    line = 1
    for paragraph in files()[place].split("\n\n"):
        yield Text(place, line, paragraph, False)
        line += paragraph.count("\n") + 2


def whole_word(old: str) -> re.Pattern[str]:
    """The word, not as a part of a longer one; in prose also as a part of a name in it, such as `old_word`."""
    return re.compile(rf"(?<![a-z])(?:{old})(?![a-z])")


def uses(entry: Mapping[str, object]) -> list[str]:
    """Where an old word is used: `path:line: text`."""
    pattern = whole_word(str(entry["old"]))
    exceptions = dict(entry.get("except") or {})  # type: ignore[call-overload]
    within = dict.fromkeys(entry.get("within") or [""], "")  # type: ignore[call-overload]
    return [
        f"{each.place}:{each.line}: {each.text.strip()[:100]}"
        for place, whole in files().items()
        if is_below(place, within)
        and not is_below(place, exceptions)
        and re.search(str(entry["old"]).replace(" ", r"\s+"), place + whole, re.IGNORECASE)
        for each in texts(place)
        if (each.is_name or not entry.get("names")) and pattern.search(each.words)
    ]


@pytest.mark.parametrize("entry", LIST["words"], ids=lambda entry: str(entry["old"]))
def test_no_name_and_no_text_uses_an_old_word(entry: Mapping[str, object]) -> None:
    found = uses(entry)
    assert not found, f"use {entry['use']}:\n" + "\n".join(found)


def test_words_are_found_in_names_and_in_prose() -> None:
    pattern = whole_word("veil(s|ed)?")
    names = [Text("", 1, name, True) for name in ("veiled_value", "VeilOf", "VEIL", "_veils", "surveillance")]
    assert [bool(pattern.search(each.words)) for each in names] == [True, True, True, True, False]
    prose = [Text("", 1, text, False) for text in ("# a\n Veil", '"veil_key"', "surveil")]
    assert [bool(pattern.search(each.words)) for each in prose] == [True, True, False]


@pytest.mark.parametrize(
    "entry", [each for each in LIST["words"] if each.get("except")], ids=lambda each: str(each["old"])
)
def test_exceptions_are_needed(entry: Mapping[str, dict[str, str]]) -> None:
    for path in entry["except"]:
        there = [place for place in files() if place.startswith(path)]
        assert any(re.search(str(entry["old"]), files()[place], re.IGNORECASE) for place in there), path
