"""The ring with wait conditions and deployments: signals early, late, twice, wrong or never, and lost workers.

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import random
from typing import Any

import pytest

from homeostat.model.errors import Rejected
from homeostat.model.status import Status
from homeostat.resources.registry import kind_of
from homeostat.store.builtin import records
from tests.simulation.actors import Api
from tests.simulation.parts import Part
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.templates import DesiredStack, Resources, TemplateMutator
from tests.simulation.trouble import troubled
from tests.simulation.users import Users
from tests.simulation.world import World

HANDLE, CONDITION = "OS::Heat::WaitConditionHandle", "OS::Heat::WaitCondition"
CONFIG, DEPLOYMENT = "OS::Heat::SoftwareConfig", "OS::Heat::SoftwareDeployment"
LINKED = {CONDITION: ("handle", HANDLE), DEPLOYMENT: ("config", CONFIG)}


class Configurer(TemplateMutator):
    """Half of what it grows waits for signals."""

    def _simple(self, earlier: Resources) -> dict[str, Any]:
        if self._rng.random() < 0.3:
            return super()._simple(earlier)
        there = {each["type"] for each in earlier.values()}
        kinds = [HANDLE, CONFIG, *(kind for kind, (_, other) in LINKED.items() if other in there)]
        kind = self._rng.choice([*kinds, kinds[-1]])
        return {"type": kind, "properties": self._properties(kind, earlier)}

    def _properties(self, kind: str, earlier: Resources) -> dict[str, Any]:
        rng = self._rng
        if kind == HANDLE:
            return {"signal_transport": rng.choice(("TOKEN_SIGNAL", "CFN_SIGNAL"))}
        if kind == CONFIG:
            return {"config": f"v{rng.randint(0, 3)}"}
        if kind not in LINKED:
            return super()._properties(kind, earlier)
        link, other = LINKED[kind]
        named = sorted(name for name, each in earlier.items() if each["type"] == other)
        properties: dict[str, Any] = {link: {"get_resource": rng.choice(named)} if named else "nothing"}
        if kind == CONDITION:
            return {**properties, "timeout": rng.choice((20, 600)), "count": rng.choice((1, 1, 2))}
        actions = rng.choice((["CREATE", "UPDATE"], ["CREATE", "UPDATE", "DELETE"], ["UPDATE"]))
        return {**properties, "server": "srv", "input_values": {"v": rng.randint(0, 3)}, "actions": actions}


class Signalling(Part):
    """Servers that signal, and what waits for their signals."""

    def begin(self) -> None:
        self.world.part(Users).gardener = Configurer(self.rng, nested=self.rng.random() < 0.3)
        self.world.acts.append((8.0, self._signal))

    def _places(self, *, waiting: bool) -> list[tuple[str, str, str]]:
        """Project, kind and handle of what can be signalled; those that wait, or all."""
        with self.db.read() as tx:
            busy = {row.handle for row in self.world.rows() if row.status == Status.IN_PROGRESS and row.handle}
            found = [records.get(tx, each.id) for each in self.world.records()]
        there = [each for each in found if each is not None]
        links = {each.link for each in there if each.id in busy and each.kind == "wait_condition"}
        chosen = [each for each in there if each.kind in ("signal_handle", "software_deployment")]
        mine = [each for each in chosen if not waiting or each.id in busy | links]
        return sorted((each.project, each.kind, each.id) for each in mine)

    def _signal(self) -> None:
        """A server tells that it is done, or has failed; now and then twice, or when nobody waits any more."""
        places = self._places(waiting=self.rng.random() < 0.7)
        if not places or not self.world.serving:
            return
        place = self.rng.choice(places)
        bodies: list[dict[str, Any] | None] = [None, None, {"id": "one"}, {"status": "FAILURE"}]
        if place[1] == "software_deployment":
            bodies = [None, None, {"deploy_status_code": 0}, {"deploy_status_code": 1}]
        api, body = self.rng.choice(self.world.serving), self.rng.choice(bodies)

        def send(api: Api) -> None:
            api.signals.native(*place, body)
            self.world.happened["signalled"] += 1

        api.requests.extend([send] * self.rng.choice((1, 1, 2)))
        self.note(f"signal {place}: {body}")

    def last_word(self) -> None:
        """After the calm every server tells what it has to: nobody waits for ever."""
        for place in self._places(waiting=True):
            try:
                self.world.apis[0].receiver().native(*place, None)
            except Rejected as error:
                self.note(f"refused: {error}")

    def ended(self) -> None:
        self._check_derived()
        self._check_waits()

    def _check_derived(self) -> None:
        """Each derived config is that of one deployment, and what was derived before is gone."""
        stored = self.world.records()
        derived = [each.id for each in stored if each.kind == "software_config" and not records.key_of(each.token)]
        wanted = [each.object["config_id"] for each in stored if each.kind == "software_deployment"]
        assert sorted(derived) == sorted(id for id in wanted if id)

    def _check_waits(self) -> None:
        """Nothing waits for a signal that came. (In a failed stack, what was begun may wait for its time limit:
        the handle may be gone.)"""
        failed = {stack.id for stack in self.world.all_stacks() if stack.status == Status.FAILED}
        for row in self.world.rows():
            if row.stack_id in failed:
                continue
            waits = kind_of(row.type) in ("wait_condition", "software_deployment") and row.handle
            assert not (waits and row.status == Status.IN_PROGRESS), f"{row.name}: {row.reason}"


RING = Ring("signals", lambda seed: troubled(seed, Signalling()))


@pytest.mark.parametrize("seed", seeds_to_play(2))
def test_what_waits_for_signals_converges_and_nothing_leaks_or_is_made_twice(seed: int) -> None:
    RING.played(seed)


def test_there_are_signals_in_these_worlds() -> None:
    RING.play_until(range(12), {"signalled": 11})


def test_a_seed_replays_itself() -> None:
    assert RING.played(1).lines == RING.play(1).lines


def test_only_what_stands_for_a_config_stays_when_its_stack_lets_go_of_it() -> None:
    """The worker died before it knew of the record. What an earlier creation of the same row had made is a leak."""
    world = World(1)
    desired = DesiredStack({"a": {"type": CONFIG, "properties": {"config": "v1"}}})
    api, made = world.apis[0], list[str]()
    api.requests.append(lambda api: made.append(api.stack_service.create("p", None, "s", desired.request())))
    while not world.records():
        world.step()
    (row,), (record,) = world.rows(), world.records()
    assert (row.handle, row.token) == ("", record.token)
    world.workers[0].kill()
    world.replace_dead()
    api.requests.append(lambda _: api.moving.abandon(made[0]))
    world.settle()
    assert [each.id for each in world.records()] == [record.id]
    assert not world.rows()
    with world.db.write() as tx:
        records.add(tx, [records.Record("second", record.kind, "p", f"{row.key}-0", {})])
    with pytest.raises(AssertionError, match="leaked") as leaked:
        world.settle()
    assert str(leaked.value) == "leaked: ['second']"


def test_random_templates_have_what_waits() -> None:
    rng = random.Random(1)
    grown = [Configurer(rng, nested=False).grow() for _ in range(20)]
    kinds = {each["type"] for desired in grown for each in desired.resources.values()}
    assert kinds >= {HANDLE, CONDITION, CONFIG, DEPLOYMENT}
