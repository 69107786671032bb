"""Templates for the ring of rollouts: groups with metadata in any stack, and fleets in which little else goes wrong."""

import copy
from typing import Any

from homeostat.model.rollout import CANARY, IMMEDIATE, ROLLING
from tests.simulation.templates import GROUP, INNER, DesiredStack, Resources, TemplateMutator

HANDLE, CONDITION = "OS::Heat::WaitConditionHandle", "OS::Heat::WaitCondition"
SCALING_GROUP, SCALING_POLICY = "OS::Heat::AutoScalingGroup", "OS::Heat::ScalingPolicy"
FLEETS = (GROUP, SCALING_GROUP)
FLEET, ALARM = "r0", "a0"
"""Names of the group of a fleet, and of the handle that takes alarms about it."""
VALUES = 4
"""Different metadata that a group may have."""


class Roller(TemplateMutator):
    """Each stack that it grows has a group with metadata, and mostly a wait condition that depends on it."""

    def grow(self) -> DesiredStack:
        desired = super().grow()
        desired.resources[FLEET] = self._group()
        if self._rng.random() < 0.6:
            desired.resources["r1"] = {"type": HANDLE}
            desired.resources["r2"] = {"type": CONDITION, "properties": self._properties(CONDITION, desired.resources)}
            desired.resources["r2"]["depends_on"] = [FLEET]
        return desired

    def mutate(self, desired: DesiredStack) -> DesiredStack:
        changed = super().mutate(desired)
        group = changed.resources.get(FLEET)
        if group is not None and group["type"] == GROUP and self._rng.random() < 0.6:
            group["metadata"] = {"v": self._rng.randrange(VALUES)}
            if self._rng.random() < 0.3:
                self._gate(changed.resources)
        return changed

    def _gate(self, resources: Resources) -> None:
        """A gate that comes with new metadata, or one with another handle in its place."""
        rng = self._rng
        handle = rng.choice(("h0", "h1"))
        resources[handle] = {"type": HANDLE, **({"depends_on": [FLEET]} if rng.random() < 0.1 else {})}
        properties = {"handle": {"get_resource": handle}, "timeout": rng.choice((20, 600)), "count": rng.choice((1, 2))}
        resources["r9"] = {"type": CONDITION, "properties": properties, "depends_on": [FLEET]}

    def _group(self) -> dict[str, Any]:
        rng, group = self._rng, super()._group()
        group["properties"]["count"] = rng.randint(1, 5)
        group["metadata"] = {"v": rng.randrange(VALUES)}
        group["properties"]["metadata_update_pattern"] = rng.choice((ROLLING, ROLLING, CANARY, IMMEDIATE))
        group["update_policy"] = {**group.get("update_policy", {}), "rollout": self._rollout()}
        return group

    def _rollout(self, share: float = 0.25) -> dict[str, Any]:
        """Each setting with this chance."""
        rng = self._rng
        chosen = {
            "steps": rng.choice((["1", "50%", "100%"], ["100%"], ["2"], ["34%", "3", "80%"])),
            "bake_time": rng.choice((1, 5)),
            "max_failures": rng.choice((1, 2)),
            "max_failures_per_step": rng.choice((0, 1)),
            "min_success_percent": 50,
            "on_failure": rng.choice(("rollback", "hold", "hold", "abort")),
            "approval": True,
            "order": rng.choice(("random", "zone")),
            "progress_deadline": rng.choice((5, 60)),
            "checks": ["https://health.example/"],
        }
        return {name: chosen[name] for name in sorted(chosen) if rng.random() < share}

    def _change(self, resources: Resources, name: str) -> None:
        resource = resources[name]
        if resource["type"] == GROUP and self._rng.random() < 0.6:
            resource["metadata"] = {"v": self._rng.randrange(VALUES)}
            if self._rng.random() < 0.2:
                resource |= {name: each for name, each in self._group().items() if name != "properties"}
            return
        super()._change(resources, name)

    def _properties(self, kind: str, earlier: Resources) -> dict[str, Any]:
        if kind == HANDLE:
            return {}
        if kind == CONDITION:
            return {"handle": self._one_of(HANDLE, earlier), "timeout": self._rng.choice((60, 600)), "count": 1}
        return super()._properties(kind, earlier)

    # -- fleets ------------------------------------------------------------------------------------------------------

    def fleet(self) -> DesiredStack:
        """A group whose members are mostly well, with the gates of its rollouts."""
        rng = self._rng
        resources: Resources = {}
        alarms = [ALARM] if rng.random() < 0.2 else []
        resources |= {name: {"type": HANDLE} for name in alarms}
        for number in range(rng.choice((0, 1, 1, 1, 1, 2))):
            handle = f"h{number}"
            waits = {"handle": {"get_resource": handle}, "timeout": rng.choice((20, 60, 60, 600)), "count": 1}
            resources[handle] = {"type": HANDLE}
            resources[f"c{number}"] = {"type": CONDITION, "properties": waits, "depends_on": [FLEET]}
        kind, metadata = rng.choice((GROUP, GROUP, SCALING_GROUP)), {"v": rng.randrange(VALUES)}
        resources[FLEET] = {"type": kind, "metadata": metadata, "properties": self._sized(kind)}
        if kind == SCALING_GROUP:
            one_more = {"adjustment_type": "change_in_capacity", "scaling_adjustment": 1}
            properties = {"auto_scaling_group_id": {"get_resource": FLEET}, **one_more}
            resources["p0"] = {"type": SCALING_POLICY, "properties": properties}
        self._set(resources, alarms)
        return DesiredStack(resources, {INNER: {"i0": {"type": "OS::Heat::RandomString"}}})

    def turned(self, desired: DesiredStack) -> DesiredStack:
        """The same fleet with other metadata, and rarely with other settings, or another size."""
        changed, rng = copy.deepcopy(desired), self._rng
        fleet = changed.resources[FLEET]
        fleet["metadata"] = {"v": (fleet["metadata"]["v"] + rng.randrange(1, VALUES)) % VALUES}
        if rng.random() < 0.25:
            self._set(changed.resources, [ALARM] if ALARM in changed.resources else [])
        if rng.random() < 0.1:
            self.resize(changed)
        if rng.random() < 0.05:
            self._gate(changed.resources)
        return changed

    def resize(self, desired: DesiredStack) -> None:
        """Give a fleet another size; half of the time its conditions wait for all of its members from then on."""
        fleet, size = desired.resources[FLEET], self._rng.randint(2, 6)
        name = "count" if fleet["type"] == GROUP else "desired_capacity"
        fleet["properties"][name] = size
        if self._rng.random() < 0.5:
            for each in self._conditions(desired.resources):
                each["properties"]["count"] = size

    def _conditions(self, resources: Resources) -> list[dict[str, Any]]:
        return [each for each in resources.values() if each["type"] == CONDITION]

    def revised(self, desired: DesiredStack) -> DesiredStack:
        """The same fleet with other gates, times or steps."""
        changed, rng = copy.deepcopy(desired), self._rng
        conditions = self._conditions(changed.resources)
        way = rng.choice(("no gate", "no gate", "time", "gate", "settings", "settings"))
        if way == "no gate" and conditions:
            gone = rng.choice(conditions)
            changed.resources = {name: each for name, each in changed.resources.items() if each is not gone}
        elif way == "time" and conditions:
            rng.choice(conditions)["properties"]["timeout"] = rng.choice((20, 60, 600))
        elif way == "gate":
            self._gate(changed.resources)
        else:
            self._set(changed.resources, [ALARM] if ALARM in changed.resources else [])
        return changed

    def _sized(self, kind: str) -> dict[str, Any]:
        rng = self._rng
        server = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f", "name": "m%index%"}}
        double = {"type": "OS::Heat::TestResource", "properties": {"value": "%index%"}}
        member = rng.choice((server, server, double, {"type": INNER, "properties": {"given": "%index%"}}))
        if kind == GROUP:
            return {"count": rng.randint(2, 5), "resource_def": member}
        return {"min_size": 1, "max_size": 6, "desired_capacity": rng.randint(2, 4), "resource": member}

    def _set(self, resources: Resources, alarms: list[str]) -> None:
        """Give a fleet a pattern and settings."""
        rng, fleet = self._rng, resources[FLEET]
        pattern = rng.choice((ROLLING, ROLLING, ROLLING, CANARY, CANARY, CANARY, CANARY, CANARY, CANARY, IMMEDIATE))
        fleet["properties"]["metadata_update_pattern"] = pattern
        rollout = {**self._rollout(0.2), **({"alarms": alarms} if alarms else {})}
        if pattern == ROLLING:
            rollout.pop("steps", None)
        elif rng.random() < 0.5:
            rollout["steps"] = rng.choice((["1", "50%", "100%"], ["2", "3"], ["34%", "3", "80%"]))
        if rng.random() < 0.4:
            rollout["on_failure"] = rng.choice(("hold", "hold", "abort"))
        if rng.random() < 0.4:
            rollout |= {"max_failures": rng.choice((1, 2)), "min_success_percent": 50}
        fleet["update_policy"] = {"rollout": rollout}
