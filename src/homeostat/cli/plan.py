"""`homeostat plan`: the effects of `up`, as a tree for people and as JSON for programs."""

import json
import re
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from homeostat.cli.connection import connect
from homeostat.cli.errors import OK, TO_DO
from homeostat.cli.flags import Commands, add_client_command, add_stack_description
from homeostat.cli.output import console, write_json
from homeostat.cli.stack_files import default_name, stack_body
from homeostat.cli.tree import branches

Wire = Mapping[str, Any]
Place = tuple[str, ...]
SYMBOLS: Mapping[str, tuple[str, str]] = {
    "added": ("+", "green"),
    "updated": ("~", "yellow"),
    "replaced": ("±", "magenta"),
    "deleted": ("-", "red"),
}
"""Change of a resource -> symbol and colour."""
WORDS = {"added": "to create", "updated": "to update", "replaced": "to replace", "deleted": "to delete"}
ALIKE_MAX = 8
"""Members of one group with the same change that are drawn one by one."""
VALUE_MAX = 72


@dataclass(frozen=True, slots=True)
class Node:
    """One line of the tree.

    Attributes:
        change: "" for a resource that only contains changing ones.
        folded: Number of further similar members that it represents.
    """

    name: str
    type: str = ""
    change: str = ""
    reason: str = ""
    differences: tuple[tuple[str, Any, Any], ...] = ()
    folded: int = 0


def plan(arguments: Namespace) -> int:
    body = stack_body(arguments.template, arguments.environment, arguments.parameter)
    name = arguments.name or default_name(arguments.template)
    with connect(arguments) as client:
        before = client.find_stack(name)
        if before is None:
            preview = client.preview({**body, "stack_name": name})
        else:
            preview = client.preview_update(before, body)
    counts = counted(preview)
    if arguments.json:
        changes = {key: preview[key] for key in ("resource_changes", "more_members")}
        write_json({"stack_name": name, "exists": before is not None, "summary": counts, **changes})
    else:
        out = console()
        for line in drawn(name, preview, exists=before is not None):
            out.print(line, soft_wrap=True)
    return TO_DO if arguments.detailed_exit_code and to_do(counts) else OK


def counted(preview: Wire) -> dict[str, int]:
    """Count resources by change, including members that are not listed one by one."""
    counts = {change: len(entries) for change, entries in preview["resource_changes"].items()}
    for each in preview["more_members"]:
        counts[each["change"]] += each["count"]
    return counts


def to_do(counts: Mapping[str, int]) -> bool:
    return any(count for change, count in counts.items() if change != "unchanged")


def drawn(name: str, preview: Wire, *, exists: bool) -> Iterator[Text]:
    """Yield the plan as lines."""
    counts = counted(preview)
    if not to_do(counts):
        yield Text(f"{name} is as it should be: nothing to do, {counts['unchanged']} unchanged")
        return
    yield Text.assemble((name, "bold"), " would be updated:" if exists else " would be created:")
    nodes, below = _tree(preview)
    for prefix, place in branches(below):
        yield from _lines(prefix, nodes[place])
    parts = [f"{counts[change]} {words}" for change, words in WORDS.items() if counts[change]]
    yield Text(f"plan: {', '.join(parts)}; {counts['unchanged']} unchanged", style="bold")


def _tree(preview: Wire) -> tuple[dict[Place, Node], dict[Place | None, list[Place]]]:
    """Return the nodes of the changing resources and those that contain them, and the nodes below each."""
    nodes = {
        (*entry["path"], entry["resource_name"]): _node(change, entry)
        for change in SYMBOLS
        for entry in preview["resource_changes"][change]
    }
    kinds = {(*e["path"], e["resource_name"]): e["resource_type"] for e in preview["resource_changes"]["unchanged"]}
    for place in list(nodes):
        for length in range(1, len(place)):
            nodes.setdefault(place[:length], Node(place[length - 1], kinds.get(place[:length], "")))
    below: dict[Place | None, list[Place]] = defaultdict(list)
    for place in sorted(nodes, key=_order):
        below[place[:-1] or None].append(place)
    more = {(tuple(each["path"]), each["change"]): each["count"] for each in preview["more_members"]}
    for parent in [each for each in below if each is not None]:
        _fold(parent, nodes, below, more)
    return nodes, below


def _fold(
    parent: Place,
    nodes: dict[Place, Node],
    below: dict[Place | None, list[Place]],
    more: Mapping[tuple[Place, str], int],
) -> None:
    """Replace all but the first few similar members by one node.

    Args:
        more: (parent, change) -> number of members that are not listed.
    """
    members = below[parent]
    alike = Counter(nodes[place].change for place in members)
    left: Counter[str] = Counter()
    shown = []
    for place in members:
        change = nodes[place].change
        left[change] += 1
        if not change or alike[change] <= ALIKE_MAX or left[change] < ALIKE_MAX or below.get(place):
            shown.append(place)
    for change in SYMBOLS:
        hidden = sum(nodes[place].change == change for place in members) - sum(
            nodes[place].change == change for place in shown
        )
        hidden += more.get((parent, change), 0)
        if hidden:
            folded = (*parent, f"({change})")
            nodes[folded] = Node(f"… and {hidden} more", change=change, folded=hidden)
            shown.append(folded)
    below[parent] = shown


def _node(change: str, entry: Wire) -> Node:
    differences = tuple(
        each for found in entry["property_changes"] for each in _apart(found["name"], found["before"], found["after"])
    )
    return Node(entry["resource_name"], entry["resource_type"], change, entry["change_reason"], differences)


def _apart(name: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield where two values differ: maps key by key, lists of equal length item by item."""
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
    """Return a sort key in which numbers in names count as numbers."""
    return [
        [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]
        for name in place
    ]


def _lines(prefix: str, node: Node) -> Iterator[Text]:
    symbol, style = SYMBOLS.get(node.change, (" ", "dim"))
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


# -- flags -------------------------------------------------------------------------------------------------------------


def add_commands(commands: Commands) -> None:
    command = add_client_command(
        commands,
        plan,
        "plan",
        "show what `up` would create, update, replace and delete, and why; nothing is changed",
        "homeostat plan web.yaml shop -P port=8080\n"
        "  homeostat plan web.yaml --json | jq '.resource_changes.replaced[]'\n"
        "  homeostat plan web.yaml --detailed-exit-code || test $? = 4\n\n"
        "Secrets are not shown. Values that depend on resources to be created are shown as not known yet.",
    )
    add_stack_description(command)
    command.add_argument("--detailed-exit-code", action="store_true", help="end with 4 if there is something to do")
