"""Actions on resources that exist.

- `check`: look, and mend or report what differs
- `maintenance`: suspend, resume, lock, unlock; `maintenance_state`: how their result is seen
- `snapshot`, `snapshot_state`: take a snapshot of a stack
- `restore`: go back to a snapshot
"""
