"""Results of URL probes by vantage point."""

from collections.abc import Mapping
from dataclasses import dataclass

from homeostat.model.node_health import Finding


@dataclass(frozen=True, slots=True)
class Seen:
    """Result of a URL probe from a place; `attempts` counts consecutive failures."""

    finding: Finding
    evidence: str = ""
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class VantageLook:
    """Findings of the workers of a place about the members of a shard.

    Attributes:
        looked_at: When the newest complete look began; None before the first.
        findings: Row key -> number of a detection -> result, without healthy results.
    """

    looked_at: float | None
    findings: Mapping[str, Mapping[int, Seen]]
