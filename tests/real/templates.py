"""Stacks of 300 things of mixed types, which change from one generation to the next."""

from collections.abc import Iterator
from typing import Any

MEMBERS = 9


def generation(name: str, number: int, scale: int = 1) -> dict[str, Any]:
    """Template of a stack of this name. The first generation has all 300, members of its group included; each
    later one changes some properties, replaces some things, leaves out another tenth of them, and has another size of
    its group. scale — so many times 300."""
    resources = {
        f"key_{at}": _resource("OS::Nova::KeyPair", name=f"{name}-{at}") for at in range(10)
    }  # never left out: one of the same name could not come back before the old one is gone
    for part in (_networks, _volumes, _servers, _plain):
        resources |= part(name, number, scale)
    member = _resource("OS::Nova::Server", image="image", flavor="small", name=f"{name}-member-%index%")
    resources["members"] = _resource("OS::Heat::ResourceGroup", count=MEMBERS + number % 3, resource_def=member)
    return {"heat_template_version": "2018-08-31", "resources": resources}


def _networks(name: str, number: int, scale: int) -> dict[str, Any]:
    networks = {
        f"network_{at}": _resource("OS::Neutron::Net", name=f"{name}-{at}") for at in _retained(20 * scale, number)
    }
    rules = {
        f"rules_{at}": _resource("OS::Neutron::SecurityGroup", description=f"of {number}")
        for at in _retained(10 * scale, number)
    }
    return networks | rules


def _volumes(name: str, number: int, scale: int) -> dict[str, Any]:
    return {
        f"volume_{at}": _resource("OS::Cinder::Volume", size=1, description=f"of {name} {number}")
        for at in _retained(60 * scale, number)
    }


def _servers(name: str, number: int, scale: int) -> dict[str, Any]:
    servers = {
        f"server_{at}": _resource(
            "OS::Nova::Server",
            image="image",
            flavor=f"flavor-{number // 2 if at % 4 == 0 else 0}",
            key_name={"get_resource": f"key_{at % 10}"},
            metadata={"generation": str(number)},
            networks=[{"network": {"get_resource": f"network_{at % 20}"}}],
        )
        for at in _retained(80 * scale, number)
    }
    attachments = {
        f"attachment_{at}": _resource(
            "OS::Cinder::VolumeAttachment",
            instance_uuid={"get_resource": f"server_{at}"},
            volume_id={"get_resource": f"volume_{at}"},
        )
        for at in _retained(40 * scale, number)
    }
    return servers | attachments


def _plain(name: str, number: int, scale: int) -> dict[str, Any]:
    """Things that live in the service alone: chains of doubles, and strings that every generation replaces."""
    doubles = {
        f"double_{at}": _resource(
            "OS::Heat::TestResource", value={"get_resource": f"double_{at - 10}"} if at >= 10 else f"of {number}"
        )
        for at in _retained(40 * scale, number)
    }
    strings = {
        f"string_{at}": _resource("OS::Heat::RandomString", length=8 + number) for at in _retained(30 * scale, number)
    }
    return doubles | strings


def _retained(count: int, number: int) -> Iterator[int]:
    """What depends on something else has the same last digit: it goes with it."""
    return (at for at in range(count) if number == 0 or at % 10 != number % 10)


def _resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "properties": properties}
