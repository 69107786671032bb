"""The reconciliation loop, and the only package with threads of its own. Read `reconciler` first.

- `reconciler`: runs a pass over a shard: its `stages` one after the other
- `ownership`: who may act in the name of a shard; `redactor`: hides secrets in what a pass stores
- `executor`: turns steps into calls of a cloud
- `nested_stacks`: nested stacks as the things behind resources
- `observer`: looks at the clouds in bulk
- `rolling_update`: updates groups in batches; `metadata_rollouts`: gives new metadata to the members of groups
- `scaling`: resizes groups by signals; `model_servers`: looks up the server that members are to be like
- `healing_brake`: the facts that hold healing back
- `explainer`: explains why a stack does not move; `supposed_worlds`: loads shards as they would be, for previews
- `engine`: puts these parts together; `limits`: time limits and sizes
- `jobs`: which worker works on which shard; `lost_shards`: shards whose owner lost sight of the database
- `periodic`: work beside the passes; `snapshot_end` and `snapshot_gc` complete and delete snapshots
- `fair_turns`: a few threads, of which each project has a share at most
- `worker`: all of it in one process
"""

import warnings

# TaskFlow imports the deprecated module itself; nothing can be done about that here.
warnings.filterwarnings("ignore", "eventletutils module is deprecated", DeprecationWarning)
