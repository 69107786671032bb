"""Data for operators and workers, beside the stacks.

- `workers`: the register of workers; `health`: the state of the service
- `periodic`: when periodic work is due; `purge`: deletes what is no longer needed
- `request_turns`, `changed_servers`: what workers share of how they use a cloud
- `cloud_identities`: which cloud the handles belong to
- `message_bus`: progress of notifications
"""
