"""Facts for the planner, from outside a shard.

- `absences`: absent members of groups; `healing_brake`: healing in sibling shards
- `health_policies`: health policies and their facts; `inside_stacks`: unhealthy things inside nested stacks
"""
