"""The reconciliation loop and its threads. Read `reconciler` first.

- `reconciler`: a pass over a shard; `stages`: the stages of a pass
- `ownership`: the right to act for a shard; `redactor`: redaction of secrets in stored text
- `executor`: execution of steps as calls of a cloud; `encrypted_operations`: operations with secret arguments;
  `recovery_calls`: workflows and webhooks of recoveries
- `nested_stacks`: nested stacks as the things behind resources; `inside_stacks`: unhealthy things inside them
- `observer`: observation of the clouds in bulk; `look_interval`: intervals between looks
- `health_checks`: rounds of health checks; `health_facts`: health policies and their facts for the planner
- `members`: changes of a group's members: batches and rollouts
- `scaling`: resizes of groups by signals; `model_servers`: lookup of model servers for groups
- `healing_brake`, `absences`: facts for limits: healing in sibling shards, absent members
- `hypothetical_worlds`: hypothetical shards for previews
- `engine`: assembly of these parts; `limits`: time limits and sizes
- `jobs`: distribution of shards to workers; `lost_shards`: shards with an uncertain lease
- `periodic`: threads for periodic tasks; `snapshot_end`, `snapshot_gc`: completion and deletion of snapshots
- `fair_turns`: threads shared fairly by projects
- `worker`: the worker process
"""

import warnings

# TaskFlow imports the deprecated module itself; nothing can be done about that here.
warnings.filterwarnings("ignore", "eventletutils module is deprecated", DeprecationWarning)
