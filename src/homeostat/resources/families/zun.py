"""Types of standalone containers."""

import re
from typing import Any

from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.resources.base import Props, ResourceType, Thing, payload
from homeostat.resources.constraints import IP_ADDRESS
from homeostat.resources.graph import Graph, subnets_of_mentioned
from homeostat.resources.rules import conflict, is_set, maps, missing, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    ValueType,
    boolean,
    integer,
    link,
    listing,
    mapping,
    number,
    one_of,
    text,
)
from homeostat.resources.support import Support

RESTART_POLICY = re.compile(r"(no|always|unless-stopped|on-failure)|(on-failure):(\d*)")


class Container(ResourceType):
    name = "OS::Zun::Container"
    kind = "app_container"
    support = Support(version="9.0.0")
    description = "A container that runs an application."
    properties = {
        "name": text("Name of the container.", update=True),
        "image": text("Image, by name or id.", required=True),
        "command": text("Command to run in it."),
        "cpu": number("How many processors.", update=True),
        "memory": integer("Memory in MiB.", update=True),
        "environment": mapping("Variables of the environment."),
        "workdir": text("Directory that the command runs in."),
        "labels": mapping("Labels."),
        "image_pull_policy": text(
            "When the image is fetched.", constraints=(one_of("ifnotpresent", "always", "never"),)
        ),
        "restart_policy": text("When it is started again: no, on-failure[:times], always or unless-stopped."),
        "interactive": boolean("Keep its input open."),
        "image_driver": text("Where the image comes from.", constraints=(one_of("docker", "glance"),)),
        "hints": mapping("Hints to the cloud's scheduler."),
        "hostname": text("Name of its host."),
        "security_groups": listing("Security groups.", default=[]),
        "mounts": listing(
            "Volumes in it.",
            items=mapping(
                fields={
                    "volume_id": link("The volume.", "cinder.volume"),
                    "volume_size": integer("Size in GiB of a new volume."),
                    "mount_path": text("Where it is in the container.", required=True),
                }
            ),
        ),
        "networks": listing(
            "Networks to be on.",
            update=True,
            drift=False,
            items=mapping(
                fields={
                    "network": link("Network to be on.", "neutron.network"),
                    "fixed_ip": text("Address to have.", constraints=(IP_ADDRESS,)),
                    "port": link("Port to use instead of a network.", "neutron.port"),
                }
            ),
        ),
    }
    attributes = {
        "name": Attribute("Name of the container."),
        "addresses": Attribute("Its addresses, by name and id of the network.", ValueType.MAP),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        policy = values.get("restart_policy")
        fits = not policy or policy is UNKNOWN or RESTART_POLICY.fullmatch(str(policy))
        message = "it must be no, on-failure[:times], always or unless-stopped"
        require(bool(fits), message, (*path, "restart_policy"))
        for index, network in maps(values, "mounts"):
            place = (*path, "mounts", index)
            if is_set(network, "volume_id") and is_set(network, "volume_size"):
                raise conflict(place, "volume_id", "volume_size")
            if not (is_set(network, "volume_id") or is_set(network, "volume_size")):
                raise missing(place, "volume_id", "volume_size")
        for index, network in maps(values, "networks"):
            place = (*path, "networks", index)
            if not (is_set(network, "network") or is_set(network, "port")):
                raise missing(place, "network", "port")
            if is_set(network, "fixed_ip") and is_set(network, "port"):
                raise conflict(place, "fixed_ip", "port")

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the subnets of its networks."""
        return subnets_of_mentioned(graph, properties)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        match = RESTART_POLICY.fullmatch(spec.pop("restart_policy", ""))
        if match:
            spec["restart_policy"] = {"Name": match[1] or match[2], "MaximumRetryCount": match[3] or "0"}
        if spec.get("mounts"):
            spec["mounts"] = payload(spec["mounts"], volume_id="source", volume_size="size", mount_path="destination")
        if spec.get("networks"):
            spec["networks"] = payload(spec["networks"])
        return spec

    def fitness(self, thing: Thing, now: float) -> Verdict:
        """Judge as other types do, but start a stopped interactive container again."""
        stopped = str(thing.seen.properties.get("status")).lower() == "stopped"
        if stopped and thing.properties["interactive"]:
            return Verdict(Condition.BROKEN, "it is interactive, and has stopped", Remedy.OPERATE, "start")
        return super().fitness(thing, now)


TYPES: list[type[ResourceType]] = [Container]
