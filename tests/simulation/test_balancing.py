"""The ring with groups of servers behind load balancers, which signals and updates resize and change.

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import copy
import random
from typing import Any
from unittest.mock import patch

import pytest

from homeostat.clouds.simulated import Faults
from homeostat.resources.families.balanced import SERVER, BalancedServer
from tests.simulation.parts import Part
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.templates import DesiredStack, Resources
from tests.simulation.test_scaling import Scaler, Scaling
from tests.simulation.trouble import troubled
from tests.simulation.users import Users
from tests.simulation.watched import WatchedCloud

pytestmark = pytest.mark.heavy

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


class Neighbours(Part):
    """Others add listeners to load balancers by hand: what they have made stays until they take it away in the end."""

    def begin(self) -> None:
        self.world.part(Users).gardener = Balancer(self.rng, nested=True)
        # Of their own, so that the rest of a world is what it would be without them.
        self._dice = random.Random(self.world.seed)

    def disturb(self) -> None:
        """In the end others have added listeners to some load balancers, and users delete half of the stacks."""
        users = self.world.part(Users)
        for cloud in self.world.clouds.values():
            for balancer in sorted(cloud.things("load_balancer")):
                if self._dice.random() < 0.5:
                    self._add_listener(cloud, balancer)
        for stack_id in sorted(users.desired):
            if self._dice.random() < 0.5:
                users.delete(stack_id)
        for _ in range(LEAVING):
            self.world.replace_dead()
            self.world.step_or_wait(0.0, 0.01, 0.1, rng=self._dice)

    def _add_listener(self, cloud: WatchedCloud, balancer: str) -> None:
        spec = {"loadbalancer": balancer, "protocol": "TCP", "protocol_port": 7000 + len(cloud.theirs)}
        with patch.object(cloud.behaviour, "faults", Faults()), patch.object(cloud.behaviour, "quota", None):
            handle = cloud.give("listener", spec)
        self.note(f"{handle} is added to {balancer} by hand")

    def calm(self) -> None:
        for cloud in self.world.clouds.values():
            for handle in cloud.theirs & cloud.things("listener").keys():
                cloud.vanish(handle)

    def ended(self) -> None:
        """Each server behind a load balancer is in a pool of each listener, unless the update of its tree has failed:
        what is healed then is as it was, whatever became of the pools."""
        things, rows = self.world.things(), self.world.rows()
        stacks = self.world.all_stacks()
        complete = {each.id: each for each in stacks if not each.deleted_at and each.status == "COMPLETE"}
        resting = {each.id for each in complete.values() if each.root_id in complete}
        for member in (each for each in rows if each.type == BalancedServer.name and each.handle in resting):
            parts = {each.name: each for each in rows if each.stack_id == member.handle}
            server = parts.pop(SERVER)
            assert parts, member.name
            for place in parts.values():
                thing = things[place.handle]
                assert thing["server"] == server.handle, (place.name, thing)
                assert thing["pool"] in things, (place.name, thing)
                self.world.happened["checked"] += 1
        for count in ("cascades", "refusals"):
            self.world.happened[count] += sum(getattr(cloud, count) for cloud in self.world.clouds.values())


RING = Ring("balancing", lambda seed: troubled(seed, Scaling(), Neighbours(), snapshots=True))


@pytest.mark.parametrize("seed", seeds_to_play(2))
def test_balanced_groups_converge_and_nothing_leaks_or_is_made_twice(seed: int) -> None:
    RING.played(seed)


def test_there_are_signals_and_servers_in_pools_in_these_worlds() -> None:
    RING.play_until(range(24), {"scaled": 11, "checked": 6})


def test_balancers_are_deleted_together_with_their_parts_unless_others_have_added_some() -> None:
    RING.play_until(range(24), {"cascades": 1, "refusals": 1})


def test_random_templates_have_groups_behind_balancers() -> None:
    grown = [Balancer(random.Random(seed), nested=True).grow() for seed in range(20)]
    behind = [desired.resources["b2"]["properties"].get("LoadBalancerNames") for desired in grown]
    assert ["b0"] in behind
    assert [{"get_resource": "b0"}] in behind
