"""Values that all packages share. This package imports none of the others, and does no I/O.

- `errors`: errors by who must act
- `status`: words for states, and the legal transitions; `stack_actions`: the table of stack actions
- `desired`: the desired graph
- `observed`: observations and verdicts
- `world`: the input of all decisions
- `plan`: decisions
- `intent`, `hooks`, `marks`: acts, hooks and further marks, as stored in rows
- `requested`: users' requests for single resources, as stored in marks
- `rollout`: rollouts of metadata and definitions
- `group`: the desired state of a group's stack
- `budget`: absences of group members; `member_names`: names of group members and their companions
- `health`: words of the health check; `health_policy`: health policies; `node_health`: the health of group members
- `answers`: possible answers of a health detector; `hosts`: answers of host lists; `vantage`: looks at URLs by place
- `retry`: retry policies
- `waiting`: reasons not to act yet
- `caller`: the authenticated caller of a request
- `limits`: limits on the size of requests; `rates`: rate limits in the operators' notation
"""
