"""Data for operators and workers, apart from the stacks.

- `workers`: the register of workers; `health`: the state of the service
- `periodic`: when periodic work is due; `purge`: deletes data that is no longer needed
- `request_turns`, `changed_servers`: workers' shared knowledge about their use of a cloud
- `cloud_identities`: the cloud that handles belong to
- `message_bus`: progress of notifications
"""
