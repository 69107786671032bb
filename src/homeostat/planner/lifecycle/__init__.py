"""Lifecycle of one resource: a module for each subject that decides about it.

- `create`, `update`, `replace`, `heal`, `delete`, `adopt`: the beginning of each of these acts, and its intent
- `deletion_policy`: deletion policies; `cascade`: deletion together with parts; `deleted_around`: resources of a nested
  stack below a deletion
- `handover`: transfer of exclusive resources to a replacement
- `in_progress`: an act in progress: its end, its repetition, and its redirection by a newer revision
- `failure`, `marked`, `at_rest`: resources that have failed, are marked unhealthy, or are complete
- `recovery`, `recovery_state`: recovery by health policies, and its state in rows
- `requested`: users' operations, checks and recoveries
- `rollouts`: groups during rollouts; `rollout_gates`: the handles of these rollouts
- `external`: resources that reference external things
- `hooks`: stops of a resource until a hook is cleared
- `intents`: storage of decisions before any action
- `deadlines`: time limits of acts in progress
"""
