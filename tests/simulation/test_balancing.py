"""The ring with groups of servers behind load balancers, which signals and updates resize and change.

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import copy
import os
import random
from functools import cache
from operator import methodcaller
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from homeostat.clouds.simulated import Faults
from homeostat.resources.families.balanced import SERVER, BalancedServer
from tests.simulation.playing import play_until, replay, with_story
from tests.simulation.templates import DesiredStack, Resources
from tests.simulation.test_scaling import Scaler, ScalingWorld
from tests.simulation.watched import WatchedCloud

pytestmark = pytest.mark.heavy

SEEDS = int(os.environ.get("HOMEOSTAT_SEEDS", "2"))
FIRST = int(os.environ.get("HOMEOSTAT_FIRST_SEED", "0"))
LEAVING = 600
"""Steps of the processes while stacks are deleted, before those who have added listeners take them away again."""
GROUP, POLICY = "AWS::AutoScaling::AutoScalingGroup", "AWS::AutoScaling::ScalingPolicy"


class Balancer(Scaler):
    """Each stack has a group behind a load balancer, with policies; the rest is as with others."""

    def grow(self) -> DesiredStack:
        desired = super().grow()
        desired.resources |= self.balanced()
        return desired

    def mutate(self, desired: DesiredStack) -> DesiredStack:
        """Half of the changes are about the group: another size or image, other ports, or no balancer at all."""
        kept = {name: each for name, each in desired.resources.items() if name.startswith("b")}
        if kept and self._rng.random() < 0.5:
            changed = copy.deepcopy(desired)
            changed.resources |= self.varied(kept)
            return changed
        others = {name: each for name, each in desired.resources.items() if name not in kept}
        changed = super().mutate(DesiredStack(others, desired.nested, desired.held))
        changed.resources |= copy.deepcopy(kept)
        return changed

    def varied(self, kept: Resources) -> Resources:
        draw, fresh = self._rng.random(), self.balanced()
        if draw < 0.4:
            sizes = ("MinSize", "MaxSize", "DesiredCapacity")
            given = fresh["b2"]["properties"]
            properties = {name: value for name, value in kept["b2"]["properties"].items() if name not in sizes}
            properties |= {name: given[name] for name in sizes if name in given}
            return {"b2": {**kept["b2"], "properties": properties}}
        if draw < 0.7:
            return {"b1": fresh["b1"]}
        if draw < 0.9:
            return {"b0": fresh["b0"]}
        return {"b2": fresh["b2"]}

    def balanced(self) -> Resources:
        rng = self._rng
        ports = sorted(rng.sample((80, 81, 82), rng.randint(1, 2)))
        listeners = [{"LoadBalancerPort": port, "InstancePort": 8000 + port, "Protocol": "TCP"} for port in ports]
        low = rng.randint(0, 2)
        group: dict[str, Any] = {
            "AvailabilityZones": ["nova"],
            "LaunchConfigurationName": {"get_resource": "b1"},
            "MinSize": low,
            "MaxSize": low + rng.randint(0, 2),
        }
        if rng.random() < 0.9:
            group["LoadBalancerNames"] = [rng.choice(("b0", {"get_resource": "b0"}))]
        rolling = {"MaxBatchSize": 1, "MinInstancesInService": rng.randint(0, 1)}
        policy = {"AutoScalingGroupName": {"get_resource": "b2"}, "AdjustmentType": "ChangeInCapacity"}
        return {
            "b0": {
                "type": "AWS::ElasticLoadBalancing::LoadBalancer",
                "properties": {"AvailabilityZones": ["nova"], "Listeners": listeners},
            },
            "b1": {
                "type": "AWS::AutoScaling::LaunchConfiguration",
                "properties": {"ImageId": rng.choice(("i", "j")), "InstanceType": "small"},
            },
            "b2": {
                "type": GROUP,
                "properties": group,
                **({"update_policy": {"AutoScalingRollingUpdate": rolling}} if rng.random() < 0.3 else {}),
            },
            "b3": {"type": POLICY, "properties": {**policy, "ScalingAdjustment": rng.choice((1, -1))}},
        }


class BalancingWorld(ScalingWorld):
    """Others add listeners to load balancers by hand: what they have made stays until they take it away in the end.

    checked — places in pools that were found right in the end.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._mutator = Balancer(self.rng, nested=True)
        # Of their own, so that the rest of a world is what it would be without them.
        self._neighbours = random.Random(seed)
        self.checked = 0

    def disturb(self) -> None:
        """In the end others have added listeners to some load balancers, and users delete half of the stacks."""
        super().disturb()
        for cloud in self.clouds.values():
            for balancer in sorted(cloud.things("load_balancer")):
                if self._neighbours.random() < 0.5:
                    self._add_listener(cloud, balancer)
        for stack_id in sorted(self._desired):
            if self._neighbours.random() < 0.5:
                self._request(methodcaller("delete", stack_id), f"delete {stack_id[:6]}")
        for _ in range(LEAVING):
            self.replace_dead()
            if not self.step():
                self._pass_time()
            self.clock.time += self._neighbours.choice((0.0, 0.01, 0.1))

    def _add_listener(self, cloud: WatchedCloud, balancer: str) -> None:
        spec = {"loadbalancer": balancer, "protocol": "TCP", "protocol_port": 7000 + len(cloud.theirs)}
        with patch.object(cloud.behaviour, "faults", Faults()), patch.object(cloud.behaviour, "quota", None):
            handle = cloud.give("listener", spec)
        self.note(f"{handle} is added to {balancer} by hand")

    def calm(self) -> None:
        for cloud in self.clouds.values():
            for handle in cloud.theirs & cloud.things("listener").keys():
                cloud.vanish(handle)
        super().calm()

    def count(self, name: str) -> int:
        """Sum of a count of all clouds."""
        return sum(getattr(cloud, name) for cloud in self.clouds.values())

    def check_places(self) -> None:
        """Each server behind a load balancer is in a pool of each listener, unless the update of its tree has failed:
        what is healed then is as it was, whatever became of the pools."""
        things, rows = self.things(), self.rows()
        complete = {each.id: each for each in self.all_stacks() if not each.deleted_at and each.status == "COMPLETE"}
        resting = {each.id for each in complete.values() if each.root_id in complete}
        for member in (each for each in rows if each.type == BalancedServer.name and each.handle in resting):
            parts = {each.name: each for each in rows if each.stack_id == member.handle}
            server = parts.pop(SERVER)
            assert parts, member.name
            for place in parts.values():
                thing = things[place.handle]
                assert thing["server"] == server.handle, (place.name, thing)
                assert thing["pool"] in things, (place.name, thing)
                self.checked += 1


class Balanced(NamedTuple):
    """What one seed gave: signals that were answered, places that were right in the end, load balancers that were
    deleted together with their parts, and how often that was refused."""

    scaled: int
    checked: int
    cascades: int
    refusals: int


def play(seed: int) -> Balanced:
    with with_story(BalancingWorld(seed), seed, replay(seed, "balancing")) as world:
        world.run()
        world.check_sizes()
        world.check_places()
    return Balanced(world.scaled, world.checked, world.count("cascades"), world.count("refusals"))


played = cache(play)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_balanced_groups_converge_and_nothing_leaks_or_is_made_twice(seed: int) -> None:
    played(seed)


def test_there_are_signals_and_servers_in_pools_in_these_worlds() -> None:
    play_until(played, range(24), {"scaled": 11, "checked": 6})


def test_balancers_are_deleted_together_with_their_parts_unless_others_have_added_some() -> None:
    play_until(played, range(24), {"cascades": 1, "refusals": 1})


def test_random_templates_have_groups_behind_balancers() -> None:
    grown = [Balancer(random.Random(seed), nested=True).grow() for seed in range(20)]
    behind = [desired.resources["b2"]["properties"].get("LoadBalancerNames") for desired in grown]
    assert ["b0"] in behind
    assert [{"get_resource": "b0"}] in behind
