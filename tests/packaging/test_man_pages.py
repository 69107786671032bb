"""The manual pages, judged by the programs that show them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from docs import man_pages

MANUAL = Path(__file__).parents[2] / "packaging/man"
PAGES = sorted(MANUAL.glob("man?/*"))


def complaints(*words: str | Path) -> list[str]:
    ended = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    return (ended.stdout + ended.stderr).splitlines()


def test_every_command_has_a_page_and_no_page_is_left_over() -> None:
    """That they say what the code says is seen with the other generated pages."""
    assert {str(page.relative_to(MANUAL)) for page in PAGES} == man_pages.pages().keys()
    assert len(PAGES) > 30


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_finds_nothing_to_warn_of() -> None:
    assert [each for page in PAGES for each in complaints("groff", "-man", "-Tutf8", "-ww", "-z", page)] == []


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_finds_nothing_to_warn_of() -> None:
    found = complaints("mandoc", "-Tlint", "-Wwarning", *PAGES)
    # The version says how old a page is.
    assert [each for each in found if "missing date" not in each] == []


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_a_mistake_in_a_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "homeostat.1"
    page.write_text('.TH HOMEOSTAT 1 "" "" ""\n.SH NAME\n.TP\n', encoding="utf-8")
    assert complaints("mandoc", "-Tlint", "-Wwarning", page)


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_a_page_reads_as_the_help_does() -> None:
    shown = subprocess.run(
        ["mandoc", "-Tutf8", "-Owidth=200", str(MANUAL / "man1/homeostat-lock.1")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    plain = "\n".join(line.strip() for line in shown.replace("_\b", "").splitlines())
    plain = "".join(each for place, each in enumerate(plain) if plain[place + 1 : place + 2] != "\b" and each != "\b")
    assert "homeostat lock [OPTION]... NAME" in plain
    assert "--expires-in" in plain
    assert "homeostat lock web-tier --level stacks --reason 'new disks' --expires-in 2h" in plain
