"""What requests ask for, independent of the wire format. None of it waits for the engine.

- `stacks`: the single write path of desired states; `validation`, `prerequisites`, `remote_templates` and
  `remote_stacks` check what it is given; `deletion_update` updates a stack that is being deleted
- `preview`: what an update would do
- `actions`, `snapshots`, `marks`: other requests about a stack that exists
- `transfer`, `documents`: stacks adopted from, and exported to, another service
- `graphs`, `typed`, `tags`: lookups that several of these need
"""
