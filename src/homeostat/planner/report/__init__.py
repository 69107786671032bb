"""Reports of the planner: explanations, estimates and previews.

- `explain`: why a resource does not move; `health`: findings and recoveries of a member
- `estimate`: time until a stack is at rest
- `preview`: effects of an update; `adoption`: effects of an adoption; `differences`: differences from the newest
  template
- `rollouts`: state of a rollout, and a user's options
"""
