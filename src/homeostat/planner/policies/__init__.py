"""Limits on decisions.

- `healing`, `healing_policy`: the brake on healing, doubt about looks, and the users' consent
- `rolling_update`: the batches of a group; `member_reports`: what members say of them
- `metadata_rollout`: the steps in which members get new metadata
- `unhealthy`: marks that override what was observed
"""
