#!/usr/bin/env python3
"""Make the next release: two commits, the release itself and the begin of the version after it.

Use: scripts/release.py 0.2.0          with `make` the interpreter is that of .venv
     scripts/release.py --notes 0.1.0  prints what the changelog says of a release

The first commit has the version, its fragments of `changes` in the changelog, and the generated pages. The second one
has the release in `packaging/releases.toml`, with the checksum of its wheel, and the version after it. Nothing is
published: `scripts/dist DIR COMMIT` builds the same bytes again, anywhere.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = ROOT / "pyproject.toml"
CHANGELOG = ROOT / "CHANGELOG.md"
RELEASES = ROOT / "packaging/releases.toml"
VERSION = re.compile(r'^version = "(.*)"$', re.MULTILINE)


def run(*words: str | Path) -> str:
    """Run a command in the repository, and return what it prints."""
    ended = subprocess.run(list(map(str, words)), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return ended.stdout.strip()


def notes(version: str) -> str:
    """Return the section of a version in the changelog.

    Raises:
        SystemExit: There is none.
    """
    found = re.search(
        rf"^## {re.escape(version)} .*?(?=^## |\Z)", CHANGELOG.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    if found is None:
        sys.exit(f"CHANGELOG.md has no section of {version}")
    return found[0].rstrip()


def refusal(version: str) -> str:
    """Return why this version cannot be released now; "" if it can."""
    released = [each["version"] for each in tomllib.loads(RELEASES.read_text("utf-8")).get("release", [])]
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        return f"{version} is no version such as 0.2.0"
    if any(_parts(each) >= _parts(version) for each in released):
        return f"{version} is not newer than {released[-1]}, the last release"
    if run("git", "status", "--porcelain"):
        return "the working tree has changes: commit them first"
    return ""


def release(version: str) -> str:
    """Commit a release and the begin of the next version; return the commit of the release."""
    _set_version(version)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    if f"\n## {version} (" not in CHANGELOG.read_text("utf-8"):  # a section that was written by hand stays
        run(sys.executable, "-m", "towncrier", "build", "--yes", "--version", version, "--date", today)
    _commit(f"Release {version}")
    commit = run("git", "rev-parse", "HEAD")
    with RELEASES.open("a", encoding="utf-8") as table:
        row = {"version": version, "date": today, "commit": commit, "wheel": wheel(commit)}
        table.write("\n[[release]]\n" + "".join(f'{name} = "{value}"\n' for name, value in row.items()))
    major, minor, _ = _parts(version)
    after = f"{major}.{minor + 1}.0"
    _set_version(f"{after}.dev0")
    _commit(f"Begin {after}")
    return commit


def wheel(commit: str) -> str:
    """Return the SHA-256 of the wheel of a commit."""
    with tempfile.TemporaryDirectory() as directory:
        run(ROOT / "scripts/dist", directory, commit)
        (file,) = Path(directory).glob("*.whl")
        return hashlib.sha256(file.read_bytes()).hexdigest()


def _set_version(version: str) -> None:
    PROJECT.write_text(VERSION.sub(f'version = "{version}"', PROJECT.read_text("utf-8"), count=1), "utf-8")


def _commit(message: str) -> None:
    """Commit all changes, the manual pages among them, which name the version."""
    run(sys.executable, "docs/generate.py")
    run("git", "add", "--all")
    run("git", "commit", "--quiet", "--message", message)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the next release.")
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument("--notes", action="store_true", help="print what the changelog says of it, and nothing else")
    arguments = parser.parse_args()
    if arguments.notes:
        print(notes(arguments.version))
        return
    problem = refusal(arguments.version)
    if problem:
        sys.exit(problem)
    commit = release(arguments.version)
    print(f"{arguments.version} is {commit}; its row is in {RELEASES.relative_to(ROOT)}.")
    print(f"Tag it if you like: git tag v{arguments.version} {commit}")


if __name__ == "__main__":
    main()
