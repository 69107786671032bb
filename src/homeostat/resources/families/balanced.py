"""Servers of groups behind load balancers: which balancers there are, and a server together with its places in them."""

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
BALANCERS: Mapping[str, ResourceType] = {each.name: each for each in (ElasticLoadBalancer(), LoadBalancer())}
"""Types of the load balancers that a group can be behind: they say on which ports servers take connections."""
NAMES = "LoadBalancerNames"
REMEDY = (
    f"name an {' or an '.join(BALANCERS)} of the same template, or let the members of an OS::Heat::AutoScalingGroup be "
    "templates with an OS::Octavia::PoolMember"
)


class BalancedServer(Composed):
    """A member of a group behind load balancers: made by groups alone, so that no list of types has it.

    The server is made before it is entered in a pool, and taken out of it before it goes.
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
            each["name"]: part(
                "OS::Neutron::PoolMember", pool_id=each["pool"], protocol_port=each["port"], server=ref(SERVER)
            )
            for each in values["places"]
        }
        return {SERVER: {"type": SCALED, "properties": values[SERVER]}, **places}

    def outputs(self, values: Props) -> dict[str, Any]:
        return {ID: ref(SERVER), "PublicIp": {"get_attr": [SERVER, "PublicIp"]}}


def balancer_names(given: Any) -> list[Any]:
    """Return the names of the load balancers that a raw property lists, each once.

    A reference to a resource stands for its name, as in Heat. An item is `UNKNOWN` where it is not known yet, and None
    where it is something else; of a list that is one function nothing is known but that.
    """
    items = given if isinstance(given, list | tuple) else [] if given is None else [given]
    return list(dict.fromkeys(_name_of(item) for item in items if item is not None))


def _name_of(item: Any) -> Any:
    if isinstance(item, str) or item is UNKNOWN:
        return item
    names = mentioned(item)
    return names.pop() if len(names) == 1 and getattr(item, "name", "") in ("get_resource", "Ref") else None


def check_balancers(properties: Props, graph: Graph, path: tuple[str | int, ...]) -> None:
    """Check that a group can be behind the load balancers that it names.

    Args:
        properties: Raw properties of the group.
        graph: All resources of the template.
        path: Path of the properties.

    Raises:
        Rejected: One of them is no load balancer of the template that a group can be behind.
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
    """Return the places of each member: `[{name, pool, port}]`; None where a pool is not known yet.

    `balancers` has the pools of each load balancer by its name, as `POOLS` gives them.
    """
    found: list[dict[str, Any]] = []
    for balancer, pools in balancers.items():
        if not isinstance(pools, Sequence):
            return None
        found += [
            {"name": f"{balancer}-{each['listener']}", "pool": each["pool"], "port": each["port"]} for each in pools
        ]
    return found
