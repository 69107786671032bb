"""The ends of snapshots: `completion` describes the stack, `collection` deletes snapshots with their parts."""
