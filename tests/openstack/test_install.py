"""What the installation of the OpenStack of these tests says while it works; needs none."""

import sys
from pathlib import Path

import pytest

from tests.openstack.cloud import install
from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.settings import Settings
from tests.openstack.cloud.site import Site

PIP = """\
#!{python}
import sys, time
print("Collecting one==1", flush=True)
time.sleep(0.3)
print("Collecting two==2", flush=True)
print("Installing collected packages: one, two", flush=True)
time.sleep(0.3)
sys.exit({code})
"""


def site(directory: Path, code: int) -> tuple[Site, Path]:
    """A site whose pip only says what it would do, and a list of two packages."""
    program = directory / "venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(PIP.format(python=sys.executable, code=code))
    program.chmod(0o755)
    pins = directory / "some.txt"
    pins.write_text("# two\none==1\ntwo==2\n")
    return Site(directory, Settings()), pins


def test_it_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(install, "SAY_S", 0.05)
    install._install(*site(tmp_path, 0))
    said = [line.split("] ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert said[0] == "some: fetching 2 packages"
    assert said[-1] == "some: installed"
    assert {"some: 1 of 2 packages fetched", "some: installing 2 packages"} <= {*said}


def test_what_pip_printed_is_in_the_failure(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"(?s)could not install some \(exit 3\).*Collecting two"):
        install._install(*site(tmp_path, 3))
