"""Operations behind the APIs, independent of the wire format. None of them waits for the engine.

- `stacks`: creates, updates, deletes, validates and previews stacks: the single write path of desired states
- `pipeline`: its stages, from a request to a revision; `deletion_update` updates a stack that is being deleted
- `preview`: the effects of an update
- `actions`, `snapshots`, `marks`: other operations on an existing stack
- `transfer`, `documents`: stacks adopted from, and exported to, another service
- `quotas`: the operator's limits
- `graphs`, `typed`, `tags`: lookups that several of these need
"""
