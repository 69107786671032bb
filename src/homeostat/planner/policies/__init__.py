"""What limits a decision.

- `healing`, `healing_policy`: the brake, doubt, and the users' consent
- `rolling_update`: the batches of a group
- `unhealthy`: marks that override what was observed
"""
