"""Rollouts: new metadata, or a new definition, for the members of a group, step by step (RU1 to RU8, ADR 0068).

- `engine`: due rollouts, requests to their URLs, and users' commands
- `moves`: store the next move of a rollout: a step, a wait, or the end
- `member_change`: the port to the members; `metadata`, `definitions`: its two implementations

Both share a single pure decision, `planner.policies.rollout_move`.
"""
