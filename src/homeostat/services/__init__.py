"""What requests do, independent of the wire format. None of these operations waits for the engine.

- `stacks`: creates, updates, deletes, validates and previews stacks: the single write path of desired states
- `pipeline`: its stages, from a request to a revision; `deletion_update` updates a stack that is being deleted
- `preview`: the effects of an update; `desired_inside`: the desired states of nested stacks in it
- `actions`, `snapshots`, `marks`: other operations on an existing stack
- `transfer`, `documents`: stacks adopted from, and exported to, another service; `adoption_looks`, `adoption_preview`:
  previews of adoptions
- `listed_groups`: updates of groups by a list of their members
- `quotas`: the operator's limits
- `graphs`, `typed`, `tags`: lookups that several of these need; `client_check`: disconnected clients
"""
