"""What the services of an OpenStack have in a project, as the administrator lists it, against what stacks show."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from openstack.connection import Connection

from tests.openstack.projects import Project

TOKEN = re.compile(r'homeostat(?::|_token": ")([\w.-]+)')
LISTS = {
    "server": ("compute", "/servers/detail?project_id={}&all_tenants=1", "servers"),
    "network": ("network", "/networks?project_id={}", "networks"),
    "subnet": ("network", "/subnets?project_id={}", "subnets"),
    "port": ("network", "/ports?project_id={}", "ports"),
    "security group": ("network", "/security-groups?project_id={}", "security_groups"),
    "volume": ("block_storage", "/volumes/detail?project_id={}&all_tenants=1", "volumes"),
    "load balancer": ("load_balancer", "/lbaas/loadbalancers?project_id={}", "loadbalancers"),
    "listener": ("load_balancer", "/lbaas/listeners?project_id={}", "listeners"),
    "pool": ("load_balancer", "/lbaas/pools?project_id={}", "pools"),
}
"""Kind -> service, path of its list, key of the things in it. Members are listed by pool."""
TYPES = {
    "OS::Nova::Server": "server",
    "OS::Neutron::Net": "network",
    "OS::Neutron::Subnet": "subnet",
    "OS::Neutron::Port": "port",
    "OS::Neutron::SecurityGroup": "security group",
    "OS::Cinder::Volume": "volume",
    "OS::Octavia::LoadBalancer": "load balancer",
    "OS::Octavia::Listener": "listener",
    "OS::Octavia::Pool": "pool",
    "OS::Octavia::PoolMember": "member",
}
OWNERS = ("project_id", "tenant_id", "os-vol-tenant-attr:tenant_id")
HEALTHY = ("ACTIVE", "available", "in-use", "DOWN", "NO_MONITOR", "ONLINE")
Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Truth:
    """things — kind -> id -> the thing."""

    things: Mapping[str, Mapping[str, Wire]]

    def __len__(self) -> int:
        return sum(map(len, self.things.values()))

    def differs(self, shown: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
        """What is wrong with it, a line each. shown — kind -> id -> what has it in a stack."""
        for kind, there in self.things.items():
            wanted = shown.get(kind, {})
            for id, owner in wanted.items():
                if id not in there:
                    yield f"{owner} is {kind} {id}, which does not exist"
                else:
                    yield from self._unhealthy(kind, there[id], owner)
            for id, thing in there.items():
                if id not in wanted and not self._belongs(kind, thing, shown):
                    yield f"{kind} {id} belongs to no stack: {_words(thing)}"
            yield from _doubled(kind, there)

    def _unhealthy(self, kind: str, thing: Wire, owner: str) -> Iterator[str]:
        status = thing.get("provisioning_status") or thing.get("status") or "ACTIVE"
        if status not in HEALTHY:
            yield f"{owner}: {kind} {thing['id']} is {status}"
        if kind == "server" and len(self._ports_of(thing["id"])) != 1:
            yield f"{owner}: server {thing['id']} has the ports {self._ports_of(thing['id'])}"

    def _ports_of(self, device: str) -> list[str]:
        return [id for id, port in self.things["port"].items() if port["device_id"] == device]

    def _belongs(self, kind: str, thing: Wire, shown: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether it is a part of what a stack has: the port of a server or of a load balancer, and its group."""
        devices = {*shown.get("server", ()), *(f"lb-{id}" for id in shown.get("load balancer", ()))}
        if kind == "port":
            return thing["device_id"] in devices or any(id in thing["name"] for id in shown.get("load balancer", ()))
        if kind == "security group":
            return thing["name"] == "default" or thing["name"].removeprefix("lb-") in shown.get("load balancer", ())
        return False


def look(project: Project, admin: Connection) -> Truth:
    """List everything, as the administrator."""
    things: dict[str, dict[str, Wire]] = {}
    for kind, (service, path, key) in LISTS.items():
        found = getattr(admin, service).get(path.format(project.id)).json()[key]
        # Not every service takes the filter, or has the field.
        own = [each for each in found if not {each[name] for name in OWNERS if name in each} - {project.id}]
        things[kind] = {each["id"]: each for each in own if each.get("provisioning_status") != "DELETED"}
    things["member"] = {
        member["id"]: member
        for pool in things["pool"]
        for member in admin.load_balancer.get(f"/lbaas/pools/{pool}/members").json().get("members", ())
    }
    return Truth(things)


def _doubled(kind: str, there: Mapping[str, Wire]) -> Iterator[str]:
    tokens = Counter(token for thing in there.values() for token in set(TOKEN.findall(json.dumps(thing))))
    for token, count in tokens.items():
        if count > 1:
            yield f"{count} of {kind} carry the token {token}"


def _words(thing: Wire) -> str:
    fields = ("name", "status", "provisioning_status", "device_owner", "device_id", "description", "tags", "metadata")
    return json.dumps({name: thing[name] for name in fields if thing.get(name)})
