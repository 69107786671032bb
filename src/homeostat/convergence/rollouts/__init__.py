"""Rollouts: what members of a group get step by step, new metadata or a new definition (RU1 to RU8, ADR 0068).

- `engine`: rollouts that are due, the URLs that they ask, and users' commands
- `moves`: the next move of one rollout, stored: a step, a wait, or the end
- `member_change`: what a step and an end mean for the members; `metadata`, `definitions`: the two kinds of it

One pure decision, `planner.policies.rollout_move`, serves both kinds.
"""
