"""Shards: the units of ownership.

- `shards`: leases, epochs and wake-ups
- `shard_state`: the rows of a shard, loaded and recorded
- `look_schedule`, `observations`: when things are looked at, and what was seen
- `orphans`: requests that were given up and may still have made something; `retained`: things kept on purpose
- `brakes`: what other shards say about healing
"""
