"""What operators and workers need beside the stacks.

- `workers`: the register of workers; `health`: how the service fares
- `periodic`: when periodic work is due; `purge`: deletes what is no longer needed
- `cloud_identities`: which cloud the handles belong to
"""
