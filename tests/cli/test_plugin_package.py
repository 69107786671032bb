"""The example of a plug-in, installed as a package: its own tests, and its types in a running service."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import homeostat
from tests.cli.conftest import Home
from tests.waiting import until

EXAMPLES = Path(__file__).parents[2] / "examples"
PLUGIN, HELLO = EXAMPLES / "plugin", EXAMPLES / "hello.yaml"


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


@pytest.mark.heavy
def test_its_own_tests_pass(site: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--rootdir", str(PLUGIN), str(PLUGIN)],
        cwd=tmp_path,
        env={**environment(site), "PYTEST_ADDOPTS": ""},  # those of this run are for its own plug-ins
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "11 passed" in done.stdout


IMPORTED = """
import os, pathlib, threading

with open(os.environ["IMPORTED_BY"], "a") as importers:
    importers.write(f"{os.getpid()}\\n")
asked, answered = threading.Event(), threading.Event()
threading.Thread(target=lambda: (asked.wait(), answered.set()), daemon=True).start()
TYPES = ()


def resource_mapping():
    asked.set()
    answered.wait()
    return {}
"""


@pytest.fixture(scope="module")
def threaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another package, with a thread that begins when it is imported, and is waited for."""
    target = tmp_path_factory.mktemp("threaded")
    (target / "threaded_types.py").write_text(IMPORTED)
    noted = target / "threaded_types-1.0.dist-info"
    noted.mkdir()
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: threaded-types\nVersion: 1.0\n")
    points = {"resources": "threaded_types:TYPES", "plugins": "threaded_types"}
    text = "".join(f"[homeostat.{group}]\nthreaded = {point}\n" for group, point in points.items())
    (noted / "entry_points.txt").write_text(text)
    return target


@pytest.mark.heavy
def test_packages_of_others_are_imported_by_each_process_itself(
    threaded: Path, home: Home, genuine: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of a process that has imported them would have no threads of theirs, and hold their locks for ever."""
    noted = tmp_path / "imported"
    monkeypatch.setenv("PYTHONPATH", environment(threaded)["PYTHONPATH"])
    monkeypatch.setenv("IMPORTED_BY", str(noted))
    started = genuine.run("serve", "--detach", "--port", "0", "--cloud", "simulated")
    assert started.code == 0, started.err
    service = home.running()
    assert home.run("up", str(HELLO), "hello").code == 0
    os.kill(service.children["worker"], signal.SIGKILL)
    until(lambda: home.running().children["worker"] != service.children["worker"])
    assert home.run("up", str(HELLO), "again").code == 0
    importers = set(map(int, noted.read_text().split()))
    expected = {service.children["worker"], *home.running().children.values()}
    assert expected <= importers
    assert service.pid not in importers


@pytest.fixture
def served(site: Path, genuine: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("PYTHONPATH", environment(site)["PYTHONPATH"])
    monkeypatch.setenv("EXAMPLE_FILES_DIR", str(tmp_path / "files"))
    return genuine


@pytest.mark.heavy
def test_a_service_has_its_types(served: Home, home: Home, tmp_path: Path) -> None:
    known = served.run("types", "Example::", "--json").json()
    assert [(each["resource_type"], each["origin"]) for each in known] == [
        ("Example::File", "homeostat-example-files 1.0 (files)"),
        ("Example::Note", "homeostat-example-files 1.0 (notes)"),
    ]
    started = served.run("serve", "--detach", "--port", "0")
    assert started.code == 0, started.err
    done = home.run("up", str(PLUGIN / "note.yaml"), "notes")
    assert done.code == 0, done.out + done.err
    path = Path(home.run("show", "notes", "--output", "path").out.strip())
    assert '"content": "kept"' in path.read_text()
    assert home.run("show", "notes", "--output", "length").out.strip() == str(len(str(path)))
    (note,) = (tmp_path / "files").glob("*.txt")
    assert note.read_text() == f"Note\n{path}"
    done = home.run("down", "notes", "-y")
    assert done.code == 0, done.out + done.err
    assert not path.exists()
    assert not note.exists()
    checks = served.run("doctor", "--json").json()["checks"]
    assert [check["found"] for check in checks if check["name"] == "plug-ins"] == ["2 resource types are not built in"]
