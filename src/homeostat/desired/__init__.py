"""The desired state: stored revisions as graphs.

- `compiling`: the template of a revision compiled, with the types of its environment
- `implied`: implications of definitions: fingerprints, files and policies as properties, further requirements
- `members`: groups and chains, whose members share one definition; shards of members
- `graphs`: the desired graph of each shard, cached
- `texts`: the text and the size of a revision
- `deletion_policies`: deletion policies that a nested stack gets from its root stack
- `redaction`: removal of secrets and hidden parameters from output
- `cache`: values kept by a process because they are expensive to compute
"""
