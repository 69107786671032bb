"""Things change others, answers are lost and workers die: at each COMPLETE what is shown is so (ADR 0099).

What is stored of a thing that others change, and what a dependant has read of it, is what the cloud has."""

import random
from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.kinds.effects import EFFECTS
from homeostat.model.status import Status
from homeostat.resources.registry import kind_of
from homeostat.store.shards import fair_queue
from tests.component.running import Service
from tests.component.test_effects import CASES, attr
from tests.simulation.playing import seeds_to_play

UPDATES = 3


class Died(BaseException):
    """kill -9."""


class ChangingWorld(Service):
    """A service whose workers die before, in or after an act, on a cloud that loses answers; each COMPLETE is judged.

    deaths, judged — how often workers have died, and things were compared at a COMPLETE."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"effects {seed}")
        faults = Faults(lost=self.rng.choice((0.0, 0.2, 0.5)), refused=self.rng.choice((0.0, 0.1)))
        slow = self.rng.choice((0.0, 0.0, 10.0))
        super().__init__(CloudBehaviour(build_s=slow, delete_s=self.rng.choice((0.0, slow)), faults=faults))
        self.deaths = self.judged = 0
        self._deadly = self.rng.choice((0.0, 0.1, 0.3))
        self._execute = self.executor.execute
        self.executor.execute = self._and_die  # type: ignore[assignment,method-assign]
        self._at: dict[str, tuple[str, int]] = {}
        self.wrong: list[str] = []

    def _and_die(self, *what: Any) -> Any:
        when = self.rng.random() / self._deadly if self._deadly else 1.0
        if when < 0.3:
            raise Died
        answers = self._execute(*what)
        if when < 1.0 and answers:
            raise Died
        return answers

    def work(self, passes_max: int = 300) -> None:
        for _ in range(passes_max):
            with self.db.read() as tx:
                if fair_queue.due_in(tx, self.clock.now(), 1.0) > 0:
                    return
            try:
                run_pass(self.reconciler, self.claim())
            except Died:
                self.deaths += 1
            self._judge()
        raise AssertionError(f"more than {passes_max} passes without an end; due: {self.due()}")

    def _judge(self) -> None:
        for stack in self.stacks():
            now = (stack.status, stack.revision)
            if now != self._at.get(stack.id) and stack.status == Status.COMPLETE and stack.deleted_at is None:
                self.wrong += self._stale(stack.id)
            self._at[stack.id] = now

    def _stale(self, stack_id: str) -> list[str]:
        """What is shown of things that others change, or was read of them, and is not so in the cloud."""
        things, rows = self.cloud.things(), self.rows(stack_id)
        found = []
        for name, fields in affected(rows, things).items():
            row = self.row(stack_id, name)
            seen, real = self.seen(stack_id, name), things[row.handle]
            read = self.row(stack_id, f"{name}-read").properties["value"]
            for field in fields:
                self.judged += 1
                what = f"{name}.{field} is {real.get(field)}"
                if seen.get(field) != real.get(field):
                    found.append(f"{what}, and is shown as {seen.get(field)}")
                if read.get(field) != real.get(field):
                    found.append(f"{what}, and was read as {read.get(field)}")
        return found


def affected(rows: list[Any], things: dict[str, dict[str, Any]]) -> dict[str, set[str]]:
    """Names of the resources that others may change -> the fields that these change."""
    kinds = {kind_of(row.type) for row in rows}
    found = {}
    for row in rows:
        effects = [each for kind in kinds for each in EFFECTS.get(kind, ()) if each.kind == kind_of(row.type)]
        if effects and row.handle in things and row.name.endswith("-changed"):
            found[row.name] = {field for each in effects for field in each.changes}
    return found


def renamed(tree: Any, names: dict[str, str]) -> Any:
    """A part of a template in which resources have other names."""
    if isinstance(tree, dict):
        if "get_resource" in tree:
            return {"get_resource": names.get(tree["get_resource"], tree["get_resource"])}
        return {key: renamed(each, names) for key, each in tree.items()}
    return [renamed(each, names) for each in tree] if isinstance(tree, list) else tree


def part(number: int, what: str, *, whole: bool) -> dict[str, Any]:
    """One of the cases: what changes the other thing, unless it is left out, and who reads it then."""
    resources, last, read, _ = CASES[what]
    other = read["get_attr"][0]
    names = {name: f"r{number}-{name}" for name in resources} | {other: f"r{number}-{other}-changed"}
    found = {names[name]: renamed(each, names) for name, each in resources.items() if whole or name != last}
    for each in found.values():
        each.update({"depends_on": names.get(each["depends_on"], each["depends_on"])} if "depends_on" in each else {})
    after = [names[last]] if whole else []
    value = {"type": "json", "value": attr(names[other], "show")}
    return found | {f"{names[other]}-read": {"type": "OS::Heat::Value", "properties": value, "depends_on": after}}


def play(seed: int) -> ChangingWorld:
    world = ChangingWorld(seed)
    cases = world.rng.sample(sorted(CASES), world.rng.randint(1, 3))

    def wanted() -> dict[str, Any]:
        parts = [part(number, what, whole=world.rng.random() < 0.7) for number, what in enumerate(cases)]
        return {name: each for found in parts for name, each in found.items()}

    stack_id = world.create(wanted())
    world.rest(3000.0)
    for _ in range(UPDATES):
        world.update(stack_id, wanted())
        world.rest(3000.0)
    return world


@pytest.mark.parametrize("seed", seeds_to_play(10))
def test_what_is_shown_at_complete_is_so(seed: int) -> None:
    assert play(seed).wrong == []


def test_these_worlds_really_make_trouble() -> None:
    worlds = [play(seed) for seed in range(5)]
    assert sum(world.deaths for world in worlds) > 4
    assert sum(world.judged for world in worlds) > 20


def test_the_invariant_sees_what_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the looks again such worlds are wrong; the cloud goes by the table as before."""
    monkeypatch.setattr("homeostat.planner.effects.EFFECTS", {})
    worlds = [play(seed) for seed in range(6)]
    assert any(world.wrong for world in worlds)
