"""Deciding, pure: `(world, now) -> steps and waitings`. No I/O, no clock, no randomness (law 2).

`frontier` the moving edge of what may be done in a shard · `decide` what one resource needs · `intend` how that is
put down before anything acts · `hooks` where it stops · `external` what is somebody else's · `asked` what users ask
besides a new desired state · `depart` how one goes, `snapshots` what stays of it · `rolling` the batches of a group ·
`outcome` what an answer of the cloud means ·
`current` which row is the resource · `scope` what functions of a template see · `explain` why things do not move,
`estimate` for how long · `urgency` which shard goes first · `naming` names for the cloud · `backoff` when to try
again
"""

from homeostat.planner.frontier import Frontier

__all__ = ["Frontier"]
