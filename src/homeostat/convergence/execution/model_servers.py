"""Lookup of the model server of a new launch configuration or group, once, at its creation."""

from dataclasses import replace

from homeostat.clouds.port import Cloud
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Step, Verb
from homeostat.resources.families.launch_configurations import MODEL, NEEDED, LikeServer, taken_over
from homeostat.resources.registry import type_of
from homeostat.resources.rules import is_set

SERVER = "server"
"""Kind of model servers."""


def names_model(step: Step) -> bool:
    """Return whether a step creates something by the model of a server."""
    kind = type_of(step.row.type)
    return step.verb is Verb.CREATE and isinstance(kind, LikeServer) and bool(kind.model(step.row.properties))


def with_model(cloud: Cloud, step: Step) -> Step:
    """Return a step of `names_model` with the copied settings as an argument.

    Raises:
        Terminal: There is no such server, or it lacks needed settings.
        HomeostatError: The cloud does not answer, or knows several servers of that name.
    """
    kind = type_of(step.row.type)
    assert isinstance(kind, LikeServer)
    name = kind.model(step.row.properties)
    taken = taken_over(_seen(cloud, name).properties)
    for needed in NEEDED:
        if not (taken.get(needed) or is_set(step.row.properties, needed)):
            raise Terminal(
                f"The server {name} has nothing for {needed} (one that boots from a volume has no image): "
                "name it in a launch configuration"
            )
    return replace(step, arguments={**step.arguments, MODEL: taken})


def _seen(cloud: Cloud, name: str) -> Observation:
    """Return a server as the cloud reports it.

    Raises:
        Terminal, HomeostatError: See `with_model`.
    """
    (id,) = cloud.resolve(SERVER, [name])
    (look,) = cloud.observe(SERVER, [id]) if id is not None else (Observation(Presence.ABSENT),)
    if look.presence is Presence.UNKNOWN:
        raise Transient(f"the server {name} could not be looked at: {look.reason}")
    if look.presence is Presence.ABSENT:
        raise Terminal(f"There is no server {name} to be like: name one of this project, by name or id")
    return look
