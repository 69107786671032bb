"""What the planner would do, without doing it.

- `explain`: why a resource does not move; `health`: findings and recoveries of a member
- `estimate`: how long it will take
- `preview`: what an update would do; `adoption`: what an adoption would do; `differences`: differences from the newest
  template
- `rollouts`: where a rollout stands, and what a user can do with it
"""
