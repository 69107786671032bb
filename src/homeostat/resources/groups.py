"""Members of a group of alike resources: their names, their definitions, and which names are out of use."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count as counting
from itertools import islice
from typing import Any


def member_names(count: int, skip: Collection[str]) -> list[str]:
    """The `count` lowest numbers from 0, as text, that are not in `skip`."""
    free = (name for name in map(str, counting()) if name not in skip)
    return list(islice(free, count))


def names_end(count: int, skip: Collection[str]) -> int:
    """One more than the highest number among the names of `count` members; found without listing them."""
    end = count
    for number in sorted(int(name) for name in skip if name.isdigit()):
        if number >= end:
            break
        end += 1
    return end


def names_between(count: int, skip: Collection[str], low: int, high: int) -> list[str]:
    """Those of `member_names(count, skip)` whose number is at least `low` and below `high`."""
    numbers = range(low, min(high, names_end(count, skip)))
    return [name for name in map(str, numbers) if name not in skip]


def is_member(name: str, group: Mapping[str, Any]) -> bool:
    """Is this the name of a member? group — `{count, skip, …}`."""
    count, skip = group.get("count", 0), group.get("skip", ())
    return name.isdigit() and name not in skip and int(name) < names_end(count, skip)


def member_definition(resource_def: Mapping[str, Any], name: str, index_var: str) -> dict[str, Any]:
    """One member's {type, properties[, metadata]}: `index_var` in values of properties becomes its name.

    Keys, the type and the metadata stay as they are; properties that are null are left out.
    """
    properties = resource_def.get("properties") or {}
    definition = {
        "type": resource_def["type"],
        "properties": {
            key: _with_index(value, name, index_var) for key, value in properties.items() if value is not None
        },
    }
    if resource_def.get("metadata"):
        definition["metadata"] = resource_def["metadata"]
    return definition


def _with_index(value: Any, name: str, index_var: str) -> Any:
    if isinstance(value, str):
        return value.replace(index_var, name)
    if isinstance(value, Mapping):
        return {key: _with_index(item, name, index_var) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_index(item, name, index_var) for item in value]
    return value


def skip_list(
    previous: Iterable[str],
    removal_policies: Sequence[Mapping[str, Any]],
    mode: str,
    references: Mapping[str, str],
) -> list[str]:
    """Names that no member may have, oldest first.

    removal_policies — [{resource_list: [member name, number or reference id]}]; entries that match neither a
    member nor a name skipped before are ignored. mode — `append` keeps what was skipped before, `update`
    starts afresh. references — reference id of each member by its name.
    """
    known = list(previous)
    names = {reference: name for name, reference in references.items()}
    listed = [str(entry) for policy in removal_policies for entry in policy.get("resource_list") or []]
    found = [entry if entry in references or entry in known else names.get(entry) for entry in listed]
    kept = known if mode == "append" else []
    return list(dict.fromkeys([*kept, *(name for name in found if name is not None)]))
