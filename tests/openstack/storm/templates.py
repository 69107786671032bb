"""Stacks of servers, ports, volumes and load balancers, which change from one generation to the next."""

from collections.abc import Mapping
from typing import Any

IMAGE, FLAVORS = "mini", ("m1.tiny", "m1.small")
BALANCED = 3
"""Every third stack has a load balancer: a change of one takes a second."""
Resources = dict[str, Any]


def generation(at: int, number: int) -> dict[str, Any]:
    """The template of a stack: each generation changes some things in place, replaces others, leaves out some more.

    Takes: at — number of the stack, number — of the generation.
    """
    resources = _network(at, number) | _ports(at, number) | _volumes(number) | _servers(number)
    if at % BALANCED == 0:
        resources |= _balancer(number)
    return {"heat_template_version": "2018-08-31", "resources": resources}


def _network(at: int, number: int) -> Resources:
    return {
        "net": _resource("OS::Neutron::Net"),
        "subnet": _resource(
            "OS::Neutron::Subnet", network=_get("net"), cidr=f"10.{at % 250}.0.0/24", name=f"s{number}"
        ),
        "rules": _resource("OS::Neutron::SecurityGroup", description=f"of {number}", rules=[{"protocol": "tcp"}]),
    }


def _ports(at: int, number: int) -> Resources:
    """The first is changed in place, the second replaced, the third comes and goes; two more are for servers."""
    on_subnet = {"network": _get("net"), "fixed_ips": [{"subnet": _get("subnet")}]}
    mac = f"fa:16:3e:{at % 256:02x}:{number % 256:02x}:01"
    ports = {
        "port_changed": _resource("OS::Neutron::Port", **on_subnet, name=f"p{number}"),
        "port_replaced": _resource("OS::Neutron::Port", **on_subnet, mac_address=mac),
        "port_served": _resource("OS::Neutron::Port", **on_subnet, security_groups=[_get("rules")]),
    }
    if number % 2:
        ports["port_at_times"] = _resource("OS::Neutron::Port", **on_subnet)
    return ports


def _volumes(number: int) -> Resources:
    volumes = {
        "volume_changed": _resource("OS::Cinder::Volume", size=1, description=f"of {number}"),
        "volume_replaced": _resource("OS::Cinder::Volume", size=1, scheduler_hints={"generation": str(number // 2)}),
        "volume_grown": _resource("OS::Cinder::Volume", size=1 + number),
    }
    if number % 2 == 0:
        volumes["volume_at_times"] = _resource("OS::Cinder::Volume", size=1)
    return volumes


def _servers(number: int) -> Resources:
    """One on a port of the stack, one whose port the service makes, one whose port Nova makes; with volumes."""
    common = {"image": IMAGE, "flavor": FLAVORS[0]}
    on_port = [{"port": _get("port_served")}]
    on_subnet = [{"network": _get("net"), "subnet": _get("subnet")}]
    return {
        "server_changed": _resource("OS::Nova::Server", **common, networks=on_port, metadata={"at": str(number)}),
        "server_replaced": _resource(
            "OS::Nova::Server", **common, networks=on_subnet, user_data=f"#!/bin/sh\necho {number // 2}\n"
        ),
        "server_resized": _resource(
            "OS::Nova::Server",
            "subnet",
            image=IMAGE,
            flavor=FLAVORS[min(number // 2, 1)],
            networks=[{"network": _get("net")}],
        ),
        "attachment": _resource(
            "OS::Cinder::VolumeAttachment",
            instance_uuid=_get("server_changed"),
            volume_id=_get("volume_replaced"),
        ),
        "attachment_of_replaced": _resource(
            "OS::Cinder::VolumeAttachment",
            instance_uuid=_get("server_replaced"),
            volume_id=_get("volume_changed"),
        ),
    }


def _balancer(number: int) -> Resources:
    """Members that are changed, replaced, and that come and go."""
    pool = {"pool": _get("pool"), "subnet": _get("subnet")}
    members = {
        "member_changed": _resource(
            "OS::Octavia::PoolMember", **pool, address="192.0.2.1", protocol_port=80, weight=1 + number % 5
        ),
        "member_replaced": _resource(
            "OS::Octavia::PoolMember", **pool, address=f"192.0.2.{100 + number % 100}", protocol_port=80
        ),
    }
    if number % 2:
        members["member_at_times"] = _resource("OS::Octavia::PoolMember", **pool, address="192.0.2.3", protocol_port=80)
    return members | {
        "balancer": _resource("OS::Octavia::LoadBalancer", vip_subnet=_get("subnet"), description=f"of {number}"),
        "pool": _resource(
            "OS::Octavia::Pool",
            loadbalancer=_get("balancer"),
            protocol="HTTP",
            lb_algorithm=("ROUND_ROBIN", "SOURCE_IP")[number % 2],
        ),
        "listener": _resource(
            "OS::Octavia::Listener",
            loadbalancer=_get("balancer"),
            default_pool=_get("pool"),
            protocol="HTTP",
            protocol_port=80 + number // 3,
        ),
    }


def _get(name: str) -> Mapping[str, str]:
    return {"get_resource": name}


def _resource(kind: str, /, *needs: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "properties": properties, "depends_on": [*needs]}
