"""Time limits and sizes of the engine with their defaults, and the time between two looks. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from homeostat.model.limits import DEPTH_MAX, RESOURCES_MAX
from homeostat.model.world import HEAL_SHARE
from homeostat.store.operation.workers import FORGOTTEN_S

PER_THING_S = 0.2
"""Seconds between two looks for each thing of a shard, at most: small shards are looked at often."""
LOOK_S = 0.0005
"""Seconds between two looks for each thing beside one in progress in a project, so that looks take 1 % of a core."""
WAITED_PART = 0.5
"""The next look comes after this part of the time waited so far."""
BUSY_PART = 2.0
"""Factor of the share in progress: with only a few things left, the end is near."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits and sizes that govern a worker; all times are in seconds.

    Attributes:
        lease_s: How long a silent owner keeps a shard.
        slice_s: Time after which a pass ends and gives the shard back, so that other shards get their turn.
        batch: Steps taken at once.
        nested_batch: Steps taken at once in a shard with nested stacks. A step on a nested stack is several statements,
            and a new request, such as a deletion, waits until the batch is done.
        hang_s: A pass that has stored nothing for so long counts as hung, for example in a call of a cloud that never
            answers. Its lease is no longer renewed, so another worker takes the shard over.
        look_busy_s: Time between observations of things in progress; longer if observations are costly and the things
            are many (`busy_interval`).
        look_steady_s: Time between observations of things at rest.
        second_look_s: How long after a thing was not found the owner looks for it once more.
        heal_share: Share of a stack's things that is healed at a time.
        stack_timeout_s: Default time limit of a stack's action.
        depth_max: Levels of nested stacks.
        resources_max: Resources of a root stack, including its nested stacks.
        forget_workers_s: How long a dead worker is still listed.
    """

    lease_s: float = 5.0
    slice_s: float = 2.0
    batch: int = 500
    nested_batch: int = 50
    hang_s: float = 120.0
    look_busy_s: float = 1.0
    look_steady_s: float = 60.0
    second_look_s: float = 0.3
    heal_share: float = HEAL_SHARE
    stack_timeout_s: float = 3600.0
    depth_max: int = DEPTH_MAX
    resources_max: int = RESOURCES_MAX
    forget_workers_s: float = FORGOTTEN_S


def busy_interval(
    busy_s: float, longest_s: float, waited_s: Collection[float], things: int, of_project: int = 0
) -> float:
    """Return the seconds until the next look at a shard in which something is in progress.

    If looks are costly, their number depends on how long the things take, not on how many things there are.

    Args:
        busy_s: Shortest interval.
        longest_s: Longest interval; 0 if looks cost little.
        waited_s: Seconds since each thing in progress was acted on.
        things: Number of things of the shard.
        of_project: Number of things in all shards in progress of the project, as far as known.
    """
    if not waited_s:
        return busy_s
    part, longest_wait_s = min(WAITED_PART, BUSY_PART * len(waited_s) / max(things, 1)), max(waited_s)
    many_s = min(LOOK_S * max(things, of_project), WAITED_PART * longest_wait_s)
    return max(busy_s, many_s, min(longest_s, PER_THING_S * things, part * longest_wait_s))
