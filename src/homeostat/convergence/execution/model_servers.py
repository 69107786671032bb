"""Lookup of the model server of a new launch configuration or group, once, at its creation."""

from collections.abc import Mapping
from typing import Any

from homeostat.clouds.port import Cloud
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.model.world import Resource
from homeostat.resources.families.launch_configurations import NEEDED, LikeServer, taken_over
from homeostat.resources.registry import type_of
from homeostat.resources.rules import is_set

SERVER = "server"
"""Kind of model servers."""


def names_model(row: Resource) -> bool:
    """Return whether a resource is created by the model of a server."""
    kind = type_of(row.type)
    return isinstance(kind, LikeServer) and bool(kind.model(row.properties))


def model_settings(cloud: Cloud, row: Resource) -> Mapping[str, Any]:
    """Return the settings that a resource of `names_model` copies from its server.

    Raises:
        Terminal: There is no such server, or it lacks needed settings.
        HomeostatError: The cloud does not answer, or knows several servers of that name.
    """
    kind = type_of(row.type)
    assert isinstance(kind, LikeServer)
    name = kind.model(row.properties)
    taken = taken_over(_seen(cloud, name).properties)
    for needed in NEEDED:
        if not (taken.get(needed) or is_set(row.properties, needed)):
            raise Terminal(
                f"The server {name} has nothing for {needed} (one that boots from a volume has no image): "
                "name it in a launch configuration"
            )
    return taken


def _seen(cloud: Cloud, name: str) -> Observation:
    """Return a server as the cloud reports it.

    Raises:
        Terminal, HomeostatError: See `model_settings`.
    """
    (id,) = cloud.resolve(SERVER, [name])
    (look,) = cloud.observe(SERVER, [id]) if id is not None else (Observation(Presence.ABSENT),)
    if look.presence is Presence.UNKNOWN:
        raise Transient(f"the server {name} could not be looked at: {look.reason}")
    if look.presence is Presence.ABSENT:
        raise Terminal(f"There is no server {name} to be like: name one of this project, by name or id")
    return look
