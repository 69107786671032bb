"""A service of its own processes that builds in the OpenStack of the tests."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from homeostat.cli.state_directory import State
from tests.openstack.adapter import clouds_yaml
from tests.openstack.projects import Project
from tests.openstack.running import eventually
from tests.waiting import PATIENCE_S, until

SETTLES_S = 900.0
"""A service that was away takes its time to work again."""
Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Served:
    """home — of its state. http — its API. settings — variables for its commands."""

    home: Path
    http: httpx.Client
    settings: Mapping[str, str]

    def create(self, name: str, resources: Wire, look_s: float = 0, **more: Any) -> None:
        """look_s — seconds between two looks, if not the usual ones. more — of the request."""
        self._sent("POST", "stacks", {"stack_name": name, "template": template(resources), **more})
        if look_s:
            self.switch(name, observe_interval=look_s)

    def switch(self, name: str, **settings: Any) -> None:
        """settings — of the stack's convergence."""
        self._sent("PATCH", self.path(name, "convergence"), {"convergence": settings})

    def looked_at(self, name: str) -> str:
        """When everything of a stack was looked at last."""
        return str(self._read(self.path(name, "convergence"))["convergence"]["looked_at"])

    def update(self, name: str, resources: Wire, **more: Any) -> None:
        """more — of the request."""
        self._sent("PUT", self.path(name), {"template": template(resources), **more})

    def mark_unhealthy(self, name: str, resource: str, reason: str) -> None:
        body = {"mark_unhealthy": True, "resource_status_reason": reason}
        self._sent("PATCH", self.path(name, f"resources/{resource}"), body)

    def delete(self, name: str) -> None:
        self._sent("DELETE", self.path(name))

    def stack(self, name: str) -> Wire:
        """Of any name or id, also after its deletion by its id."""
        return dict(self._read(f"stacks/{name}")["stack"])

    def path(self, name: str, below: str = "") -> str:
        found = self.stack(name)
        return f"stacks/{found['stack_name']}/{found['id']}" + (f"/{below}" if below else "")

    def resources(self, name: str) -> dict[str, Wire]:
        return {each["resource_name"]: each for each in self._read(self.path(name, "resources"))["resources"]}

    def handles(self, name: str) -> dict[str, str]:
        return {each: found["physical_resource_id"] for each, found in self.resources(name).items()}

    def is_well(self, name: str) -> bool:
        """Whether every resource is complete."""
        return all(each["resource_status"].endswith("_COMPLETE") for each in self.resources(name).values())

    def explanation(self, name: str) -> Wire:
        return dict(self._read(self.path(name, "explain"))["explanation"])

    def unseen(self, name: str) -> str:
        """Why the things of a stack cannot be looked at; "" if they can."""
        return str((self.explanation(name)["unseen"] or {}).get("reason", ""))

    def failures(self, name: str) -> list[str]:
        found = self.events(name)
        return [f"{each['resource_name']}: {each['resource_status_reason']}" for each in found if is_failure(each)]

    def events(self, name: str) -> list[Wire]:
        """In the order in which they came."""
        return list(reversed(self._read(self.path(name, "events"))["events"]))

    def at_rest(self, name: str, within_s: float = SETTLES_S) -> Wire:
        """The stack, once nothing is in progress."""

        def ask() -> Wire | None:
            found = self.stack(name)
            return None if found["stack_status"].endswith("IN_PROGRESS") else found

        return eventually(ask, f"{name} to come to rest", within_s)

    def doctor(self) -> dict[str, str]:
        """Name of a check of OpenStack that is not well -> what was found."""
        ended = subprocess.run(
            [sys.executable, "-m", "homeostat", "doctor", "--json"],
            env=dict(self.settings),
            capture_output=True,
            timeout=PATIENCE_S,
            text=True,
            check=False,
        )
        assert ended.stdout, ended.stderr
        checks = json.loads(ended.stdout)["checks"]
        return {each["name"]: each["found"] for each in checks if each["level"] == "fail"}

    def _read(self, path: str) -> Wire:
        answer = self.http.get(path)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def _sent(self, method: str, path: str, body: Wire | None = None) -> None:
        answer = self.http.request(method, path, json=body)
        assert answer.status_code < 300, answer.text


def template(resources: Wire) -> Wire:
    return {"heat_template_version": "wallaby", "resources": resources}


def is_failure(event: Wire) -> bool:
    return str(event["resource_status"]).endswith("_FAILED")


@contextlib.contextmanager
def serving(project: Project, home: Path, *flags: str, auth: Mapping[str, str] | None = None) -> Iterator[Served]:
    """A service that acts with the login of a project's user, or another one."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HOMEOSTAT_", "OS_"))}
    home.mkdir(exist_ok=True)
    settings = {
        **inherited,
        "OS_CLIENT_CONFIG_FILE": str(clouds_yaml(project, home, auth)),
        "HOMEOSTAT_STATE_DIR": str(home),
        "HOMEOSTAT_CLOUD": "openstack",
        "HOMEOSTAT_OS_CLOUD": "own",
    }
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "homeostat", "serve", "--port", "0", *flags],
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            yield from _answering(process, home, settings)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


def _answering(process: "subprocess.Popen[bytes]", home: Path, settings: Mapping[str, str]) -> Iterator[Served]:
    until(lambda: process.poll() is not None or State(home).running(), "the service to run")
    found = State(home).running()
    assert found is not None, (home / "log").read_text()
    with httpx.Client(base_url=f"{found.url}/v1/own", timeout=PATIENCE_S, follow_redirects=True) as http:
        served = Served(home, http, settings)
        eventually(lambda: _answers(http), "the API to answer")
        yield served


def _answers(http: httpx.Client) -> bool:
    try:
        return http.get("stacks").status_code == 200
    except httpx.TransportError:
        return False
