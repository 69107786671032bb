"""Shards: the units of ownership.

- `shards`: rows of shards, wake-ups; `leases`: ownership and epochs; `fair_queue`: the order of due shards
- `shard_state`: load and record the rows of a shard
- `look_schedule`, `observations`: when things are observed, and the results
- `orphans`: tokens of requests whose things may turn up late; `retained`: things that stay on purpose
- `brakes`: limits of healing that depend on several shards; `away`: signs of absent members
- `health`: health checks of shards; `vantage_looks`: looks at URLs by place; `declared_hosts`: hosts declared down
"""
