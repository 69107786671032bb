"""Operations behind the APIs' requests, independent of the wire format. None of them waits for the engine.

- `stacks`: creates, updates, deletes, validates and previews stacks: the single write path of desired states
- `pipeline`: its stages, from a request to a revision; `deletion_update` updates a stack that is being deleted
- `preview`: the effects of an update; `desired_inside`: the desired states of its nested stacks
- `actions`, `snapshots`, `marks`: further operations on an existing stack
- `explainer`: explanations of stacks at a standstill
- `transfer`, `documents`: stacks adopted from, and exported to, another service; `adoption_looks`, `adoption_preview`:
  previews of adoptions
- `listed_groups`: updates of groups by a list of their members
- `quotas`: the operator's limits
- `graphs`, `typed`, `tags`: shared lookups; `client_check`: disconnected clients
"""
