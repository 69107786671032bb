"""What was found of URLs from the places of workers: values that all layers share."""

from collections.abc import Mapping
from dataclasses import dataclass

from homeostat.model.node_health import Finding


@dataclass(frozen=True, slots=True)
class Seen:
    """What one place has found of one URL.

    Attributes:
        attempts: How often it was asked in vain, in a row.
    """

    finding: Finding
    evidence: str = ""
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class VantageLook:
    """What the workers of one place have found of the members of a shard.

    Attributes:
        looked_at: When the newest whole look began; None before the first one.
        found: Row key -> number of a detection -> what was found, unless that is that it is healthy.
    """

    looked_at: float | None
    found: Mapping[str, Mapping[int, Seen]]
