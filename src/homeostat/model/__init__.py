"""Values that all packages share. This package does no I/O and imports no other package.

- `errors`: errors by who must act
- `status`: states of stacks and resources, and legal transitions; `stack_actions`: the table of stack actions
- `record`: frozen dataclasses that are cheap to make
- `desired`: the desired graph
- `observed`: observations and verdicts
- `world`: the input of all decisions
- `plan`: decisions
- `intent`, `hooks`, `marks`: intents, hooks and marks, as stored in rows
- `snapshot`: snapshots of stacks in progress
- `requested`: users' requests for single resources, as stored in marks
- `rollout`: rollouts of metadata and definitions
- `group`: the desired state of a group's stack
- `budget`: absences of group members; `member_names`: names of group members and their companions
- `health_policy`: health policies; `node_health`: the health of group members
- `answers`: kinds of answers of a health detector; `hosts`: host lists; `vantage`: URL probes by vantage point
- `retry`: retry policies
- `waiting`: reasons not to act yet
- `caller`: the authenticated caller of a request
- `limits`: limits on the size of stored lists; `rates`: rate limits in the operators' notation
"""
