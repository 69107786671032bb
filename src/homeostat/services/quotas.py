"""The operator's limits and switches for stacks."""

from dataclasses import dataclass

from homeostat.model.limits import DEPTH_MAX, RESOURCES_MAX
from homeostat.model.world import HEAL_SHARE
from homeostat.services.pipeline.expansion import ExpansionLimits


@dataclass(frozen=True, slots=True)
class Quotas:
    """The operator's limits and switches for stacks.

    Attributes:
        stacks_max: Live root stacks of a project; admins are exempt.
        resources_max: Resources of a stack and all its nested stacks.
        expanded_max: See `ExpansionLimits`.
        depth_max: See `ExpansionLimits`.
        previewed_max: Resources that a preview reports.
        snapshots_max: Snapshots of one stack.
        timeout_s: Default deadline of an action.
        heal_share: Share of a stack's things that are healed at a time; the same setting as the workers'.
        health_interval_min: Shortest interval of health checks, in seconds.
        adopt: Stacks may be adopted.
        abandon: Stacks may be exported and abandoned.
    """

    stacks_max: int = 512
    resources_max: int = RESOURCES_MAX
    expanded_max: int = 50_000
    depth_max: int = DEPTH_MAX
    previewed_max: int = 10_000
    snapshots_max: int = 32
    timeout_s: float = 3600.0
    heal_share: float = HEAL_SHARE
    health_interval_min: int = 60
    adopt: bool = True
    abandon: bool = True

    @property
    def expansion_limits(self) -> ExpansionLimits:
        return ExpansionLimits(self.resources_max, self.expanded_max, self.depth_max, self.health_interval_min)
