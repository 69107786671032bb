"""What a cloud needs on the machine: programs, and a virtual environment with the services."""

import hashlib
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.progress import say
from tests.openstack.cloud.services.service import Service
from tests.openstack.cloud.site import HERE, Site

PROGRAMS = {"mariadbd": "mariadb-server", "rabbitmq-server": "rabbitmq-server", "openssl": "openssl"}
"""Each with the package of Debian that has it."""
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
        say(f"installing OpenStack into {site.venv} (minutes)")
        shutil.rmtree(site.venv, ignore_errors=True)
        site.call(sys.executable, "-m", "venv", str(site.venv))
    for pins in _pins(services):
        if not _is_installed(site, pins):
            if pins != BASE:
                say(f"installing {pins.stem}")
            # Everything is pinned, so pip has nothing to resolve.
            pip = (site.program("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
            site.call(*pip, "--no-deps", "-r", str(pins))
            _marker(site, pins).write_text(digest(pins))
    if lacking := missing(site, services):
        raise Failure(f"not installed: {', '.join(lacking)}; scripts/openstack installs packages as root on Debian")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _pins(services: Iterable[Service]) -> list[Path]:
    return [BASE, *(each.requirements for each in services if each.requirements is not None)]


def _is_installed(site: Site, pins: Path) -> bool:
    marker = _marker(site, pins)
    return marker.exists() and marker.read_text() == digest(pins)


def _marker(site: Site, pins: Path) -> Path:
    return site.venv / f"{pins.stem}.sha256"
