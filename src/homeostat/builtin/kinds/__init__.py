"""The kinds of records: how the records of each are made, changed, restored, removed and shown.

- `base`: what all kinds share
- `configs`, `deployments`, `wait_conditions`, `scaling_policies`, `access`, `deployed_servers`, `health_policies`: one
  subject each
- `registry`: all of them by kind
"""
