"""How long after a look things in progress are looked at again. Pure."""

from collections.abc import Collection

EACH_S = 0.2
"""Seconds between two looks for each thing of a shard, at most: small shards are looked at often."""
WAITED_PART = 0.5
"""Part of the time waited so far for which is waited once more."""
BUSY_PART = 2.0
"""Factor of the share that is in progress: when only a few are left, the end is near."""


def busy_interval(busy_s: float, longest_s: float, waited_s: Collection[float], things: int) -> float:
    """Return the seconds until the next look at a shard in which something is in progress.

    Where looks cost something, how many there are is to follow from how long many things take, and not from how many
    things there are.

    Args:
        busy_s: Shortest interval.
        longest_s: Longest interval; 0 where looks cost little.
        waited_s: Seconds since each thing in progress was acted on.
        things: How many things the shard has.
    """
    if not waited_s:
        return busy_s
    part = min(WAITED_PART, BUSY_PART * len(waited_s) / max(things, 1))
    return max(busy_s, min(longest_s, EACH_S * things, part * max(waited_s)))
