"""The effect of a signal to a scaling policy on the size of a group, as in Heat. Pure."""

import math
from dataclasses import dataclass
from enum import StrEnum


class AdjustmentType(StrEnum):
    """Meaning of the amount of an adjustment; the values are the words of HOT."""

    CHANGE = "change_in_capacity"
    EXACT = "exact_capacity"
    PERCENT = "percent_change_in_capacity"


AWS_WORDS = {
    "ChangeInCapacity": AdjustmentType.CHANGE,
    "ExactCapacity": AdjustmentType.EXACT,
    "PercentChangeInCapacity": AdjustmentType.PERCENT,
}
"""Word of AWS -> meaning."""


@dataclass(frozen=True, slots=True)
class Adjustment:
    """An adjustment of the size of a group.

    Attributes:
        group: Reference of the group.
        type: Meaning of `amount`.
        amount: Number of members to add (or to remove, if negative), the new size, or a percentage.
        step_min: Least change in members, if the amount is a percentage.
        cooldown_s: Seconds during which the size stays fixed afterwards; None for the group's own cooldown.
        word: `type` in the word of the policy.
    """

    group: str
    type: AdjustmentType
    amount: float
    step_min: int = 0
    cooldown_s: float | None = None
    word: str = ""


def adjusted(size: int, adjustment: Adjustment, low: int, high: int) -> int:
    """Return the size of a group of `size` members after an adjustment, between the bounds `low` and `high`."""
    return max(low, min(_wanted(size, adjustment), high))


def _wanted(size: int, adjustment: Adjustment) -> int:
    if adjustment.type is AdjustmentType.EXACT:
        return math.trunc(adjustment.amount)
    if adjustment.type is AdjustmentType.CHANGE:
        return size + math.trunc(adjustment.amount)
    exact = size * adjustment.amount / 100
    # A change by less than one member is rounded up to a member.
    change = math.trunc(exact) if abs(exact) >= 1 else math.ceil(abs(exact)) * (1 if exact > 0 else -1)
    if adjustment.step_min and abs(change) < adjustment.step_min:
        change = adjustment.step_min if adjustment.amount > 0 else -adjustment.step_min
    return size + change
