"""Actions on existing resources.

- `check`: look, and heal or report differences
- `maintenance`: suspend, resume, lock, unlock
- `snapshot`: take a snapshot of a stack
"""
