"""What is locked: all that is needed, with the hashes of every file, and nothing that says where from."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
RELEASE = (ROOT / "packaging/release.lock").read_text(encoding="utf-8")
FOR_OTHERS = {"client", "dev", "docs"}
"""Extras that no service needs."""
ENTRY = re.compile(r"[a-z0-9-]+==\S+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+")


def entries(lock: str) -> list[str]:
    return re.split(r"\n(?! )", lock.rstrip("\n"))


def test_everything_that_is_locked_has_hashes() -> None:
    assert [entry for entry in entries(LOCK) if not ENTRY.fullmatch(entry)] == []
    assert len(entries(LOCK)) > 100


def test_a_release_needs_what_is_tested() -> None:
    assert [entry for entry in entries(RELEASE) if entry not in entries(LOCK)] == [], "run `make lock`"
    assert 50 < len(entries(RELEASE)) < len(entries(LOCK))


def test_releases_have_the_hashes_of_wheels_for_other_pythons_too() -> None:
    """One alone would fit the interpreter alone that it was locked with."""
    compiled = next(entry for entry in entries(LOCK) if entry.startswith("orjson=="))
    assert compiled.count("--hash") > 10


def names(requirements: Iterable[str]) -> set[str]:
    found = (re.split(r"[\[<>=;]", each)[0] for each in requirements if not each.startswith("homeostat["))
    return {re.sub(r"[._-]+", "-", each).lower() for each in found}


def locked(lock: str) -> set[str]:
    return {line.partition("==")[0] for line in lock.splitlines()}


def test_all_that_the_project_names_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = project["project"]["dependencies"]
    extras = project["project"]["optional-dependencies"]
    of_services = [each for name, extra in extras.items() if name not in FOR_OTHERS for each in extra]
    of_all = [each for extra in extras.values() for each in extra]
    assert sorted(names([*project["build-system"]["requires"], *needed, *of_all]) - locked(LOCK)) == [], (
        "run `make lock`"
    )
    assert sorted(names([*needed, *of_services]) - locked(RELEASE)) == [], "add it to `all`, and run `make lock`"
