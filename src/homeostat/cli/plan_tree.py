"""Plans as trees for people."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from homeostat.cli.tree import branches

Wire = Mapping[str, Any]
Place = tuple[str, ...]
SYMBOLS: Mapping[str, tuple[str, str]] = {
    "added": ("+", "green"),
    "updated": ("~", "yellow"),
    "replaced": ("±", "magenta"),
    "deleted": ("-", "red"),
    "not_adopted": ("!", "red"),
    "unseen": ("?", "yellow"),
}
"""Change of a resource -> symbol and colour. The last two occur in adoptions only (`cli.adoption_plan`)."""
WORDS = {
    "added": "to create",
    "updated": "to update",
    "replaced": "to replace",
    "deleted": "to delete",
    "not_adopted": "not adopted",
    "unseen": "not known",
}
WAITS = "it would wait: "
"""Prefix of the reason of a resource that is not at rest, and waits."""
WAITING = ("…", "yellow")
"""Symbol and colour of a waiting resource."""
ALIKE_MAX = 8
"""Members of a group with the same change that are drawn individually."""
VALUE_MAX = 72


@dataclass(frozen=True, slots=True)
class Node:
    """A line of the tree.

    Attributes:
        change: "" for a resource that only contains changing resources.
        folded: Number of further similar members behind this line.
    """

    name: str
    type: str = ""
    change: str = ""
    reason: str = ""
    differences: tuple[tuple[str, Any, Any], ...] = ()
    folded: int = 0


def counted(preview: Wire) -> dict[str, int]:
    """Count resources by change, including members not listed individually."""
    counts = {change: len(entries) for change, entries in preview["resource_changes"].items()}
    for more in preview["more_members"]:
        counts[more["change"]] += more["count"]
    return counts


def to_do(counts: Mapping[str, int]) -> bool:
    return any(count for change, count in counts.items() if change != "unchanged")


def drawn(name: str, preview: Wire, *, exists: bool) -> Iterator[Text]:
    """Yield the plan as lines."""
    counts, waits = counted(preview), len(_waiting(preview))
    if not to_do(counts) and not waits:
        yield Text(f"{name} is as it should be: nothing to do, {counts['unchanged']} unchanged")
        return
    doing = " would be updated:" if to_do(counts) else " is not as it should be, and nothing would be done for now:"
    yield Text.assemble((name, "bold"), doing if exists else " would be created:")
    yield from tree(preview)
    yield total(counts, "unchanged")


def _waiting(preview: Wire) -> list[Wire]:
    """Return the resources that are not at rest, but would wait."""
    return [entry for entry in preview["resource_changes"]["unchanged"] if entry["change_reason"].startswith(WAITS)]


def tree(preview: Wire) -> Iterator[Text]:
    """Yield the changing resources, with their ancestors, as lines."""
    nodes, below = _tree(preview)
    for prefix, place in branches(below):
        yield from _lines(prefix, nodes[place])


def total(counts: Mapping[str, int], unchanged: str) -> Text:
    """Return the last line of a plan; `unchanged` is the word for unchanged resources."""
    parts = [f"{counts[change]} {words}" for change, words in WORDS.items() if counts.get(change)]
    return Text(f"plan: {', '.join(parts)}; {counts['unchanged']} {unchanged}", style="bold")


def _tree(preview: Wire) -> tuple[dict[Place, Node], dict[Place | None, list[Place]]]:
    """Return the nodes of the changing resources and their ancestors, and the children of each node."""
    nodes = {
        (*entry["path"], entry["resource_name"]): _node(change, entry)
        for change in SYMBOLS
        for entry in preview["resource_changes"].get(change, ())
    }
    nodes |= {(*entry["path"], entry["resource_name"]): _node("", entry) for entry in _waiting(preview)}
    kinds = {(*e["path"], e["resource_name"]): e["resource_type"] for e in preview["resource_changes"]["unchanged"]}
    for place in list(nodes):
        for length in range(1, len(place)):
            nodes.setdefault(place[:length], Node(place[length - 1], kinds.get(place[:length], "")))
    below: dict[Place | None, list[Place]] = defaultdict(list)
    for place in sorted(nodes, key=_order):
        below[place[:-1] or None].append(place)
    more = {(tuple(entry["path"]), entry["change"]): entry["count"] for entry in preview["more_members"]}
    for parent in [place for place in below if place is not None]:
        _fold(parent, nodes, below, more)
    return nodes, below


def _fold(
    parent: Place,
    nodes: dict[Place, Node],
    below: dict[Place | None, list[Place]],
    more: Mapping[tuple[Place, str], int],
) -> None:
    """Replace all but the first few similar members by a single node.

    Args:
        more: (parent, change) -> number of members that are not listed.
    """
    members = below[parent]
    alike = Counter(nodes[place].change for place in members)
    left: Counter[str] = Counter()
    visible = []
    for place in members:
        change = nodes[place].change
        left[change] += 1
        if not change or alike[change] <= ALIKE_MAX or left[change] < ALIKE_MAX or below.get(place):
            visible.append(place)
    for change in SYMBOLS:
        hidden = sum(nodes[place].change == change for place in members) - sum(
            nodes[place].change == change for place in visible
        )
        hidden += more.get((parent, change), 0)
        if hidden:
            folded = (*parent, f"({change})")
            nodes[folded] = Node(f"… and {hidden} more", change=change, folded=hidden)
            visible.append(folded)
    below[parent] = visible


def _node(change: str, entry: Wire) -> Node:
    differences = tuple(
        difference
        for item in entry["property_changes"]
        for difference in _apart(item["name"], item["before"], item["after"])
    )
    return Node(entry["resource_name"], entry["resource_type"], change, entry["change_reason"], differences)


def _apart(name: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the differences of two values: maps key by key, lists of equal length item by item."""
    if isinstance(before, dict) and isinstance(after, dict) and before and after:
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                yield from _apart(f"{name}.{key}", before.get(key), after.get(key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                yield from _apart(f"{name}[{index}]", old, new)
    else:
        yield name, before, after


def _order(place: Place) -> list[list[tuple[int, int, str]]]:
    """Return a natural sort key: numbers in names are compared as numbers."""
    return [
        [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]
        for name in place
    ]


def _lines(prefix: str, node: Node) -> Iterator[Text]:
    waits = node.reason.startswith(WAITS)
    symbol, style = SYMBOLS.get(node.change, WAITING if waits else (" ", "dim"))
    line = Text.assemble((prefix, "dim"), (f"{symbol} {node.name}", style))
    if node.type:
        line.append(f"  {node.type.removeprefix('OS::')}", "dim")
    if node.reason:
        line.append(f"  {node.reason}", "red" if node.reason.startswith("it would fail") else "")
    yield line
    indent = " " * (len(prefix) + 4)
    for name, before, after in node.differences:
        change = Text.assemble(indent, (f"{name}: ", "dim"), (_value(before), "red"), " → ", (_value(after), "green"))
        yield change


def _value(value: Any) -> str:
    """Format a value in one line, shortened if it is too long."""
    if value == "(not known yet)":
        return str(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 1]}…"
