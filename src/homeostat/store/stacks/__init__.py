"""Stacks and their desired state.

- `stacks`: find and lock the rows of stacks; `stack_state`: the only writer of their action and status
- `action_begin`, `action_end`: the begin and the end of an action of a stack
- `revisions`, `contents`, `files`: store and read the desired state
- `cancellation`, `deletion`, `locks`, `snapshots`: requests that change a stack
- `scaling`, `rollouts`: groups resized by signals, and members that get new metadata; `rollout_members`: the members
  that come next; `rollout_reports`: their reports
- `member_reports`: members' reports between batches; `member_health`: the health of members, for users
- `status_at_rest`, `nested_status`: the status that a stack reports, to users and to its parent
- `former_members`: the former owners of cloud ids
- `views`, `progress`: the queries of the APIs
"""
