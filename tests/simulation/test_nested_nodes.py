"""The ring with nodes that are stacks, for which a health policy holds: what is unwell inside is converged there, and a
node that was never unwell stays, while workers die and the cloud does not answer. `HOMEOSTAT_SEEDS=1000` plays more."""

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.services.actions import ConvergenceSettings, StackActions
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.shards import health
from tests.simulation.disturbances import DisturbedWorld
from tests.simulation.playing import play_until, replay, with_story
from tests.simulation.watched_groups import NODES, SEED

pytestmark = pytest.mark.heavy

SEEDS = int(os.environ.get("HOMEOSTAT_SEEDS", "2"))
FIRST = int(os.environ.get("HOMEOSTAT_FIRST_SEED", "0"))
STEPS, FAULT_RATE, FOLLOWED = 900, 0.05, 0.03
"""Steps before the calm; chances at each that something happens beside it, and that the dead are followed."""
SERVER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "small"}}
INSIDE = ("web", "db")
NODE = {"heat_template_version": "2018-08-31", "resources": dict.fromkeys(INSIDE, SERVER)}
POLICY = {
    "type": "senlin.policy.health",
    "version": "1.2",
    "properties": {
        "detection": {"interval": 10, "node_update_timeout": 0, "detection_modes": [{"type": "NODE_STATUS_POLLING"}]},
        "recovery": {"actions": [{"name": "RECREATE"}]},
    },
}


class NodesWorld(DisturbedWorld):
    """One cluster of nodes of two servers each.

    hurt — servers that were lost or broken outside; converged, recreated — how often nodes were.
    """

    def __init__(self, seed: int) -> None:
        rng = random.Random(f"nodes {seed}")
        faults = Faults(unreachable=rng.choice((0.0, 0.05)), lost=rng.choice((0.0, 0.1)))
        behaviour = CloudBehaviour(build_s=rng.choice((0.0, 3.0)), delete_s=rng.choice((0.0, 2.0)), faults=faults)
        super().__init__(seed, behaviour, workers=rng.randint(1, 3), members_per_shard=rng.choice((2, 1000)))
        (self.cloud,) = self.clouds.values()
        self._usual = self.cloud.behaviour.faults
        self._ends: list[tuple[float, Callable[[], None]]] = []
        self._hidden = Counter[str]()
        self.count = rng.randint(2, 4)
        self.stack_id = ""
        self.hurt: set[str] = set()
        self._homes: dict[str, str] = {}
        self.converged = self.recreated = 0

    # -- happening ---------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        self.stack_id = self._create()
        weighed = [(4, self._hurt), (1, self._kill), (1, self._die_inside), (1, self._freeze), (1, self._black_out)]
        weighed += [(1, self._cut_off), (1, self._limit_rate), (1, self._set_clock), (1, self._wake_twice)]
        weights, acts = zip(*weighed, strict=True)
        for _ in range(STEPS):
            if self.rng.random() < FAULT_RATE:
                self.rng.choices(acts, weights)[0]()
            self._end_outages()
            if self.rng.random() < FOLLOWED:
                self.replace_dead()
            if not self.step():
                self._pass_time()
            self.clock.time += self.rng.choice((0.0, 0.01, 0.1, 0.5))

    def _create(self) -> str:
        """Without trouble: what health policies do for nodes that were never well is not of interest here."""
        usual, self.cloud.behaviour.faults = self.cloud.behaviour.faults, Faults()
        member = {"type": "AWS::CloudFormation::Stack", "properties": {"TemplateURL": "node.yaml"}}
        wanted = {"count": self.count, "resource_def": member, "nodes": {"seed": f"{SEED}0", "format": "n-$3I"}}
        template = {**NODE, "resources": {NODES: {"type": NodeGroup.name, "properties": wanted}}}
        request = StackRequest(template, files={"node.yaml": json.dumps(NODE)}, internal_types={NodeGroup.name})
        stack_id = self.apis[0].stack_service.create("p", None, "s0", request)
        self.settle()
        off = ConvergenceSettings(exceptions={NODES: {"converge": False}})
        StackActions(self.db, 900.0).switch(stack_id, off)
        with self.db.write() as tx:
            values = {"id": "policy", "stack_id": stack_id, "name": NODES, "members": True, "source": "policy"}
            health.attach(tx, {**values, "spec": POLICY, "enabled": True}, tx.now())
        self.settle()
        self._homes = self.homes(stack_id)
        assert len(set(self._homes.values())) == self.count
        self.cloud.behaviour.faults = usual
        return stack_id

    def homes(self, stack_id: str) -> dict[str, str]:
        """Handle of each server inside -> the stack that is its node."""
        return {
            row.handle: row.stack_id
            for row in self.rows()
            if row.name in INSIDE and row.handle and row.stack_id != stack_id and row.replaced_by is None
        }

    def _hurt(self) -> None:
        self._homes.update(self.homes(self.stack_id))
        handle = self.rng.choice(sorted(self.cloud.things("server")) or [""])
        if handle in self.hurt or handle not in self._homes:
            return
        self.hurt.add(handle)
        if self.rng.random() < 0.5:
            self.cloud.vanish(handle)
        else:
            self.cloud.change(handle, status="error", fault="by hand")
        self.note(f"{handle} is lost or broken")
        self.sight(handle)

    # -- invariants ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """A server goes only if it, or another one of its node, was hurt."""
        super().check()
        there = self.cloud.things("server")
        for handle in self._homes.keys() - there.keys() - self.hurt:
            mates = {each for each, home in self._homes.items() if home == self._homes[handle]}
            assert mates & self.hurt, f"{handle} has gone, and nothing in its node was unwell"

    def calm(self) -> None:
        super().calm()
        for _, end in self._ends:
            end()
        self._ends.clear()
        self.cloud.behaviour = replace(self.cloud.behaviour, faults=Faults())

    def settle(self, within_s: float = 7200.0) -> None:
        super().settle(within_s)
        servers = self.cloud.things("server")
        assert len(servers) == self.count * len(INSIDE), f"{len(servers)} servers of {self.count} nodes"
        ill = {handle: each["status"] for handle, each in servers.items() if each["status"] != "active"}
        assert not ill, f"nothing has brought back {ill}"
        what = Counter(each for (each,) in self.db.raw.execute("SELECT what FROM recovery"))
        self.converged, self.recreated = what["CONVERGE"], what["RECREATE"]
        assert not self.recreated or self.converged, "a node was made again before it was converged inside"


def play(seed: int) -> NodesWorld:
    with with_story(NodesWorld(seed), seed, replay(seed, "nested_nodes")) as world:
        world.run()
    return world


played = cache(play)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_nodes_that_are_stacks_are_brought_back_inside(seed: int) -> None:
    played(seed)


def test_nodes_are_converged_in_these_worlds() -> None:
    play_until(played, range(18), {"converged": 8, "kills": 8})
