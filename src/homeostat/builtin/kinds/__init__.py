"""The kinds of records: creation, changes, restoration, removal and presentation of records of each kind.

- `base`: the base class
- `configs`, `deployments`, `wait_conditions`, `scaling_policies`, `access`, `deployed_servers`, `health_policies`: the
  kinds by subject
- `registry`: all kinds by name
"""
