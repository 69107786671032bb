"""Stacks and their desired state.

- `stacks`: stacks and their current revision; `revisions`, `revision_text`, `files`: all revisions
- `cancellation`, `deletion`, `locks`, `snapshots`: requests that change a stack
- `status_at_rest`, `nested_status`: the status that a stack reports, to users and to its parent
- `views`, `progress`: the queries of the APIs
"""
