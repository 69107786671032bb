"""Health checks: members are looked at in rounds, and what is found wakes their shard (ADR 0072).

- `probes`: URLs of members are asked
- `rounds`: the members of shards that are due are looked at
"""
