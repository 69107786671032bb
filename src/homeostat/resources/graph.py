"""Queries on the graph of a template's raw properties: which resources a value refers to, which share a network.

A graph is name -> (type name, raw property tree). In a tree, any object with a method `requires()` (the function nodes
of `templates`) stands for a value that depends on the resources named by the method.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

Graph = Mapping[str, tuple[str, Mapping[str, Any]]]


def mentioned(tree: Any) -> set[str]:
    """Return the names of all resources that a property tree refers to."""
    if isinstance(tree, str | int | float | None):
        return set()
    if isinstance(tree, Mapping):
        return {name for value in tree.values() for name in mentioned(value)}
    if isinstance(tree, Sequence):
        return {name for value in tree for name in mentioned(value)}
    requires = getattr(tree, "requires", None)
    return set(requires()) if callable(requires) else set()


def same(first: Any, second: Any) -> bool:
    """Return whether two raw values certainly mean the same object: the same resources, or the same text."""
    if not first or not second:
        return False
    left, right = mentioned(first), mentioned(second)
    return left == right if left or right else bool(first == second)


def pick(tree: Mapping[str, Any], *names: str) -> Any:
    """Return the value of the first of `names` that is set: a property, or its deprecated name."""
    return next((tree[name] for name in names if tree.get(name) is not None), None)


class Indexed(dict[str, tuple[str, Mapping[str, Any]]]):
    """A graph with indexes, for many queries: resources by type, and subnets by network."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.by_type: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
        for name, (type_name, tree) in graph.items():
            self.by_type[type_name].append((name, tree))
        self.subnets: dict[Hashable, set[str]] = defaultdict(set)
        for name, tree in self.by_type["OS::Neutron::Subnet"]:
            self.subnets[_meaning(pick(tree, "network", "network_id"))].add(name)


def index(graph: Graph) -> Indexed:
    return graph if isinstance(graph, Indexed) else Indexed(graph)


def _meaning(value: Any) -> Hashable:
    """Return a hashable key, equal for raw values that are the `same`; None for an empty value."""
    return (frozenset(mentioned(value)) or repr(value)) if value else None


def of_type(graph: Graph, *types: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return name and property tree of every resource of these types."""
    indexed = index(graph)
    return (entry for type_name in types for entry in indexed.by_type.get(type_name, ()))


def entries(value: Any) -> list[Mapping[str, Any]]:
    """Return the maps in a raw list; functions that stand for the list or an item are left out."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def subnets_of(graph: Graph, network: Any) -> set[str]:
    """Return the names of the subnets in the template that lie on a network (a raw value)."""
    indexed = index(graph)
    return set(indexed.subnets.get(_meaning(network), ())) if network else set()


def subnets_of_mentioned(graph: Graph, tree: Any) -> set[str]:
    """Return the names of the subnets of every network of the template that a property tree refers to, at any depth."""
    subnets = index(graph).subnets
    return {name for network in mentioned(tree) for name in subnets.get(frozenset({network}), ())} if subnets else set()


def without_network(graph: Graph) -> set[str]:
    """Return the names of the subnets whose properties do not say on which network they lie."""
    indexed = index(graph)
    return set(indexed.subnets.get(None, ()))
