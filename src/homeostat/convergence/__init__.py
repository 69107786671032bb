"""The reconciliation loop and its threads. Read `reconciler` first.

- `reconciler`: a pass over a shard; `stages`: the stages of a pass; `ownership`: the right to act for a shard
- `execution`: execution of steps as calls; `nested_stacks`: nested stacks as the things behind resources
- `observer`: observation of the clouds in bulk; `known_things`: things in progress, as last read by an observer
- `health_checks`: rounds of health checks
- `facts`: facts for the planner, from outside a shard
- `members`: changes of a group's members: batches, rollouts, resizes by signals
- `snapshots`: completion and deletion of snapshots
- `engine`: assembly of these parts; `limits`: time limits and sizes, intervals between looks
- `worker`: the worker process; `jobs`: distribution of shards to workers; `threads`: threads of a worker
"""

import warnings

# TaskFlow imports the deprecated module itself; nothing can be done about that here.
warnings.filterwarnings("ignore", "eventletutils module is deprecated", DeprecationWarning)
