"""The example of a plug-in, installed as a package: its own tests, and its types in a running service."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import homeostat
from tests.cli.conftest import Home

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that has the package and what its metadata say, built by setuptools: no index is asked."""
    target = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(PLUGIN, source, dirs_exist_ok=True)
    build = ["-q", "build_py", "--build-lib", str(target), "egg_info", "--egg-base", str(target)]
    setup = [sys.executable, "-c", "import setuptools; setuptools.setup()", *build]
    subprocess.run(setup, cwd=source, check=True, capture_output=True)
    return target


def environment(*sites: Path) -> dict[str, str]:
    here = Path(homeostat.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*sites, here)))}


def test_its_own_tests_pass(site: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--rootdir", str(PLUGIN), str(PLUGIN)],
        cwd=tmp_path,
        env=environment(site),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "11 passed" in done.stdout


@pytest.fixture
def served(site: Path, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("PYTHONPATH", environment(site)["PYTHONPATH"])
    monkeypatch.setenv("EXAMPLE_FILES_DIR", str(tmp_path / "files"))
    return home


def test_a_service_has_its_types(served: Home, tmp_path: Path) -> None:
    known = served.run("types", "Example::", "--json").json()
    assert [(each["resource_type"], each["origin"]) for each in known] == [
        ("Example::File", "homeostat-example-files 1.0 (files)"),
        ("Example::Note", "homeostat-example-files 1.0 (notes)"),
    ]
    started = served.run("serve", "--detach", "--port", "0")
    assert started.code == 0, started.err
    done = served.run("up", str(PLUGIN / "note.yaml"), "notes")
    assert done.code == 0, done.out + done.err
    path = Path(served.run("show", "notes", "--output", "path").out.strip())
    assert '"content": "kept"' in path.read_text()
    assert served.run("show", "notes", "--output", "length").out.strip() == str(len(str(path)))
    (note,) = (tmp_path / "files").glob("*.txt")
    assert note.read_text() == f"Note\n{path}"
    done = served.run("down", "notes", "-y")
    assert done.code == 0, done.out + done.err
    assert not path.exists()
    assert not note.exists()
    checks = served.run("doctor", "--json").json()["checks"]
    assert [check["found"] for check in checks if check["name"] == "plug-ins"] == ["2 resource types are not built in"]
