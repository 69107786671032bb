"""What a release is: the steps of `scripts/release.py` in a clone, and the table of those that were made."""

import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.databases import missing
from tests.history import is_shallow

ROOT = Path(__file__).parents[2]
RELEASES = "packaging/releases.toml"


def git(directory: Path, *words: str) -> str:
    identity = ("-c", "user.name=Tests", "-c", "user.email=tests@example.org")
    return subprocess.run(
        ["git", *identity, *words], cwd=directory, text=True, capture_output=True, check=True
    ).stdout.strip()


def releases(directory: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((directory / RELEASES).read_text("utf-8")).get("release", [])
    return found


def released(clone: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "scripts/release.py", *words], cwd=clone, text=True, capture_output=True, check=False
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of this repository, with the environment of the original, and just one change that users notice."""
    there = tmp_path / "clone"
    git(ROOT, "clone", "--quiet", "--no-local", str(ROOT), str(there))
    for name, value in (("user.name", "Tests"), ("user.email", "tests@example.org")):
        git(there, "config", name, value)
    (there / ".venv").symlink_to(ROOT / ".venv")
    for fragment in (there / "changes").glob("+*"):
        fragment.unlink()
    (there / "changes/+lists.changed.md").write_text("Lists are shorter.\n")
    return there


@pytest.mark.heavy
def test_a_release_is_a_commit_that_builds_the_wheel_of_its_row(clone: Path, tmp_path: Path) -> None:
    assert "commit them first" in released(clone, "99.0.0").stderr
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "A change")
    before = len(releases(clone))
    done = released(clone, "99.0.0")
    assert done.returncode == 0, done.stderr
    assert git(clone, "log", "-2", "--format=%s").splitlines() == ["Begin 99.1.0", "Release 99.0.0"]
    assert git(clone, "status", "--porcelain") == ""

    *_, row = releases(clone)
    assert (row["version"], row["commit"], len(releases(clone))) == (
        "99.0.0",
        git(clone, "rev-parse", "HEAD~1"),
        before + 1,
    )
    assert 'version = "99.0.0"' in git(clone, "show", "HEAD~1:pyproject.toml")
    assert 'version = "99.1.0.dev0"' in (clone / "pyproject.toml").read_text()
    assert "Homeostat 99.0.0" in git(clone, "show", "HEAD~1:packaging/man/man1/homeostat-up.1")
    assert not (clone / "changes/+lists.changed.md").exists()
    notes = released(clone, "--notes", "99.0.0").stdout
    assert notes == f"## 99.0.0 ({row['date']})\n\n### Changed\n\n- Lists are shorter.\n"
    (tmp_path / "wheels").mkdir()
    subprocess.run([clone / "scripts/dist", tmp_path / "wheels", row["commit"]], check=True, capture_output=True)
    (wheel,) = (tmp_path / "wheels").glob("homeostat-99.0.0-*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == row["wheel"]
    assert "not newer than 99.0.0" in released(clone, "98.0.0").stderr


@pytest.mark.parametrize(
    ("words", "said"), [(("1",), "no version such as"), (("--notes", "97.0.0"), "no section of 97.0.0")]
)
def test_refusals(words: tuple[str, ...], said: str) -> None:
    ended = released(ROOT, *words)
    assert (ended.returncode, said in ended.stderr) == (1, True), ended


@pytest.mark.parametrize("row", [pytest.param(each, id=each["version"]) for each in releases(ROOT)])
def test_each_release_is_a_commit_of_this_history(row: dict[str, Any]) -> None:
    try:
        git(ROOT, "merge-base", "--is-ancestor", row["commit"], "HEAD")
    except subprocess.CalledProcessError:
        if is_shallow(ROOT):
            pytest.skip("this clone lacks older commits")
        missing(f"this clone lacks the commit of {row['version']}: git fetch --unshallow")
    assert f'version = "{row["version"]}"' in git(ROOT, "show", f"{row['commit']}:pyproject.toml")
