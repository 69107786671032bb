"""The reconciliation loop, and the only package with threads of its own. Read `reconciler` first.

- `reconciler`: one pass over a shard: load, decide, store intents, act, record; `loader` reads its state
- `executor`: turns steps into calls of a cloud
- `observer`: looks at the clouds in bulk
- `nested_stacks`: nested stacks as the things behind resources; `tree_size` limits them
- `rollout`: updates groups in batches
- `healing_brake`: the facts that hold healing back
- `jobs`: which worker works on which shard
- `periodic`: work beside the passes; `snapshot_end` and `snapshot_gc` complete and delete snapshots
- `explainer`: explains why a stack does not move
- `worker`: all of it in one process
"""

import warnings

# TaskFlow imports the deprecated module itself; nothing can be done about that here.
warnings.filterwarnings("ignore", "eventletutils module is deprecated", DeprecationWarning)
