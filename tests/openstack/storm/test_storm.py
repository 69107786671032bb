"""Stacks are made, changed and deleted while workers are killed and answers are lost: nothing doubles, leaks or sticks.

`make storm-openstack KILLS=500 LOST=500 SEED=7` for more of it, or the same once more.
"""

import contextlib
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection

from tests.openstack.projects import Project
from tests.openstack.running import OpenStack
from tests.openstack.storm.service import Service, serving
from tests.openstack.storm.templates import generation
from tests.openstack.storm.trouble import Trouble
from tests.openstack.storm.truth import TYPES, look

KILLS = int(os.environ.get("HOMEOSTAT_KILLS", "20"))
LOST = int(os.environ.get("HOMEOSTAT_LOST", "20"))
SEED = int(os.environ.get("HOMEOSTAT_SEED", time.time_ns() % 1_000_000))
WORKERS = 3
STACKS = 3
ACTS = 6
"""Of users, in one round."""
PAUSE_S = 8.0
"""The longest time between two acts."""
RAGED_S = 300.0
"""The longest time that trouble goes on after the last act: beside much else workers may be killed before they act."""
SETTLED_S = 600.0
LISTED_S = 60.0
pytestmark = [
    pytest.mark.services("octavia"),
    pytest.mark.postgresql,
    pytest.mark.real,
    pytest.mark.timeout(3600 + 30 * (KILLS + LOST)),
]


@dataclass(slots=True)
class Storm:
    """A project, the service, its users, and what was found wrong."""

    project: Project
    admin: Connection
    service: Service
    rng: random.Random
    findings: list[str] = field(default_factory=list)
    _living: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """Name of a stack -> its id, its number, the number of its generation."""
    _born: int = 0

    def say(self, words: str) -> None:
        print(time.strftime("%H:%M:%S"), words, flush=True)

    def act(self) -> None:
        """Create a stack as long as there are few, or change or delete one, whatever it is doing."""
        stacks = self.service.stacks
        if len(self._living) < STACKS and (not self._living or self.rng.random() < 0.6):
            at, self._born = self._born, self._born + 1
            name = f"stack-{at}"
            self._living[name] = stacks.create(name, generation(at, 0)), at, 0
            self.say(f"  {name} is created")
            return
        name = self.rng.choice(sorted(self._living))
        stack_id, at, number = self._living[name]
        if self.rng.random() < 0.25:
            stacks.delete(name, stack_id)
            del self._living[name]
            self.say(f"  {name} is deleted")
            return
        stacks.update(name, stack_id, generation(at, number + 1))
        self._living[name] = stack_id, at, number + 1
        self.say(f"  {name} is changed, {number + 1}")

    def delete_all(self) -> None:
        for name, (stack_id, _, _) in self._living.items():
            self.service.stacks.delete(name, stack_id)
        self._living.clear()

    def is_busy(self) -> bool:
        return any(stack["stack_status"].endswith("IN_PROGRESS") for stack in self.service.stacks.listed())

    def settle(self, within_s: float = SETTLED_S) -> None:
        """Wait until nothing is in progress; what still is without any trouble sticks."""
        deadline = time.monotonic() + within_s
        while self.is_busy() and time.monotonic() < deadline:
            time.sleep(0.5)

    def check(self) -> None:
        """Stacks are complete and of the right names, and the cloud has what they show; nothing more is on its way."""
        deadline = time.monotonic() + LISTED_S
        while (wrong := [*self._wrong()]) and time.monotonic() < deadline:
            time.sleep(1.0)
        for finding in wrong:
            self.say(f"  FOUND: {finding}")
        self.findings += wrong

    def _wrong(self) -> Iterator[str]:
        there = self.service.stacks.listed()
        names = sorted(stack["stack_name"] for stack in there)
        if names != sorted(self._living):
            yield f"there are the stacks {names}, and not {sorted(self._living)}"
        shown: dict[str, dict[str, str]] = {}
        for stack in there:
            if not stack["stack_status"].endswith("COMPLETE"):
                yield f"{stack['stack_name']} is {stack['stack_status']}: {stack['stack_status_reason']}"
            for resource in self.service.stacks.resources(stack):
                yield from self._of(stack, resource, shown)
        yield from look(self.project, self.admin).differs(shown)

    def _of(self, stack: dict[str, Any], resource: dict[str, Any], shown: dict[str, dict[str, str]]) -> Iterator[str]:
        name = f"{stack['stack_name']}.{resource['resource_name']}"
        if not resource["resource_status"].endswith("COMPLETE"):
            yield f"{name} is {resource['resource_status']}: {resource['resource_status_reason']}"
        kind, id = TYPES.get(resource["resource_type"]), resource["physical_resource_id"]
        if kind and id:
            shown.setdefault(kind, {})[id.rpartition("/")[2]] = name

    def round(self, trouble: Trouble) -> None:
        """Users act while all goes wrong; then all is as they wanted it."""
        with trouble.raging(self.is_busy):
            for _ in range(ACTS):
                self.act()
                time.sleep(self.rng.uniform(0.0, PAUSE_S))
            self.settle(RAGED_S)
        self.settle()
        self.check()


@pytest.fixture
def storm(project: Project, postgresql_database_url: str, tmp_path: Path) -> Iterator[Storm]:
    with (
        contextlib.closing(project.admin()) as admin,
        serving(project, postgresql_database_url, tmp_path, WORKERS) as service,
    ):
        yield Storm(project, admin, service, random.Random(SEED))


@pytest.mark.shows("CV5", "CV18")
def test_storm(storm: Storm, openstack_cloud: OpenStack) -> None:
    """CV5, CV18: nothing is doubled, leaked or stuck."""
    storm.say(f"seed {SEED}; logs in {storm.service.directory}")
    trouble = Trouble(storm.service, openstack_cloud, random.Random(SEED + 1), KILLS, LOST)
    rounds = 0
    while not trouble.is_over:
        storm.round(trouble)
        rounds += 1
        storm.say(f"round {rounds}: {trouble.figures}, {len(storm.findings)} findings")
    storm.delete_all()
    storm.settle()
    storm.check()
    storm.say(f"{rounds} rounds, {trouble.figures}: {dict(sorted(trouble.lost.items()))}")
    assert not storm.findings, "\n".join(storm.findings)
