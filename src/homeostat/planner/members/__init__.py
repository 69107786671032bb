"""Changes of a group's members: the next batch, the next step of a rollout, and the reports that decide about both.

- `rolling_update`: the batches of a group; `member_reports`: reports on a batch
- `rollout_move`: the next move of a rollout; `staged_group`: members with a new definition, and the way back

Batches and rollouts share the group (`model.group`), and stay two decisions: see ADR 0104.
"""
