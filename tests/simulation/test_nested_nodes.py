"""The ring with nodes that are stacks, for which a health policy holds: what is unwell inside is converged there, and a
node that was never unwell stays, while workers die and the cloud does not answer. `HOMEOSTAT_SEEDS=1000` plays more."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.services.actions import ConvergenceSettings, StackActions
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.shards import health
from tests.simulation.disturbances import Disturbances
from tests.simulation.parts import Part
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.watched_groups import NODES, SEED
from tests.simulation.world import World

pytestmark = pytest.mark.heavy

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


class Nodes(Part):
    """One cluster of nodes of two servers each, of which some are lost or broken outside. Takes: count — of nodes."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._stack_id = ""
        self._hurt_ones: set[str] = set()
        self._homes: dict[str, str] = {}

    def begin(self) -> None:
        (self._cloud,) = self.world.clouds.values()
        faults = self.world.part(Disturbances)
        often = (faults.kill, faults.die_inside, faults.freeze, faults.black_out, faults.cut_off, faults.limit_rate)
        self.world.acts = [(4, self._hurt), *((1, act) for act in (*often, faults.set_clock, faults.wake_twice))]

    # -- happening ---------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        self._stack_id = self._create()
        for _ in range(STEPS):
            if self.rng.random() < FAULT_RATE:
                self.world.act()
            self.world.end_outages()
            if self.rng.random() < FOLLOWED:
                self.world.replace_dead()
            self.world.step_or_wait(0.0, 0.01, 0.1, 0.5)

    def _create(self) -> str:
        """Without trouble: what health policies do for nodes that were never well is not of interest here."""
        usual, self._cloud.behaviour.faults = self._cloud.behaviour.faults, Faults()
        member = {"type": "AWS::CloudFormation::Stack", "properties": {"TemplateURL": "node.yaml"}}
        wanted = {"count": self._count, "resource_def": member, "nodes": {"seed": f"{SEED}0", "format": "n-$3I"}}
        template = {**NODE, "resources": {NODES: {"type": NodeGroup.name, "properties": wanted}}}
        request = StackRequest(template, files={"node.yaml": json.dumps(NODE)}, internal_types={NodeGroup.name})
        stack_id = self.world.apis[0].stack_service.create("p", None, "s0", request)
        self.world.settle()
        off = ConvergenceSettings(exceptions={NODES: {"converge": False}})
        StackActions(self.db, 900.0).switch(stack_id, off)
        with self.db.write() as tx:
            values = {"id": "policy", "stack_id": stack_id, "name": NODES, "members": True, "source": "policy"}
            health.attach(tx, {**values, "spec": POLICY, "enabled": True}, tx.now())
        self.world.settle()
        self._homes = self._homes_in(stack_id)
        assert len(set(self._homes.values())) == self._count
        self._cloud.behaviour.faults = usual
        return stack_id

    def _homes_in(self, stack_id: str) -> dict[str, str]:
        """Handle of each server inside -> the stack that is its node."""
        return {
            row.handle: row.stack_id
            for row in self.world.rows()
            if row.name in INSIDE and row.handle and row.stack_id != stack_id and row.replaced_by is None
        }

    def _hurt(self) -> None:
        self._homes.update(self._homes_in(self._stack_id))
        handle = self.rng.choice(sorted(self._cloud.things("server")) or [""])
        if handle in self._hurt_ones or handle not in self._homes:
            return
        self._hurt_ones.add(handle)
        if self.rng.random() < 0.5:
            self._cloud.vanish(handle)
        else:
            self._cloud.change(handle, status="error", fault="by hand")
        self.note(f"{handle} is lost or broken")
        self.world.part(Disturbances).sight(handle)

    # -- invariants ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """A server goes only if it, or another one of its node, was hurt."""
        there = self._cloud.things("server")
        for handle in self._homes.keys() - there.keys() - self._hurt_ones:
            mates = {each for each, home in self._homes.items() if home == self._homes[handle]}
            assert mates & self._hurt_ones, f"{handle} has gone, and nothing in its node was unwell"

    def calmed(self) -> None:
        self.world.end_all()
        self._cloud.behaviour = replace(self._cloud.behaviour, faults=Faults())

    def rested(self) -> None:
        servers = self._cloud.things("server")
        assert len(servers) == self._count * len(INSIDE), f"{len(servers)} servers of {self._count} nodes"
        ill = {handle: each["status"] for handle, each in servers.items() if each["status"] != "active"}
        assert not ill, f"nothing has brought back {ill}"
        what = Counter(each for (each,) in self.db.raw.execute("SELECT what FROM recovery"))
        self.world.happened["converged"] = what["CONVERGE"]
        assert not what["RECREATE"] or what["CONVERGE"], "a node was made again before it was converged inside"


def nodes_world(seed: int) -> World:
    rng = random.Random(f"nodes {seed}")
    faults = Faults(unreachable=rng.choice((0.0, 0.05)), lost=rng.choice((0.0, 0.1)))
    behaviour = CloudBehaviour(build_s=rng.choice((0.0, 3.0)), delete_s=rng.choice((0.0, 2.0)), faults=faults)
    workers, members_per_shard = rng.randint(1, 3), rng.choice((2, 1000))
    parts = [Disturbances(), Nodes(rng.randint(2, 4))]
    return World(seed, behaviour, parts, workers=workers, members_per_shard=members_per_shard)


RING = Ring("nested_nodes", nodes_world)


@pytest.mark.parametrize("seed", seeds_to_play(2))
def test_nodes_that_are_stacks_are_brought_back_inside(seed: int) -> None:
    RING.played(seed)


def test_nodes_are_converged_in_these_worlds() -> None:
    RING.play_until(range(18), {"converged": 8, "kills": 8})
