"""Lifecycle of one resource: a module for each subject that decides about it.

- `create`, `update`, `replace`, `heal`, `delete`, `adopt`: when each of these begins, and how it is intended
- `in_progress`: an act in progress: its end, its repetition, and its redirection by a newer revision
- `failure`, `marked`, `at_rest`: resources that have failed, are marked unhealthy, or are complete
- `metadata_updates`: groups whose members get new metadata in a rollout; `rollout_gates`: what that listens to
- `external`: resources that stand for things not managed here
- `hooks`: places where a resource stops until a hook is cleared
- `intents`: how a decision is stored before anything acts on it
- `names`: names and tokens for the cloud
"""
