"""Types of the Clustering API, which the service itself provides: profiles, policies, clusters, nodes, receivers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from homeostat.model.errors import InvalidTemplateAttribute, Rejected
from homeostat.resources import comparison
from homeostat.resources.attribute_paths import attribute_path
from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.graph import Graph, entries, of_type, subnets_of_mentioned
from homeostat.resources.rules import require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Schema,
    ValueType,
    between,
    boolean,
    custom,
    integer,
    link,
    listing,
    mapping,
    one_of,
    text,
)
from homeostat.resources.support import Support
from homeostat.templates.tree import part_of

PROFILE, POLICY, CLUSTER, NODE, RECEIVER = KINDS = (
    "cluster_profile",
    "cluster_policy",
    "node_cluster",
    "cluster_node",
    "cluster_receiver",
)
NAME = re.compile(r"[a-zA-Z\u4e00-\u9fa5\d._~-]*\Z")
NAME_MAX = 255
NO_LIMIT = -1
MEMBERS, DETAILS = "members", "details"
"""Fields that are read on demand, and not stored with the observation: nodes with their details, and details."""


def attached(wanted: Sequence[Mapping[str, Any]], seen: Any) -> bool:
    """Return whether every wanted policy is attached, and enabled as wanted; more policies may be attached."""
    return seen is None or all(any(_same(policy, other) for other in seen) for policy in wanted)


def _same(wanted: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    (key,) = wanted.keys() - {"enabled"}
    return comparison.reference(wanted[key], seen.get(key)) and wanted["enabled"] == seen.get("enabled")


class Clustered(ResourceType):
    """Base of the types of the Clustering API."""

    support = Support(version="6.0.0")

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        name = values.get("name")
        fits = not isinstance(name, str) or (len(name) <= NAME_MAX and NAME.match(name) is not None)
        message = f"a name has at most {NAME_MAX} characters: letters, digits and ._~-"
        require(fits, message, (*path, "name"))

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        plain = "".join(sign if NAME.match(sign) else "-" for sign in physical_name)
        return super().spec(values, plain)


class Profile(Clustered):
    name = "OS::Senlin::Profile"
    kind = PROFILE
    description = "What the nodes of clusters are made from: a server, or a stack."
    properties = {
        "name": text("Name of the profile.", update=True),
        "type": text(
            "Type with its version, such as os.nova.server-1.0.",
            required=True,
            constraints=(custom("senlin.profile_type"),),
        ),
        "metadata": mapping("Metadata of the profile.", update=True),
        "properties": mapping("Properties of the nodes, as the type has them."),
    }

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the subnets of all networks in the profile: its nodes are connected to them."""
        return subnets_of_mentioned(graph, properties.get("properties"))


_BINDING: Schema = {
    "cluster": link("The cluster.", "senlin.cluster", required=True),
    "enabled": boolean("Whether the policy acts.", default=True),
}


class Policy(Clustered):
    name = "OS::Senlin::Policy"
    kind = POLICY
    description = "A rule that clusters follow when they are resized, updated or recovered."
    properties = {
        "name": text("Name of the policy.", update=True),
        "type": text(
            "Type with its version, such as senlin.policy.scaling-1.0.",
            required=True,
            constraints=(custom("senlin.policy_type"),),
        ),
        "properties": mapping("Properties of the policy, as the type has them."),
        "bindings": listing(
            "Clusters that it is attached to; a cluster may as well name its policies itself.",
            update=True,
            items=mapping(fields=_BINDING),
            same=attached,
        ),
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        bindings = spec.get("bindings") or []
        return {
            **spec,
            "bindings": [{"cluster_id": binding["cluster"], "enabled": binding["enabled"]} for binding in bindings],
        }

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the clusters of the template that the bindings refer to by literal names."""
        return _named(graph, Cluster.name, (binding.get("cluster") for binding in entries(properties.get("bindings"))))


_POLICY: Schema = {
    "policy": link("The policy.", "senlin.policy", required=True),
    "enabled": boolean("Whether the policy acts.", default=True),
}


class Cluster(Clustered):
    name = "OS::Senlin::Cluster"
    kind = CLUSTER
    description = "A cluster: nodes that are made from one profile, and follow its policies."
    heals_itself = True
    renamed = {"profile": "profile_id"}
    properties = {
        "name": text("Name of the cluster.", update=True),
        "profile": link("Profile of its nodes.", "senlin.profile", required=True, update=True),
        "desired_capacity": integer(
            "How many nodes it is to have. What has scaled it since counts until this changes.",
            default=0,
            update=True,
            drift=False,
        ),
        "min_size": integer("Least nodes.", default=0, update=True, constraints=(between(0),)),
        "max_size": integer(
            "Most nodes; -1 for no limit.", default=NO_LIMIT, update=True, constraints=(between(NO_LIMIT),)
        ),
        "metadata": mapping("Metadata of the cluster.", default={}, update=True),
        "timeout": integer("Seconds that an action may take.", update=True, constraints=(between(0),)),
        "policies": listing(
            "Policies that are attached to it; others may be, too.",
            default=[],
            update=True,
            items=mapping(fields=_POLICY),
            same=attached,
        ),
        "config": mapping("How its nodes are named: node.name.format.", update=True),
    }
    attributes = {
        "name": Attribute("Name of the cluster."),
        "metadata": Attribute("Metadata of the cluster.", ValueType.MAP),
        "desired_capacity": Attribute("How many nodes it is to have now.", ValueType.INTEGER),
        "nodes": Attribute("Ids of its nodes.", ValueType.LIST, live=True),
        "min_size": Attribute("Least nodes.", ValueType.INTEGER),
        "max_size": Attribute("Most nodes.", ValueType.INTEGER),
        "policies": Attribute("Policies that are attached to it.", ValueType.LIST),
        "collect": Attribute("What the JSON path after it leads to in each of its nodes.", ValueType.LIST, live=True),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        super().validate(values, path)
        sizes = (values.get("min_size"), values.get("max_size"), values.get("desired_capacity"))
        if UNKNOWN in sizes:
            return
        least, most, wanted = sizes[0] or 0, NO_LIMIT if sizes[1] is None else sizes[1], sizes[2] or 0
        require(most == NO_LIMIT or least <= most, "min_size can not be greater than max_size", path)
        within = least <= wanted and (most == NO_LIMIT or wanted <= most)
        require(within, "desired_capacity must be between min_size and max_size", path)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        if not spec.get("timeout"):
            spec.pop("timeout", None)
        policies = spec.get("policies") or []
        return {
            **spec,
            "policies": [{"policy_id": policy["policy"], "enabled": policy["enabled"]} for policy in policies],
        }

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the profile and the policies of the template that the cluster refers to by literal names."""
        policies = (policy.get("policy") for policy in entries(properties.get("policies")))
        return _named(graph, Profile.name, [properties.get("profile")]) | _named(graph, Policy.name, policies)

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        """Return the value of an attribute; the path of `collect` begins with a JSON path.

        Raises:
            Rejected: InvalidTemplateAttribute: the JSON path is missing or wrong.
        """
        if name != "collect":
            return super().resolve(thing, name, path)
        if not path:
            raise InvalidTemplateAttribute(thing.name, name, "a JSON path has to follow it")
        try:
            wanted = attribute_path(str(path[0]))
        except Rejected as error:
            raise InvalidTemplateAttribute(thing.name, f"{name} {path[0]}", error.detail) from error
        results = map(wanted.first, thing.seen.properties.get(MEMBERS) or ())
        return part_of([value for matches, value in results if matches], path[1:], thing.name, name)

    def show(self, thing: Thing) -> Any:
        return _without(thing, MEMBERS)


class Node(Clustered):
    name = "OS::Senlin::Node"
    kind = NODE
    description = "A node that is made from a profile, in a cluster or without one."
    renamed = {"profile": "profile_id", "cluster": "cluster_id"}
    properties = {
        "name": text("Name of the node; in a cluster by default one that follows from its index.", update=True),
        "metadata": mapping("Metadata of the node.", update=True),
        "profile": link("Its profile.", "senlin.profile", required=True, update=True),
        "cluster": link("Cluster that it is in; it is moved alive.", "senlin.cluster", update=True),
    }
    attributes = {
        "details": Attribute("What was last seen of its server or stack.", ValueType.MAP),
        "cluster_id": Attribute("Id of its cluster."),
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        if not spec.get("cluster_id"):
            spec.pop("cluster_id", None)
        elif not values.get("name"):
            del spec["name"]
        return spec

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the profile and the cluster of the template that the node refers to by literal names."""
        clusters = _named(graph, Cluster.name, [properties.get("cluster")])
        return clusters | _named(graph, Profile.name, [properties.get("profile")])

    def show(self, thing: Thing) -> Any:
        return _without(thing, DETAILS)


class Receiver(Clustered):
    secretive = True
    name = "OS::Senlin::Receiver"
    kind = RECEIVER
    description = "An address at which alarms begin an action of a cluster."
    renamed = {"cluster": "cluster_id"}
    properties = {
        "cluster": link("The cluster.", "senlin.cluster", required=True),
        "action": text(
            "What it begins.", required=True, constraints=(one_of("CLUSTER_SCALE_OUT", "CLUSTER_SCALE_IN"),)
        ),
        "name": text("Name of the receiver."),
        "type": text("Type of the receiver.", default="webhook", constraints=(one_of("webhook"),)),
        "params": mapping("Inputs of the action, such as count."),
        "actor": mapping("Who acts, as users note it."),
    }
    attributes = {
        "channel": Attribute("Map with its address, alarm_url.", ValueType.MAP, secret=True),
    }

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the cluster of the template that the receiver refers to by a literal name."""
        return _named(graph, Cluster.name, [properties.get("cluster")])

    def show(self, thing: Thing) -> Any:
        """Return everything but the address, which has a separate attribute."""
        return _without(thing, "channel")


def _named(graph: Graph, type_name: str, names: "Iterator[Any] | Sequence[Any]") -> set[str]:
    """Return the resources of a type whose literal names are among these."""
    wanted = {name for name in names if isinstance(name, str) and name}
    return {resource for resource, tree in of_type(graph, type_name) if wanted and tree.get("name") in wanted}


def _without(thing: Thing, *hidden: str) -> dict[str, Any]:
    return {name: value for name, value in thing.seen.properties.items() if name not in hidden}


TYPES: list[type[ResourceType]] = [Profile, Policy, Cluster, Node, Receiver]
