"""The time between two looks at things in progress. Pure."""

from collections.abc import Collection

PER_THING_S = 0.2
"""Seconds between two looks for each thing of a shard, at most: small shards are looked at often."""
WAITED_PART = 0.5
"""The next look comes after this part of the time waited so far."""
BUSY_PART = 2.0
"""Factor of the share in progress: with only a few things left, the end is near."""


def busy_interval(busy_s: float, longest_s: float, waited_s: Collection[float], things: int) -> float:
    """Return the seconds until the next look at a shard in which something is in progress.

    If looks are costly, their number depends on how long the things take, not on how many things there are.

    Args:
        busy_s: Shortest interval.
        longest_s: Longest interval; 0 if looks cost little.
        waited_s: Seconds since each thing in progress was acted on.
        things: Number of things of the shard.
    """
    if not waited_s:
        return busy_s
    part = min(WAITED_PART, BUSY_PART * len(waited_s) / max(things, 1))
    return max(busy_s, min(longest_s, PER_THING_S * things, part * max(waited_s)))
