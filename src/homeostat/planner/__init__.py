"""Pure decisions of the engine: `(world, now) -> steps and waiting reasons`.

The planner does no I/O and has no clock, threads or randomness: the same world always gives the same plan.

- `frontier`: resources of a shard that may be acted on now, in the order of their dependencies; `graph`: the waits
  between its nodes; `cascades`: deletion of wholes before their parts; `removals`: the postponed removals of an update
- `decide`: choice of the module that decides about a resource
- `context`: shared state of the decisions about a shard; `acts`: their intents and steps; `gates`: their postponement
- `outcome`: effect of a cloud's answer on a row; `request_outcome`: outcomes of users' requests; `handover_outcome`:
  outcomes of handovers
- `lifecycle`: creation, update, replacement, healing, deletion, adoption, a module for each
- `actions`: check, suspend and resume, lock and unlock, snapshot and restore
- `effects`: side effects of an act, which make further things be observed again
- `members`: changes of a group's members: batches and rollouts
- `policies`: limits on decisions: healing, budgets, unhealthy marks
- `states`: states of single rows, such as maintenance and absence
- `retry`: intervals between retries, and causes of failures that may end
- `report`: explanation, estimate and preview
- `specs`, `names`: requested cloud objects, their names and tokens
- `current`, `scope`, `evaluation_weight`, `priority`: shared facts

Each package stands above the packages that it imports: `report`, `lifecycle`, `actions`, `policies`, `states`.
"""

from homeostat.planner.frontier import Frontier

__all__ = ["Frontier"]
