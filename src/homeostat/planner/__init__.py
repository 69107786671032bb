"""Decides, and does nothing else: `(world, now) -> steps and waiting reasons`. No I/O, no clock, no randomness.

- `frontier`: what may be done in a shard now, in the order of its dependencies
- `decide`: what one resource needs now
- `outcome`: what an answer of a cloud means for a row
- `lifecycle`: create, update, replace, delete, adopt, and where a resource stops for a hook
- `actions`: check, suspend and resume, lock and unlock, snapshot and restore
- `policies`: what limits a decision: healing, rolling updates, unhealthy marks
- `retry`: when something that failed is tried again, and when it has failed for good
- `report`: explain, estimate and preview
- `current`, `scope`, `evaluation_weight`, `priority`: facts that several of these need
"""

from homeostat.planner.frontier import Frontier

__all__ = ["Frontier"]
