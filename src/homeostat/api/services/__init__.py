"""Operations behind the APIs, independent of the wire format. None of them waits for the engine.

- `stacks`: the single write path of desired states; `validation`, `prerequisites`, `remote_templates` and
  `remote_stacks` check its input; `deletion_update` updates a stack that is being deleted
- `preview`: the effects of an update
- `actions`, `snapshots`, `marks`: other operations on an existing stack
- `transfer`, `documents`: stacks adopted from, and exported to, another service
- `graphs`, `typed`, `tags`: lookups that several of these need
"""
