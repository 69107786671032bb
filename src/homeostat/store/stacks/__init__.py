"""Stacks and their desired state.

- `stacks`: the rows of stacks, found and locked; `stack_state`: the one writer of their action and status
- `action_begin`, `action_end`: how an action of a stack begins and ends
- `revisions`, `revision_text`, `files`: the desired state, stored and read
- `cancellation`, `deletion`, `locks`, `snapshots`: requests that change a stack
- `scaling`, `rollouts`: groups that are resized by signals, and members that get new metadata; `rollout_members`:
  which of them come next; `rollout_reports`: what they say of it
- `member_reports`: members' reports between batches; `member_health`: the health of members, for users
- `status_at_rest`, `nested_status`: the status that a stack reports, to users and to its parent
- `below`: the shards of nested stacks
- `former_members`: whose ids things have that are gone
- `views`, `progress`: the queries of the APIs
"""
