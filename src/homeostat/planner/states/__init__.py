"""States of single rows, from their marks and newest looks.

- `maintenance_state`, `snapshot_state`: progress of maintenance and of snapshots
- `restore`: desired properties with restored data
- `absence`: things that are gone, and missing requirements
- `unkept`: values that the cloud does not keep
"""
