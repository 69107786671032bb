"""Changes of a group's members, stored: batches, and rollouts of metadata or definitions (RU1 to RU8, ADR 0068, 0104).

- `rolling_update`: the next batch of a group at rest
- `rollouts`: due rollouts, requests to their URLs, and users' commands; `moves`: the next move of a rollout
- `scaling`: resizes of groups by signals
- `member_change`: the port of a rollout to the members; `metadata`, `definitions`: its two implementations

`planner.members` decides.
"""
