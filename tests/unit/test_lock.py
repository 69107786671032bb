"""What is locked: all that is needed, with the hashes of every file, and nothing that says where from."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
ENTRY = re.compile(r"[a-z0-9-]+==\S+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+")


def test_everything_that_is_locked_has_hashes() -> None:
    entries = re.split(r"\n(?! )", LOCK.rstrip("\n"))
    assert [entry for entry in entries if not ENTRY.fullmatch(entry)] == []
    assert len(entries) > 100


def test_releases_have_the_hashes_of_wheels_for_other_pythons_too() -> None:
    """One alone would fit the interpreter alone that it was locked with."""
    compiled = next(entry for entry in re.split(r"\n(?! )", LOCK) if entry.startswith("orjson=="))
    assert compiled.count("--hash") > 10


def test_all_that_the_project_names_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        named += [each for each in extra if not each.startswith("homeostat[")]
    names = {re.sub(r"[._-]+", "-", re.split(r"[\[<>=;]", each)[0]).lower() for each in named}
    assert sorted(names - {line.partition("==")[0] for line in LOCK.splitlines()}) == [], "run `make lock`"
