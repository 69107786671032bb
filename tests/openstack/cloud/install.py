"""What a cloud needs on the machine: programs, and a virtual environment with the services."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.progress import say
from tests.openstack.cloud.services.service import Service
from tests.openstack.cloud.site import HERE, Site

PROGRAMS = {"mariadbd": "mariadb-server", "rabbitmq-server": "rabbitmq-server", "openssl": "openssl"}
"""Each with the package of Debian that has it."""
SAY_S = 10.0
"""Seconds between two lines about one list of packages."""
FETCHING, INSTALLING = "Collecting ", "Installing collected packages"
"""What pip prints for each package, and when it has them all."""
BASE = HERE / "requirements" / "base.txt"


def missing(site: Site, services: Iterable[Service]) -> list[str]:
    """What is not installed, in words. Empty: all that the cloud needs is there."""
    programs = {**PROGRAMS, **{name: package for each in services for name, package in each.programs.items()}}
    lacking = [
        f"the program {name} (package {package})" for name, package in programs.items() if not shutil.which(name)
    ]
    return lacking + [f"{pins.stem} in {site.venv}" for pins in _pins(services) if not _is_installed(site, pins)]


def install(site: Site, services: Iterable[Service]) -> None:
    """Make the virtual environment, once for each list of requirements. Fails: Failure where a program is missing."""
    services = list(services)
    site.directory.mkdir(parents=True, exist_ok=True)
    if not _is_installed(site, BASE):
        say(f"making a virtual environment in {site.venv}")
        shutil.rmtree(site.venv, ignore_errors=True)
        site.call(sys.executable, "-m", "venv", str(site.venv))
    for pins in _pins(services):
        if not _is_installed(site, pins):
            _install(site, pins)
            _marker(site, pins).write_text(digest(pins))
    if lacking := missing(site, services):
        raise Failure(f"not installed: {', '.join(lacking)}; scripts/openstack installs packages as root on Debian")


def _install(site: Site, pins: Path) -> None:
    """Install what is pinned, and say now and then how far that is. Fails: Failure with what pip printed last."""
    total = len(pinned(pins))
    say(f"{pins.stem}: fetching {total} packages")
    # Everything is pinned, so pip has nothing to resolve.
    pip = (site.program("python"), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off")
    with tempfile.TemporaryFile("w+") as output:
        running = subprocess.Popen(
            [*pip, "--no-deps", "-r", str(pins)], stdout=output, stderr=subprocess.STDOUT, text=True
        )
        while True:
            try:
                code = running.wait(timeout=SAY_S)
                break
            except subprocess.TimeoutExpired:
                say(f"{pins.stem}: {progress(_printed(output), total)}")
        if code:
            raise Failure(f"pip could not install {pins.stem} (exit {code}):\n{_printed(output)[-2000:]}")
    say(f"{pins.stem}: installed")


def _printed(output: IO[str]) -> str:
    """What was written so far: the reader has a place of its own, since the writer goes on at the end."""
    return os.pread(output.fileno(), os.fstat(output.fileno()).st_size, 0).decode(errors="replace")


def progress(printed: str, total: int) -> str:
    """How far pip is, by what it has printed: it says little while it writes the files, which takes longest."""
    if INSTALLING in printed:
        return f"installing {total} packages"
    return f"{printed.count(FETCHING)} of {total} packages fetched"


def pinned(pins: Path) -> list[str]:
    """The packages that a list of requirements names."""
    return [line for line in pins.read_text().splitlines() if line.strip() and not line.startswith("#")]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _pins(services: Iterable[Service]) -> list[Path]:
    return [BASE, *(each.requirements for each in services if each.requirements is not None)]


def _is_installed(site: Site, pins: Path) -> bool:
    marker = _marker(site, pins)
    return marker.exists() and marker.read_text() == digest(pins)


def _marker(site: Site, pins: Path) -> Path:
    return site.venv / f"{pins.stem}.sha256"
