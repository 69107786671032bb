"""What is released, on each Python that its metadata name and that these tests do not run on themselves."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.installed import LIMIT_S, ROOT, bring_up_the_example, run

PURE = ("model", "planner", "templates", "resources", "clustering")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = re.findall(r"Python :: (\d+\.\d+)'", str(PROJECT["classifiers"]))
OTHERS = [each for each in VERSIONS if each != f"{sys.version_info.major}.{sys.version_info.minor}"]
PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"


def interpreter(version: str) -> str | None:
    """A Python of this version, from PATH or among those of pyenv, whose shims may have none behind them."""
    places: list[str | Path | None] = [
        shutil.which(f"python{version}"),
        *sorted(PYENV.glob(f"{version}.*/bin/python"), reverse=True),
    ]
    says = "import sys; print('%d.%d' % sys.version_info[:2])"
    for place in (each for each in places if each):
        ended = subprocess.run([place, "-c", says], capture_output=True, text=True, check=False)
        if ended.stdout.strip() == version:
            return str(place)
    return None


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="p") as found:
        yield Path(found)


@pytest.mark.timeout(4 * LIMIT_S)
@pytest.mark.parametrize("version", OTHERS)
def test_a_release_works(version: str, folder: Path) -> None:
    found = interpreter(version)
    if found is None:
        assert os.environ.get("CI") != "true", f"in CI there has to be a Python {version}"
        pytest.skip(f"there is no Python {version}")
    run(ROOT / "scripts/dist", folder, variables={"PYTHON": sys.executable})
    (wheel,), (source,) = folder.glob("homeostat-*.whl"), folder.glob("homeostat-*.tar.gz")
    run(found, "-m", "venv", folder / "environment")
    python = folder / "environment/bin/python"
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")

    # With what a service needs, and nothing else
    run(*install, "--require-hashes", "--only-binary", ":all:", "-r", ROOT / "packaging/release.lock")
    run(*install, "--no-index", "--no-deps", wheel)
    run(python, "-m", "pip", "check")
    bring_up_the_example(folder / "environment/bin/homeostat", folder)

    # With what the tests need, and built from its source
    run(*install, "--require-hashes", "-r", ROOT / "requirements.lock")
    run(*install, "--no-index", "--no-deps", "--no-build-isolation", "--force-reinstall", source)
    shutil.unpack_archive(source, folder, filter="data")
    (unpacked,) = (path for path in folder.glob("homeostat-*") if path.is_dir())
    shutil.rmtree(unpacked / "src")
    plain = ("-p", "no:anyio", "-p", "no:schemathesis", "-p", "no:cacheprovider")
    run(python, "-m", "pytest", *plain, *(unpacked / f"tests/unit/{each}" for each in PURE), cwd=unpacked)
