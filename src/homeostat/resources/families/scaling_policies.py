"""Scaling policies, whose URLs receive signals."""

from collections.abc import Mapping
from typing import Any, ClassVar

from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.rules import require
from homeostat.resources.scaling_adjustments import AWS_WORDS, Adjustment, AdjustmentType
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    between,
    integer,
    number,
    one_of,
    text,
)

POLICY_KIND = "scaling_policy"


class ScalingPolicy(ResourceType):
    """A scaling policy, stored by the service itself, with URLs that receive signals.

    Attributes:
        addresses: Attribute -> property of the record with its value.
        words: Names of the properties for the type of the adjustment and its least step.
        names: Names of the properties for the group, the amount and the cooldown.
    """

    secretive = True
    name = "OS::Heat::ScalingPolicy"
    kind = POLICY_KIND
    description = "Resizes a group when it is signalled."
    properties = {
        "auto_scaling_group_id": text("The group.", required=True),
        "scaling_adjustment": number("By how much, or to how many.", required=True, update=True),
        "adjustment_type": text(
            "What the adjustment means.",
            required=True,
            update=True,
            constraints=(one_of(*AdjustmentType),),
        ),
        "cooldown": number("Seconds after a change in which the size stays.", update=True),
        "min_adjustment_step": integer(
            "Members at least, where the adjustment is in per cent.", update=True, constraints=(between(0),)
        ),
    }
    attributes = {
        "alarm_url": Attribute("Signed address that takes signals of alarms.", live=True, secret=True),
        "signal_url": Attribute("Address that takes signals of those who may act in the project."),
    }
    addresses: ClassVar[Mapping[str, str]] = {"alarm_url": "url", "signal_url": "endpoint"}
    words: ClassVar[tuple[str, str]] = ("adjustment_type", "min_adjustment_step")
    names: ClassVar[tuple[str, str, str]] = ("auto_scaling_group_id", "scaling_adjustment", "cooldown")

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        kind, step = self.words
        percent = str(values.get(kind)).lower().startswith("percent") or values.get(kind) is UNKNOWN
        require(
            percent or values.get(step) is None,
            f"{step} is only for adjustments in per cent: leave it out, or change {kind}",
            path,
        )

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {"name": physical_name, **super().spec(values, physical_name)}

    def adjustment(self, spec: Props) -> Adjustment:
        """Return the adjustment that a signal makes, from the spec of a policy."""
        group, amount, cooldown = (spec.get(name) for name in self.names)
        word, step = (spec.get(name) for name in self.words)
        meaning = AWS_WORDS.get(str(word)) or AdjustmentType(str(word))
        return Adjustment(str(group), meaning, amount or 0, step or 0, cooldown, str(word))

    def attribute(self, thing: Thing, name: str) -> Any:
        field = self.addresses.get(name)
        return thing.seen.properties.get(field) if field else super().attribute(thing, name)

    def show(self, thing: Thing) -> Any:
        """Return everything but the URLs, which have separate attributes."""
        return {name: value for name, value in thing.seen.properties.items() if name not in ("url", "endpoint")}


class AwsScalingPolicy(ScalingPolicy):
    secret_reference = True
    name = "AWS::AutoScaling::ScalingPolicy"
    properties = {
        "AutoScalingGroupName": text("The group.", required=True),
        "ScalingAdjustment": integer("By how much, or to how many.", required=True, update=True),
        "AdjustmentType": text(
            "What the adjustment means.",
            required=True,
            update=True,
            constraints=(one_of(*AWS_WORDS),),
        ),
        "Cooldown": integer("Seconds after a change in which the size stays.", update=True),
        "MinAdjustmentStep": integer(
            "Members at least, where the adjustment is in per cent.", update=True, constraints=(between(0),)
        ),
    }
    attributes = {"AlarmUrl": Attribute("Signed address that takes signals of alarms.", live=True, secret=True)}
    addresses = {"AlarmUrl": "url"}
    words = ("AdjustmentType", "MinAdjustmentStep")
    names = ("AutoScalingGroupName", "ScalingAdjustment", "Cooldown")

    def reference(self, thing: Thing) -> Any:
        """Its signed address."""
        return thing.seen.properties.get("url") or thing.name


TYPES: list[type[ResourceType]] = [ScalingPolicy, AwsScalingPolicy]
