"""Actions on existing resources.

- `check`: look, and heal or report differences
- `maintenance`: suspend, resume, lock, unlock; `maintenance_state`: observation and record of their results
- `snapshot`, `snapshot_state`: take a snapshot of a stack
- `restore`: go back to a snapshot
"""
