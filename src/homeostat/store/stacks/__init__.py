"""Stacks: what users asked for.

- `stacks`: stacks and their current revision; `revisions`, `revision_text`, `files`: all revisions
- `cancellation`, `deletion`, `locks`, `snapshots`: requests that change a stack
- `status_at_rest`, `nested_status`: what a stack says about itself and to its parent
- `views`, `progress`: what the APIs read
"""
