"""What is released of a commit: the same bytes each time, all that is needed, and nothing else."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "src/homeostat"
pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="what is released is a commit")


def run(*words: str | Path, cwd: Path = ROOT, umask: int = 0o022, **more: str) -> str:
    environment = {**os.environ, "PYTHON": sys.executable, **more}
    call = list(map(str, words))
    return subprocess.run(
        call, cwd=cwd, env=environment, umask=umask, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run("scripts/dist", folder)
    return folder


def one(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def committed(folder: str) -> set[str]:
    return set(run("git", "ls-tree", "-r", "--name-only", "HEAD", folder).splitlines())


@pytest.mark.heavy
def test_a_commit_gives_the_same_bytes_each_time(built: Path, tmp_path: Path) -> None:
    run("scripts/dist", tmp_path, umask=0o077, TZ="Asia/Tokyo", PYTHONHASHSEED="7", LC_ALL="C")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {
        each.name: each.read_bytes() for each in built.iterdir()
    }
    assert len(list(built.iterdir())) == 2


@pytest.mark.heavy
def test_the_source_distribution_makes_the_same_wheel(built: Path, tmp_path: Path) -> None:
    """So what is installed from it runs as that of the wheel does."""
    with tarfile.open(one(built, "*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path)
    epoch = run("git", "log", "-1", "--format=%ct").strip()
    run(*build, cwd=one(tmp_path, "homeostat-*"), SOURCE_DATE_EPOCH=epoch)
    assert one(tmp_path, "*.whl").read_bytes() == one(built, "*.whl").read_bytes()


def test_the_wheel_has_the_package_and_its_manual_and_nothing_else(built: Path) -> None:
    wheel = one(built, "*.whl")
    stem = "-".join(wheel.name.split("-")[:2])
    names = set(zipfile.ZipFile(wheel).namelist())
    about = {name for name in names if name.startswith(f"{stem}.dist-info/")}
    assert names - about == {
        *(path.removeprefix("src/") for path in committed(PACKAGE)),
        *(path.replace("packaging", f"{stem}.data/data/share", 1) for path in committed("packaging/man")),
    }
    assert {"METADATA", "WHEEL", "RECORD", "entry_points.txt"} <= {name.partition("/")[2] for name in about}


def test_the_source_distribution_has_what_is_committed(built: Path) -> None:
    with tarfile.open(one(built, "*.tar.gz")) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert names - {"PKG-INFO"} == {path for path in committed(".") if not path.startswith(".ci/")}


# -- metadata ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def metadata(built: Path) -> Message:
    with zipfile.ZipFile(one(built, "*.whl")) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(wheel.read(name).decode())


def test_the_licences_of_all_that_is_in_the_wheel_are_there(built: Path, metadata: Message) -> None:
    vendored = {path for path in committed(PACKAGE) if path.endswith("LICENSE")}
    assert set(metadata.get_all("License-File", [])) == {"LICENSE", *vendored}
    names = zipfile.ZipFile(one(built, "*.whl")).namelist()
    assert [each for each in vendored if not any(name.endswith(f"/licenses/{each}") for name in names)] == []
    packages = json.loads((ROOT / PACKAGE / "dashboard/static/vendor/vendor.json").read_text("utf-8"))["packages"]
    licences = {"Apache-2.0", *(each["license"] for each in packages.values())}
    assert set(metadata["License-Expression"].split(" AND ")) == licences


def test_the_metadata_name_the_pythons_that_are_tested(metadata: Message) -> None:
    least = metadata["Requires-Python"].removeprefix(">=")
    classifiers = "\n".join(metadata.get_all("Classifier", []))
    pythons = re.findall(r"Python :: (\d+\.\d+)$", classifiers, re.MULTILINE)
    assert pythons[0] == least
    assert metadata["Summary"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["description"]
    assert "# Homeostat" in metadata.get_payload()
