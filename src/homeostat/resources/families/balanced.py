"""Servers of groups behind load balancers: the balancers of a group, and a server together with its pool members."""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.model.errors import invalid
from homeostat.resources.base import Props, ResourceType
from homeostat.resources.composite import ID, Composed, part, ref
from homeostat.resources.families.lbaas_v1 import ElasticLoadBalancer, LoadBalancer
from homeostat.resources.graph import Graph, mentioned
from homeostat.resources.schema import UNKNOWN, Attribute, listing, mapping

SCALED = "OS::Heat::ScaledResource"
"""Type of the members of groups of servers; an alias of AWS::EC2::Instance that an environment may map elsewhere."""
SERVER = "server"
"""Name of the server in the stack of a `BalancedServer`, and of the property that describes it."""
BALANCERS: Mapping[str, ResourceType] = {
    balancer.name: balancer for balancer in (ElasticLoadBalancer(), LoadBalancer())
}
"""Types of the load balancers that can be in front of a group: their attribute `POOLS` has the ports of servers."""
NAMES = "LoadBalancerNames"
REMEDY = (
    f"name an {' or an '.join(BALANCERS)} of the same template, or let the members of an OS::Heat::AutoScalingGroup be "
    "templates with an OS::Octavia::PoolMember"
)


class BalancedServer(Composed):
    """A member of a group behind load balancers; internal, created by groups only.

    The server is created before its pool members, and the pool members are removed before the server.
    """

    name = "Homeostat::BalancedServer"
    description = "A server of a group, with its places in the pools of the load balancers in front of it."
    properties = {
        SERVER: mapping("Properties of the server.", required=True, update=True),
        "places": listing("Its places: maps of name, pool and port.", required=True, update=True),
    }
    needs_files = True
    attributes = {"PublicIp": Attribute("Address of the server.")}

    def parts(self, values: Props) -> dict[str, Any]:
        places = {
            place["name"]: part(
                "OS::Neutron::PoolMember", pool_id=place["pool"], protocol_port=place["port"], server=ref(SERVER)
            )
            for place in values["places"]
        }
        return {SERVER: {"type": SCALED, "properties": values[SERVER]}, **places}

    def outputs(self, values: Props) -> dict[str, Any]:
        return {ID: ref(SERVER), "PublicIp": {"get_attr": [SERVER, "PublicIp"]}}


def balancer_names(raw: Any) -> list[Any]:
    """Return the names of the load balancers in a raw property, without duplicates.

    A reference to a resource counts as its name, as in Heat. An item is `UNKNOWN` if not known yet, and None if it is
    anything else, for instance a function in the place of the whole list.
    """
    items = raw if isinstance(raw, list | tuple) else [] if raw is None else [raw]
    return list(dict.fromkeys(_name_of(item) for item in items if item is not None))


def _name_of(item: Any) -> Any:
    if isinstance(item, str) or item is UNKNOWN:
        return item
    names = mentioned(item)
    return names.pop() if len(names) == 1 and getattr(item, "name", "") in ("get_resource", "Ref") else None


def check_balancers(properties: Props, graph: Graph, path: tuple[str | int, ...]) -> None:
    """Check that all load balancers of a group can be in front of groups.

    Args:
        properties: Raw properties of the group.
        graph: All resources of the template.

    Raises:
        Rejected: A name is no load balancer of the template, or its type does not support groups.
    """
    for name in balancer_names(properties.get(NAMES)):
        if name is UNKNOWN:
            continue
        if name is None:
            raise invalid("a group is behind load balancers that are known by their names: " + REMEDY, *path, NAMES)
        if name not in graph:
            raise invalid(f"there is no load balancer {name} in the template: {REMEDY}", *path, NAMES)
        if graph[name][0] not in BALANCERS:
            raise invalid(f"{name} is an {graph[name][0]}, which a group cannot be behind: {REMEDY}", *path, NAMES)


def places_of(balancers: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the pool members of each group member: `[{name, pool, port}]`; None if a pool is not known yet.

    `balancers` maps the name of each load balancer to its pools, as in `POOLS`.
    """
    places: list[dict[str, Any]] = []
    for balancer, pools in balancers.items():
        if not isinstance(pools, Sequence):
            return None
        places += [
            {"name": f"{balancer}-{pool['listener']}", "pool": pool["pool"], "port": pool["port"]} for pool in pools
        ]
    return places
