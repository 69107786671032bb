"""Health checks: members are looked at in rounds, and what is found wakes their shard (ADR 0072).

- `rounds`: rounds over the members of due shards; `vantage_rounds`: rounds over URLs from one place
- `asking`: the state and the URLs of a round; `probes`: requests to URLs; `hosts`: looks at hosts of servers
"""
