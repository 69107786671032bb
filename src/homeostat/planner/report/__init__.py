"""What the planner would do, without doing it.

- `explain`: why a resource does not move
- `estimate`: how long it will take
- `preview`: what an update would do
- `rollouts`: where a rollout stands, and what a user can do with it
"""
