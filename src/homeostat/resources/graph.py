"""Reading the template's graph of raw property trees: which resource a value names, who shares a network.

A graph is name -> (type name, raw property tree). In a tree, any object with a method `requires()` stands for
a value that waits for the resources whose names it gives (the function nodes of `templates`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Graph = Mapping[str, tuple[str, Mapping[str, Any]]]


def mentioned(tree: Any) -> set[str]:
    """Names of all resources that a property tree refers to."""
    if isinstance(tree, str | int | float | None):
        return set()
    if isinstance(tree, Mapping):
        return {name for value in tree.values() for name in mentioned(value)}
    if isinstance(tree, Sequence):
        return {name for value in tree for name in mentioned(value)}
    requires = getattr(tree, "requires", None)
    return set(requires()) if callable(requires) else set()


def same(one: Any, other: Any) -> bool:
    """Two raw values surely mean the same thing: the same resources, or the same text."""
    if not one or not other:
        return False
    left, right = mentioned(one), mentioned(other)
    return left == right if left or right else bool(one == other)


def pick(tree: Mapping[str, Any], *names: str) -> Any:
    """Value of the first of `names` that is set: a property, or its deprecated twin."""
    return next((tree[name] for name in names if tree.get(name) is not None), None)


def of_type(graph: Graph, *types: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and property tree of every resource of these types."""
    return ((name, tree) for name, (type_name, tree) in graph.items() if type_name in types)


def entries(value: Any) -> list[Mapping[str, Any]]:
    """The maps of a raw list; nothing where a function stands for the list or an item."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def subnets_of(graph: Graph, network: Any) -> set[str]:
    """Names of the subnets in the template that lie on a network (a raw value)."""
    return {
        name
        for name, tree in of_type(graph, "OS::Neutron::Subnet")
        if same(pick(tree, "network", "network_id"), network)
    }
