"""The planner decides, and does nothing else: `(world, now) -> steps and waiting reasons`.

It does no I/O and knows no clock, threads or randomness: the same world gives the same plan.

- `frontier`: what may be done in a shard now, in the order of its dependencies; `graph`: the waits between its nodes;
  `cascades`: deletion of wholes before their parts; `removals`: the postponed removals of an update
- `decide`: which subject decides about a resource
- `context`: what all decisions about a shard share; `acts` carries them out, `gates` puts them off
- `outcome`: what an answer of a cloud means for a row; `request_outcome`: outcomes of users' requests;
  `handover_outcome`: outcomes of handovers
- `lifecycle`: creation, update, replacement, healing, deletion, adoption, a module for each
- `actions`: check, suspend and resume, lock and unlock, snapshot and restore
- `effects`: what an act has changed of other things, so that they are looked at again
- `policies`: limits on a decision: healing, rolling updates, unhealthy marks
- `retry`: when a failure is retried, and when it is final
- `report`: explanation, estimate and preview
- `current`, `scope`, `evaluation_weight`, `priority`: facts that several of these need
"""

from homeostat.planner.frontier import Frontier

__all__ = ["Frontier"]
