"""A pause in the life of a stack."""

from collections.abc import Callable, Mapping
from typing import Any

from homeostat.model.observed import READY, Condition, Verdict
from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.schema import between, listing, number, one_of

ACTIONS = ("CREATE", "DELETE", "SUSPEND", "RESUME")


class Delay(ResourceType):
    name = "OS::Heat::Delay"
    description = "Takes time, so that what depends on it waits: at least so long, and by chance somewhat longer."
    properties = {
        "min_wait": number("Seconds that it takes at least.", default=0, update=True, constraints=(between(0),)),
        "max_jitter": number("Seconds that chance may add.", default=0, update=True, constraints=(between(0),)),
        "jitter_multiplier": number(
            "What those seconds are multiplied by.", default=1.0, update=True, constraints=(between(0),)
        ),
        "actions": listing("When it takes time.", default=["CREATE"], update=True, constraints=(one_of(*ACTIONS),)),
    }

    def build_object(self, values: Props, token: str, entropy: Callable[[int], bytes]) -> dict[str, Any]:
        """Return the length of the wait; its random part is drawn only once, so that judging again changes nothing."""
        share = int.from_bytes(entropy(8), "big") / 2**64
        return {"wait_s": values["min_wait"] + share * values["max_jitter"] * values["jitter_multiplier"]}

    def fitness(self, thing: Thing, now: float) -> Verdict:
        """Judge by time alone; a delay that is being deleted counts as absent when its wait is over."""
        wait_s = self._wait_s(thing.properties, thing.action, thing.seen.properties)
        due_at = thing.acted_at + wait_s
        if now < due_at:
            return Verdict(Condition.PENDING, f"it waits for {wait_s:g} s, as its properties say", due_at=due_at)
        return Verdict(Condition.ABSENT, "its deletion is over") if thing.action == "DELETE" else READY

    def _wait_s(self, properties: Props, action: str, seen: Mapping[str, Any]) -> float:
        return float(seen.get("wait_s", properties["min_wait"])) if action in properties["actions"] else 0.0


TYPES = [Delay]
