"""Deciding, pure: `(world, now) -> steps and waitings`. No I/O, no clock, no randomness (law 2).

`frontier` the moving edge of what may be done in a shard · `decide` what one resource needs · `depart` how one goes,
`snapshots` what stays of it · `current` which row is the resource · `outcome` what an answer of the cloud means ·
`naming` names for the cloud · `backoff` when to try again
"""

from homeostat.planner.frontier import Frontier

__all__ = ["Frontier"]
