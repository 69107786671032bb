"""The units for systemd, judged by systemd."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "packaging/systemd"
SERVICES = sorted(UNITS.glob("*.service"))
NEEDED = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The units, whose program is one that is there."""
    for each in SERVICES:
        text = each.read_text(encoding="utf-8")
        assert "ExecStart=/opt/homeostat/bin/homeostat " in text
        text = text.replace("/opt/homeostat/bin/homeostat", "/bin/true")
        # The user is made when it is installed.
        (tmp_path / each.name).write_text(re.sub(r"(?m)^(User|Group)=.*$", r"\1=root", text), encoding="utf-8")
    return tmp_path


@NEEDED
@pytest.mark.parametrize("name", ["homeostat-api.service", "homeostat-worker@1.service"])
def test_systemd_understands_a_unit(name: str, folder: Path) -> None:
    template = folder / re.sub(r"@\d", "@", name)
    if template.name != name:
        shutil.copy(template, folder / name)
    call = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(folder / name)]
    ended = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@NEEDED
@pytest.mark.parametrize("name", [each.name for each in SERVICES])
def test_a_unit_exposes_little(name: str, folder: Path) -> None:
    call = ["systemd-analyze", "security", "--offline=yes", "--threshold=25", str(folder / name)]
    ended = subprocess.run(call, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@NEEDED
def test_the_user_can_be_made(tmp_path: Path) -> None:
    call = ["systemd-sysusers", f"--root={tmp_path}", "--dry-run", str(UNITS / "homeostat.sysusers.conf")]
    ended = subprocess.run(call, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "homeostat" in ended.stdout + ended.stderr


def test_the_worker_differs_from_the_api_in_what_it_runs_alone() -> None:
    api, worker = (
        [line for line in each.read_text(encoding="utf-8").splitlines() if not line.startswith(("#", "Description"))]
        for each in SERVICES
    )
    differing = [(one, other) for one, other in zip(api, worker, strict=True) if one != other]
    assert [each for pair in differing for each in pair] == [
        "ExecStart=/opt/homeostat/bin/homeostat api --config /etc/homeostat/homeostat.toml",
        "ExecStart=/opt/homeostat/bin/homeostat worker --config /etc/homeostat/homeostat.toml",
    ]
