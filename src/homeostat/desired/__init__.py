"""The desired state: stored revisions as graphs.

- `compiling`: the template of a revision compiled, with the types that its environment names
- `implied`: what definitions imply besides: fingerprints, files and policies as properties, further requirements
- `members`: groups and chains, whose members are made from one definition; which shard a member is in
- `graphs`: the desired graph of each shard, cached
- `texts`: the text and the size of a revision
- `deletion_policies`: deletion policies that a nested stack gets from its root stack
- `redaction`: secrets and hidden parameters, removed from what is shown
- `cache`: what a process keeps because it is expensive to compute
"""
