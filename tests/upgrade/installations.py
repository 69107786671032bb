"""The last release and the version of today, as programs that share a state directory and a database."""

import os
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cli.conftest import GENUINE, Ended, Home
from tests.databases import missing
from tests.history import is_shallow
from tests.waiting import until

ROOT = Path(__file__).parents[2]
RELEASE: dict[str, str] = tomllib.loads((ROOT / "packaging/releases.toml").read_text("utf-8"))["release"][-1]
RELEASED = ROOT / ".released" / RELEASE["version"]
PREVIOUS = (str(RELEASED / "environment/bin/python"), "-m", "homeostat")
CURRENT = GENUINE


def check_release() -> None:
    """Skip a test where the last release is not installed; in CI it fails, but in a clone without history."""
    if not (RELEASED / "installed").exists():
        if is_shallow(ROOT):
            pytest.skip(f"this clone lacks the commit of {RELEASE['version']}")
        missing(f"release {RELEASE['version']} is not installed: scripts/released, or make test-upgrade")


@dataclass(frozen=True)
class Installation:
    """One version of the program on a state directory.

    options — of the processes, such as the database; home — the directory, and the command of this version.
    """

    home: Home
    options: tuple[str, ...] = ()

    def of(self, command: tuple[str, ...]) -> "Installation":
        """The other version on the same state."""
        return replace(self, home=replace(self.home, command=command))

    def run(self, *words: str) -> Ended:
        """Run a command that has to succeed."""
        ended = self.home.run(*words)
        assert ended.code == 0, (words, ended.out, ended.err)
        return ended

    def serve(self) -> None:
        self.run("serve", "--detach", "--port", "0", "--health-interval-min", "5", *self.options)

    def stop(self) -> None:
        self.home.end_service()

    def kill(self) -> None:
        """End the service and its processes as if the machine had lost its power; servers of the cloud go on."""
        service = self.home.running()
        subprocess.run(["pkill", "-KILL", "-P", str(service.pid)], check=False)
        os.kill(service.pid, 9)
        until(lambda: self.home.state.running() is None)

    def request(
        self, method: str, path: str, body: Any = None, expected: tuple[int, ...] = (200, 201, 202, 204)
    ) -> Any:
        """Send a request to the Orchestration API, or to the Clustering API where the path begins with its name."""
        base = self.home.running().url
        url = f"{base}{path}" if path.startswith("/clustering") else f"{base}/v1/default{path}"
        answer = httpx.request(method, url, json=body, follow_redirects=True, timeout=60)
        assert answer.status_code in expected, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def stack(self, method: str, name: str, part: str = "", body: Any = None, **more: Any) -> Any:
        """The same for a part of a stack."""
        id = self.request("GET", f"/stacks/{name}")["stack"]["id"]
        return self.request(method, f"/stacks/{name}/{id}{part}", body, **more)

    def status(self, name: str) -> str:
        found = self.request("GET", f"/stacks/{name}", expected=(200, 404))
        return str(found["stack"]["stack_status"]) if "stack" in found else "absent"

    def await_status(self, name: str, status: str) -> None:
        until(lambda: self.status(name) == status, f"{name} to be {status}")


@contextmanager
def installed(directory: Path, *options: str) -> Iterator[Installation]:
    """The last release on an empty state; whatever was started there is ended."""
    check_release()
    found = Installation(Home(directory / "state", PREVIOUS), options)
    try:
        yield found
    finally:
        found.home.stop()


def version_of(installation: Installation) -> str:
    """The version that a command says it is of."""
    code = "from importlib.metadata import version; print(version('homeostat'))"
    python = installation.home.command[0]
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
