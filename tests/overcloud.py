"""A deployment of the shape of TripleO's overcloud: everything is a type of the registry, and mapped to a template.

Roles are groups of servers with ports, configuration and a chain of services; services are made from services, several
levels deep. Names and numbers are invented; the shape is what is real: levels, files, maps that are handed down.
"""

from dataclasses import dataclass
from typing import Any

VERSION = "2018-08-31"
NETWORKS = ("External", "InternalApi", "Storage", "StorageMgmt", "Tenant", "Management")
BASES = 6
"""Levels of templates that a service is made from."""


@dataclass(frozen=True, slots=True)
class Overcloud:
    """template, environment, files — as a client sends them; levels — of nested stacks."""

    template: dict[str, Any]
    environment: dict[str, Any]
    files: dict[str, Any]
    levels: int


def template(parameters: dict[str, str], resources: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"json": {}, "string": "", "number": 0, "comma_delimited_list": []}
    return {
        "heat_template_version": VERSION,
        "parameters": {name: {"type": kind, "default": defaults[kind]} for name, kind in parameters.items()},
        "resources": resources,
        "outputs": {name: {"value": value} for name, value in outputs.items()},
    }


HANDED_DOWN = {"ServiceData": "json", "ServiceNetMap": "json", "EndpointMap": "json", "RoleName": "string"}
"""Parameters of every service."""


def handed_down() -> dict[str, Any]:
    return {name: {"get_param": name} for name in HANDED_DOWN}


def service(number: int, level: int) -> dict[str, Any]:
    """A service that is made from the base below it, and merges what that tells with its own."""
    own = {f"service{number}::level{level}::{key}": {"get_param": ["EndpointMap", key, "uri"]} for key in "abcdef"}
    port = {f"tripleo::service{number}::firewall": {"port": 1000 + number, "proto": "tcp"}}
    if level == BASES:
        settings: Any = {"map_merge": [own, port, {"get_param": "ServiceData"}]}
        return template(HANDED_DOWN, {}, {"role_data": {"service_name": f"s{number}", "config_settings": settings}})
    base = {"type": f"OS::TripleO::Services::S{number}Base{level + 1}", "properties": handed_down()}
    attributes = {"get_attr": ["Base", "role_data", "config_settings"]}
    data = {"service_name": f"s{number}", "config_settings": {"map_merge": [attributes, own]}}
    return template(HANDED_DOWN, {"Base": base}, {"role_data": data})


def role_services() -> dict[str, Any]:
    """The chain of the services of one role, and what all of them tell together."""
    chain = {
        "type": "OS::Heat::ResourceChain",
        "properties": {
            "resources": {"get_param": "Services"},
            "concurrent": True,
            "resource_properties": handed_down(),
        },
    }
    data = {"type": "OS::Heat::Value", "properties": {"type": "json", "value": {"names": {"get_param": "Services"}}}}
    expression = "$.data.names.where($ != null).distinct()"
    names = {"yaql": {"expression": expression, "data": {"names": {"get_param": "Services"}}}}
    return template(
        {**HANDED_DOWN, "Services": "comma_delimited_list"},
        {"ServiceChain": chain, "RoleData": data},
        {"role_data": {"services": {"get_attr": ["ServiceChain", "role_data"]}, "names": names}, "names": names},
    )


def role() -> dict[str, Any]:
    """One node of a role: a server, its ports and what is deployed to it."""
    properties = {"ControlPlaneIP": {"get_param": "IP"}, "RoleName": {"get_param": "RoleName"}}
    ports = {f"{name}Port": {"type": f"OS::TripleO::Ports::{name}Port", "properties": properties} for name in NETWORKS}
    server = {
        "type": "OS::TripleO::Server",
        "properties": {"Name": {"get_param": "Hostname"}, "NetIps": {"get_attr": ["NetIpMap", "net_ip_map"]}},
    }
    ips = {name: {"get_attr": [f"{name}Port", "ip_address"]} for name in NETWORKS}
    net_map = {"type": "OS::TripleO::Network::Ports::NetIpMap", "properties": {"Ips": ips}}
    hiera = {"group": "hiera", "config": {"get_param": "RoleData"}}
    config = {"type": "OS::Heat::StructuredConfig", "properties": hiera}
    deployment = {"type": "OS::TripleO::NodeDeployment", "properties": {"Config": {"get_resource": "HieraConfig"}}}
    return template(
        {"RoleData": "json", "RoleName": "string", "Hostname": "string", "IP": "string"},
        {**ports, "Server": server, "NetIpMap": net_map, "HieraConfig": config, "Deployment": deployment},
        {"ip_address": {"get_attr": ["Server", "ip"]}, "hostname": {"get_param": "Hostname"}},
    )


def port(network: str) -> dict[str, Any]:
    made = {"type": "OS::TripleO::Ports::Allocated", "properties": {"Network": network}}
    parameters = {"ControlPlaneIP": "string", "RoleName": "string"}
    return template(parameters, {"Port": made}, {"ip_address": {"get_attr": ["Port", "ip"]}})


def leaf(parameters: dict[str, str], **outputs: Any) -> dict[str, Any]:
    """The end of a branch."""
    return template(parameters, {"It": {"type": "OS::Heat::RandomString"}}, outputs)


def wrapped(kind: str, parameters: dict[str, str], *attributes: str) -> dict[str, Any]:
    """A template that hands all on to the next one."""
    properties = {name: {"get_param": name} for name in parameters}
    inner = {"type": kind, "properties": properties}
    return template(parameters, {"Inner": inner}, {name: {"get_attr": ["Inner", name]} for name in attributes})


def overcloud(roles: int = 10, services: int = 100, nodes: int = 3) -> Overcloud:
    """roles, nodes — of each role; services — of all roles; each of these has half of them."""
    files: dict[str, Any] = {}
    registry: dict[str, str] = {}

    def map_to(kind: str, content: dict[str, Any]) -> None:
        name = f"{kind.removeprefix('OS::TripleO::').replace('::', '/').lower()}.yaml"
        files[name], registry[kind] = content, name

    for number in range(services):
        map_to(f"OS::TripleO::Services::S{number}", service(number, 1))
        for level in range(2, BASES + 1):
            map_to(f"OS::TripleO::Services::S{number}Base{level}", service(number, level))
    for network in NETWORKS:
        map_to(f"OS::TripleO::Ports::{network}Port", port(network))
    map_to("OS::TripleO::Ports::Allocated", wrapped("OS::TripleO::Ports::Made", {"Network": "string"}, "ip"))
    map_to("OS::TripleO::Ports::Made", leaf({"Network": "string"}, ip={"get_attr": ["It", "value"]}))
    parameters = {"Name": "string", "NetIps": "json"}
    map_to("OS::TripleO::Server", wrapped("OS::TripleO::ServerInner", parameters, "ip"))
    map_to("OS::TripleO::ServerInner", wrapped("OS::TripleO::ServerMade", parameters, "ip"))
    map_to("OS::TripleO::ServerMade", leaf(parameters, ip={"get_attr": ["It", "value"]}))
    map_to("OS::TripleO::Network::Ports::NetIpMap", template({"Ips": "json"}, {}, {"net_ip_map": {"get_param": "Ips"}}))
    map_to("OS::TripleO::NodeDeployment", wrapped("OS::TripleO::NodeDeployed", {"Config": "string"}))
    map_to("OS::TripleO::NodeDeployed", leaf({"Config": "string"}))
    endpoints = {key: {"uri": f"http://192.0.2.1:5000/{key}", "host": "192.0.2.1"} for key in "abcdef"}
    top: dict[str, Any] = {"Endpoints": {"type": "OS::TripleO::EndpointMap"}}
    map_to("OS::TripleO::EndpointMap", template({}, {}, {"endpoint_map": endpoints}))
    for number in range(roles):
        name = f"Role{number}"
        map_to(f"OS::TripleO::{name}", role())
        map_to(f"OS::TripleO::{name}Services", role_services())
        mine = [f"OS::TripleO::Services::S{each}" for each in range(services) if (each + number) % 2]
        net_map = {f"S{each}Network": NETWORKS[each % len(NETWORKS)] for each in range(services)}
        properties = {
            "Services": mine,
            "RoleName": name,
            "ServiceNetMap": net_map,
            "ServiceData": {"net_cidr_map": dict.fromkeys(NETWORKS, "192.0.2.0/24")},
            "EndpointMap": {"get_attr": ["Endpoints", "endpoint_map"]},
        }
        top[f"{name}Services"] = {"type": f"OS::TripleO::{name}Services", "properties": properties}
        member = {
            "type": f"OS::TripleO::{name}",
            "properties": {
                "RoleData": {"get_attr": [f"{name}Services", "role_data"]},
                "RoleName": name,
                "Hostname": f"{name.lower()}-%index%",
            },
        }
        top[name] = {"type": "OS::Heat::ResourceGroup", "properties": {"count": nodes, "resource_def": member}}
    return Overcloud(
        template({}, top, {"hosts": {"get_attr": ["Role0", "hostname"]}}),
        {"resource_registry": registry, "parameter_defaults": {f"Default{number}": number for number in range(200)}},
        {name: str(content) for name, content in files.items()},
        levels=2 + BASES,
    )
