"""Health checks: rounds of looks at members, whose findings wake the shard (ADR 0072).

- `rounds`: rounds over the members of due shards; `vantage_rounds`: rounds over URLs from one place
- `asking`: the state and the URLs of a round; `probes`: requests to URLs; `hosts`: observation of servers' hosts
"""
