"""Groups of deployments: one deployment for each of several servers, as members of a child stack."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.families import deployments
from homeostat.resources.families.delay import Delay
from homeostat.resources.families.deployments import (
    STATUS_CODE,
    STDERR,
    STDOUT,
    SoftwareDeployment,
    StructuredDeployment,
)
from homeostat.resources.families.resource_groups import Membership
from homeostat.resources.graph import Graph
from homeostat.resources.nested import POLICY, attributes_of_members
from homeostat.resources.schema import Attribute, Property, ValueType, between, integer, mapping, number
from homeostat.resources.support import hidden
from homeostat.templates.tree import part_of

PAUSE = "pause-between-batches-"
"""Prefix of the names of pauses."""
NAMED = "named"
"""Kind of the revisions of child stacks whose members have individual names and definitions."""


def _batches(description: str) -> Property:
    return mapping(
        description,
        fields={
            "max_batch_size": integer("Deployments at once.", default=1, constraints=(between(1),)),
            "pause_time": number("Seconds between batches.", default=0, constraints=(between(0),)),
        },
    )


_SERVERS = mapping("Names and ids of the servers.", required=True, update=True)


class SoftwareDeploymentGroup(Membership):
    """A deployment for each of several servers.

    Attributes:
        of: Type of the members; it has the properties of the group, with `server` in place of `servers`.
    """

    name = "OS::Heat::SoftwareDeploymentGroup"
    description = "Applies a config to each of several servers."
    contents = NAMED
    of: type[SoftwareDeployment] = SoftwareDeployment
    properties = {"servers": _SERVERS, **{k: v for k, v in SoftwareDeployment.properties.items() if k != "server"}}
    update_policy = {
        "rolling_update": _batches("Change deployments in batches."),
        "batch_create": _batches("Make deployments in batches."),
    }
    attributes = {
        "deploy_stdouts": Attribute("What the config has written to standard output, by server.", ValueType.MAP),
        "deploy_stderrs": Attribute("What the config has written to standard error, by server.", ValueType.MAP),
        "deploy_status_codes": Attribute("With what code the config has ended, by server.", ValueType.MAP),
    }

    def validate_among(self, properties: Props, graph: Graph, path: tuple[str | int, ...]) -> None:
        deployments.check_servers(properties.get("servers"), graph, path)

    def child_template(self, values: Props, *, new: bool) -> dict[str, Any]:
        """Return the template of the child stack; the members of a batch depend on the members of the previous batch.

        With pauses, members depend on a pause, and the pause on the previous batch. The name of a pause includes a hash
        of the definition: whenever members change, the pause is a new resource, and takes its time again.

        Args:
            values: Properties, with defaults.
            new: Whether the child stack does not exist yet: `batch_create` then applies, else `rolling_update`.
        """
        servers = values["servers"]
        policy = (values[POLICY] or {}).get("batch_create" if new else "rolling_update")
        size = policy["max_batch_size"] if policy else max(len(servers), 1)
        names = sorted(servers)
        shared = {name: values[name] for name in self.of.properties if values.get(name) is not None}
        pause_s = policy["pause_time"] if policy else 0
        definition = json.dumps([shared, servers], sort_keys=True, default=repr)
        mark = hashlib.sha256(definition.encode()).hexdigest()[:8]
        resources: dict[str, Any] = {}
        for place, name in enumerate(names):
            batch = place // size
            required = names[(batch - 1) * size : batch * size] if batch else []
            if required and pause_s:
                pause = f"{PAUSE}{mark}-{batch}"
                resources[pause] = {"type": Delay.name, "properties": {"min_wait": pause_s}, "depends_on": required}
                required = [pause]
            provided = {"type": self.of.name, "properties": {**shared, "server": servers[name]}}
            resources[name] = {**provided, "depends_on": required} if required else provided
        return {"heat_template_version": "2018-08-31", "resources": resources}

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        """Return an output of every deployment, by server."""
        members = thing.seen.properties.get("members") or {}
        output = {"deploy_stdouts": STDOUT, "deploy_stderrs": STDERR, "deploy_status_codes": STATUS_CODE}.get(
            name, name
        )
        servers = [member for member in sorted(members) if not member.startswith(PAUSE)]
        outputs = dict(zip(servers, attributes_of_members(members, servers, (output,)), strict=True))
        return part_of(outputs, path, thing.name, name)

    def attribute(self, thing: Thing, name: str) -> Any:
        return self.resolve(thing, name)


class StructuredDeploymentGroup(SoftwareDeploymentGroup):
    name = "OS::Heat::StructuredDeploymentGroup"
    description = "Applies a map to each of several servers, with values put in for its inputs."
    of = StructuredDeployment
    properties = {"servers": _SERVERS, **{k: v for k, v in StructuredDeployment.properties.items() if k != "server"}}


class SoftwareDeployments(SoftwareDeploymentGroup):
    name = "OS::Heat::SoftwareDeployments"
    renamed_to = SoftwareDeploymentGroup.name
    support = hidden("7.0.0", "Use OS::Heat::SoftwareDeploymentGroup instead.")


class StructuredDeployments(StructuredDeploymentGroup):
    name = "OS::Heat::StructuredDeployments"
    renamed_to = StructuredDeploymentGroup.name
    support = hidden("7.0.0", "Use OS::Heat::StructuredDeploymentGroup instead.")


TYPES: list[type[ResourceType]] = [
    SoftwareDeploymentGroup,
    StructuredDeploymentGroup,
    SoftwareDeployments,
    StructuredDeployments,
]
