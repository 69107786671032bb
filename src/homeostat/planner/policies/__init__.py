"""Limits on decisions, and the rules behind health verdicts.

- `healing`, `healing_policy`: the brake on healing, doubt about looks, and the users' consent
- `budget`: the budget of absent members of a group
- `draining`: the drain time of leaving servers
- `unhealthy`: marks that override observations
- `detection`: verdicts from the looks of a health policy; `verdicts`: verdicts from single answers; `vantage`: verdicts
  from looks at URLs from several places; `reported`: verdicts from users' marks
- `health_brake`: the brake on recoveries; `incidents`: common failures of members; `fences`: hosts of fenced servers
"""
