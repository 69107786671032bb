"""The desired state: stored revisions as graphs.

- `graphs`: a revision compiled to the desired graph of each shard
- `deletion_policies`: deletion policies that a nested stack gets from its root stack
- `redaction`: secrets and hidden parameters, removed from what is shown
- `cache`: what a process keeps because it is expensive to compute
"""
