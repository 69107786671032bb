"""The graph of a stack as Mermaid or Graphviz: what requires what, and how each is. Pure.

Nested stacks and groups are one node each, with the number of what is in them by status.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homeostat.cli.tree import requirements
from homeostat.cli.views import COMPLETE, FAILED, IN_PROGRESS, Key, ResourceView, Snapshot

COLORS = {COMPLETE: "#d7f0d7", FAILED: "#f6cfcf", IN_PROGRESS: "#fdf0c4", "": "#eeeeee"}
"""Status -> color of a node; "" for what was not begun."""
ORDER = (COMPLETE, IN_PROGRESS, FAILED, "")
WORST_FIRST = (FAILED, IN_PROGRESS, "", COMPLETE)
WORDS = {COMPLETE: "complete", IN_PROGRESS: "in progress", FAILED: "failed", "": "not begun"}
RESERVED = '"#;<>&\\'
"""Characters that end a label of Mermaid or begin something else there, besides line breaks."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node: lines — of its label; status — the worst of what it stands for."""

    id: str
    lines: tuple[str, ...]
    status: str


@dataclass(frozen=True, slots=True)
class Graph:
    """edges — from what requires to what is required."""

    name: str
    nodes: Sequence[Node]
    edges: Sequence[tuple[str, str]]


def graph_of(snapshot: Snapshot) -> Graph:
    """Return the graph of a stack."""
    root = str(snapshot.stack["id"])
    own_resources = [each for each in snapshot.resources if each.stack == root]
    inside = _inside(root, snapshot.resources)
    ids = {each.key: f"n{number}" for number, each in enumerate(own_resources)}
    nodes = [_node(ids[each.key], each, inside.get(each.key, Counter())) for each in own_resources]
    needs = requirements(own_resources)
    edges = [(ids[key], ids[need]) for key in ids for need in needs.get(key, ()) if need in ids]
    return Graph(snapshot.name, nodes, edges)


def _inside(root: str, resources: Sequence[ResourceView]) -> Mapping[Key, Counter[str]]:
    """Return how many resources of each status are in the nested stack of each resource of the root, at any depth."""
    owners = {each.nested: each for each in resources if each.nested}
    found: dict[Key, Counter[str]] = defaultdict(Counter)
    for each in resources:
        above = each
        while above.stack != root and above.stack in owners:
            above = owners[above.stack]
        if above is not each and above.stack == root:
            found[above.key][_status(each)] += 1
    return found


def _node(id: str, resource: ResourceView, inside: Counter[str]) -> Node:
    counts = ", ".join(f"{inside[status]} {WORDS[status]}" for status in ORDER if inside[status])
    lines = [resource.name, resource.type, resource.state.lower()]
    lines += [f"{inside.total()} in it: {counts}"] if inside else []
    worst = next((each for each in WORST_FIRST if each in (_status(resource), *inside)), "")
    return Node(id, tuple(lines), worst)


def _status(resource: ResourceView) -> str:
    return "" if resource.begins else resource.status


def mermaid(graph: Graph) -> str:
    """Return the text of a flow chart."""
    lines = ["flowchart BT"]
    for node in graph.nodes:
        label = "<br/>".join(map(_plain, node.lines))
        lines.append(f'    {node.id}["{label}"]:::s{ORDER.index(node.status)}')
    lines += [f"    {one} --> {other}" for one, other in graph.edges]
    for place, status in enumerate(ORDER):
        lines.append(f"    classDef s{place} fill:{COLORS[status]},stroke:#666,color:#111")
    return "\n".join([*lines, ""])


def _plain(line: str) -> str:
    return "".join(f"#{ord(each)};" if each in RESERVED or not each.isprintable() else each for each in line)


def dot(graph: Graph) -> str:
    """Return the text for Graphviz."""
    shape = 'node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=11]'
    lines = [f"digraph {_quoted(graph.name)} {{", "    rankdir=BT", f"    {shape}"]
    for node in graph.nodes:
        lines.append(f"    {node.id} [label={_quoted(*node.lines)}, fillcolor={_quoted(COLORS[node.status])}]")
    lines += [f"    {one} -> {other}" for one, other in graph.edges]
    return "\n".join([*lines, "}", ""])


def _quoted(*lines: str) -> str:
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines]
    return '"' + "\\n".join(escaped) + '"'
