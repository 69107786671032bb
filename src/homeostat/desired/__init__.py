"""What should exist: stored revisions as graphs.

- `graphs`: a revision compiled to the desired graph of each shard
- `deletion_policies`: policies that a nested stack has from its root
- `redaction`: secrets and hidden parameters, removed from what is shown
- `cache`: what a process keeps because it is expensive to compute
"""
