"""What users and the service do to one database, in which shares. Measured by `bench.capacity`, and what
`bench.partitions` plays."""

from collections.abc import Mapping

PER_STACK = 10
"""Resources of one stack."""
MIX: Mapping[str, float] = {
    "show": 0.40,
    "list_resources": 0.15,
    "list_events": 0.15,
    "signal": 0.10,
    "no_op_update": 0.05,
    "update_of_one": 0.05,
    "create": 0.05,
    "delete": 0.05,
}
"""Operation -> its share of the requests. As many stacks are deleted as created."""
RATES = (4.0, 12.0)
"""Requests a second of the two loads that are measured."""
