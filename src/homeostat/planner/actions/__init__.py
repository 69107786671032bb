"""Actions on existing resources.

- `check`: look, and heal or report what differs
- `maintenance`: suspend, resume, lock, unlock; `maintenance_state`: how the result is seen and recorded
- `snapshot`, `snapshot_state`: take a snapshot of a stack
- `restore`: go back to a snapshot
"""
