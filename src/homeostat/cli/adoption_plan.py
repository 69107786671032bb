"""`homeostat plan --adopt-file`: the things that an adoption of a stack would take over, and its consequences."""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from homeostat.cli.connection import connect
from homeostat.cli.errors import FAILED, OK, TO_DO, Usage
from homeostat.cli.output import console, write_json
from homeostat.cli.plan_tree import counted, to_do, total, tree
from homeostat.cli.stack_files import adoption_body

Wire = Mapping[str, Any]
FAILS = ("refused", "missing", "failing")
"""Obstacles that prevent the whole adoption, or a part."""
TAGS_MAX = 20
"""Number of tags listed in the output."""


def plan_adoption(arguments: Namespace) -> int:
    if arguments.template is not None and arguments.name is not None:
        raise Usage("an adopted stack has the template of its document: homeostat plan --adopt-file FILE [NAME]")
    body = adoption_body(arguments.adopt_file, arguments.environment, arguments.parameter)
    # With --adopt-file, the first positional argument is the name of the stack.
    name = arguments.template or body["stack_name"]
    with connect(arguments) as client:
        preview = client.preview({**body, "stack_name": name})
    adoption = preview["stack"]["adoption"]
    sorted_out = _sorted_out(preview, adoption)
    counts = counted(sorted_out)
    if arguments.json:
        changes = {key: preview[key] for key in ("resource_changes", "more_members")}
        write_json({"stack_name": name, "summary": counts, **changes, "adoption": adoption})
    else:
        out = console()
        for line in drawn_adoption(name, sorted_out, adoption):
            out.print(line, soft_wrap=True)
    if counts["not_adopted"] or counts["unseen"]:
        return FAILED
    return TO_DO if arguments.detailed_exit_code and to_do(counts) else OK


def _sorted_out(preview: Wire, adoption: Wire) -> Wire:
    """Return the preview with resources that would not be adopted moved to `not_adopted` and `unseen`."""
    apart = {place: "not_adopted" for key in FAILS for place in map(_place, adoption[key])}
    apart |= dict.fromkeys(map(_place, adoption["unseen"]), "unseen")
    changes: dict[str, list[Wire]] = {"not_adopted": [], "unseen": []}
    for change, entries in preview["resource_changes"].items():
        changes.setdefault(change, [])
        for entry in entries:
            changes[apart.get(_place(entry), change)].append(entry)
    return {"resource_changes": changes, "more_members": preview["more_members"]}


def _place(entry: Wire) -> tuple[str, ...]:
    return (*entry["path"], entry["resource_name"])


def drawn_adoption(name: str, preview: Wire, adoption: Wire) -> Iterator[Text]:
    """Yield the plan of an adoption as lines; for `preview` see `_sorted_out`."""
    counts = counted(preview)
    if to_do(counts):
        yield Text.assemble((name, "bold"), f" {_heading(adoption)}:")
        yield from tree(preview)
        yield total(counts, "taken over as they are")
    else:
        taken = f"{counts['unchanged']} taken over as they are"
        yield Text(f"{name} can be adopted, and nothing would differ: {taken}")
    yield from _tags(adoption["tags"])


def _heading(adoption: Wire) -> str:
    if adoption["refused"]:
        return "would be refused"
    if adoption["missing"] or adoption["failing"]:
        return "would be adopted in part, and end as ADOPT_FAILED"
    if adoption["unseen"]:
        return "would perhaps be adopted"
    return "can be adopted, and would be changed then"


def _tags(tags: list[Wire]) -> Iterator[Text]:
    if tags:
        yield Text(f"the adoption itself would write {len(tags)} tag{'s' * (len(tags) > 1)}:")
    for tag in tags[:TAGS_MAX]:
        yield Text(f"  {tag['kind'].replace('_', ' ')} {tag['id']}, for {'.'.join(_place(tag))}")
    if len(tags) > TAGS_MAX:
        yield Text(f"  … and {len(tags) - TAGS_MAX} more")
