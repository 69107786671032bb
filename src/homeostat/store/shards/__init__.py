"""Shards: the units of ownership.

- `shards`: rows of shards, wake-ups; `leases`: ownership and epochs; `fair_queue`: the order of due shards
- `shard_state`: the rows of a shard, loaded and recorded
- `look_schedule`, `observations`: when things are observed, and what was seen
- `orphans`: tokens under which a thing may turn up late; `retained`: things that stay on purpose
- `brakes`: limits of healing that do not follow from one shard alone; `away`: signs of absent members
- `health`: health checks of shards; `vantage_looks`: looks at URLs by place; `declared_hosts`: hosts declared down
"""
