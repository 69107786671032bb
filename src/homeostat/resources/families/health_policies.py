"""Health policies for groups and servers of a template."""

from typing import Any

from homeostat.resources.base import Props, ResourceType
from homeostat.resources.schema import boolean, mapping, text

HEALTH = "health_policy"


class HealthPolicy(ResourceType):
    """A health policy for a group or a server of the same stack, stored by the service itself."""

    name = "Homeostat::HealthPolicy"
    kind = HEALTH
    description = (
        "Says when the members of a group, or a server, are unhealthy, and what recovers them, with the words of "
        "senlin.policy.health-1.2. What it holds for is recovered by it alone, not by continuous convergence."
    )
    properties = {
        "target": text("The group, or the server: get_resource of it.", required=True, update=True),
        "detection": mapping("When something is unhealthy, as in a health policy.", required=True, update=True),
        "recovery": mapping("What recovers it, as in a health policy; RECREATE without it.", default={}, update=True),
        "enabled": boolean("Whether the policy acts.", default=True, update=True),
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {"name": physical_name, **super().spec(values, physical_name)}


def policy_spec(values: Props) -> dict[str, Any]:
    """Return the spec of a health policy with these properties."""
    properties = {"detection": values.get("detection") or {}, "recovery": values.get("recovery") or {}}
    return {"type": "senlin.policy.health", "version": "1.2", "properties": properties}


TYPES: list[type[ResourceType]] = [HealthPolicy]
