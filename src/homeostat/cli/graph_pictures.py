"""The dependency graph of a stack, with the status of each resource, as Mermaid or Graphviz.

A nested stack or group is a single node, with the counts of its resources by status.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homeostat.cli.tree import requirements
from homeostat.cli.views import COMPLETE, FAILED, IN_PROGRESS, Key, ResourceView, Snapshot

COLORS = {COMPLETE: "#d7f0d7", FAILED: "#f6cfcf", IN_PROGRESS: "#fdf0c4", "": "#eeeeee"}
"""Status -> color of a node; "" for a resource not begun."""
ORDER = (COMPLETE, IN_PROGRESS, FAILED, "")
WORST_FIRST = (FAILED, IN_PROGRESS, "", COMPLETE)
WORDS = {COMPLETE: "complete", IN_PROGRESS: "in progress", FAILED: "failed", "": "not begun"}
RESERVED = '"#;<>&\\'
"""Characters with a meaning in labels of Mermaid, besides line breaks."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node: the lines of its label, and the worst status of the resources in it."""

    id: str
    lines: tuple[str, ...]
    status: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph; `edges` point from the dependant to the required resource."""

    name: str
    nodes: Sequence[Node]
    edges: Sequence[tuple[str, str]]


def graph_of(snapshot: Snapshot) -> Graph:
    """Return the graph of a stack."""
    root = str(snapshot.stack["id"])
    own_resources = [resource for resource in snapshot.resources if resource.stack == root]
    inside = _inside(root, snapshot.resources)
    ids = {resource.key: f"n{number}" for number, resource in enumerate(own_resources)}
    nodes = [_node(ids[resource.key], resource, inside.get(resource.key, Counter())) for resource in own_resources]
    needs = requirements(own_resources)
    edges = [(ids[key], ids[need]) for key in ids for need in needs.get(key, ()) if need in ids]
    return Graph(snapshot.name, nodes, edges)


def _inside(root: str, resources: Sequence[ResourceView]) -> Mapping[Key, Counter[str]]:
    """Count resources in nested stacks, at any depth, by status and by the owning resource of the root stack."""
    owners = {resource.nested: resource for resource in resources if resource.nested}
    counts: dict[Key, Counter[str]] = defaultdict(Counter)
    for resource in resources:
        above = resource
        while above.stack != root and above.stack in owners:
            above = owners[above.stack]
        if above is not resource and above.stack == root:
            counts[above.key][_status(resource)] += 1
    return counts


def _node(id: str, resource: ResourceView, inside: Counter[str]) -> Node:
    counts = ", ".join(f"{inside[status]} {WORDS[status]}" for status in ORDER if inside[status])
    lines = [resource.name, resource.type, resource.state.lower()]
    lines += [f"{inside.total()} in it: {counts}"] if inside else []
    worst = next((status for status in WORST_FIRST if status in (_status(resource), *inside)), "")
    return Node(id, tuple(lines), worst)


def _status(resource: ResourceView) -> str:
    return "" if resource.begins else resource.status


def mermaid(graph: Graph) -> str:
    """Return the text of a flow chart."""
    lines = ["flowchart BT"]
    for node in graph.nodes:
        label = "<br/>".join(map(_plain, node.lines))
        lines.append(f'    {node.id}["{label}"]:::s{ORDER.index(node.status)}')
    lines += [f"    {dependant} --> {required}" for dependant, required in graph.edges]
    for place, status in enumerate(ORDER):
        lines.append(f"    classDef s{place} fill:{COLORS[status]},stroke:#666,color:#111")
    return "\n".join([*lines, ""])


def _plain(line: str) -> str:
    return "".join(
        f"#{ord(character)};" if character in RESERVED or not character.isprintable() else character
        for character in line
    )


def dot(graph: Graph) -> str:
    """Return the text for Graphviz."""
    shape = 'node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=11]'
    lines = [f"digraph {_quoted(graph.name)} {{", "    rankdir=BT", f"    {shape}"]
    for node in graph.nodes:
        lines.append(f"    {node.id} [label={_quoted(*node.lines)}, fillcolor={_quoted(COLORS[node.status])}]")
    lines += [f"    {dependant} -> {required}" for dependant, required in graph.edges]
    return "\n".join([*lines, "}", ""])


def _quoted(*lines: str) -> str:
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines]
    return '"' + "\\n".join(escaped) + '"'
