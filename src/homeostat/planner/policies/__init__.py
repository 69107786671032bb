"""Limits on decisions.

- `healing`, `healing_policy`: the brake on healing, doubt about looks, and the users' consent
- `rolling_update`: the batches of a group
- `unhealthy`: marks that override what was observed
"""
