"""Gates of a metadata rollout: the wait conditions and handles of the revision that begins the rollout (RU6). Pure.

A wait condition that depends on a group is created, or replaced, only after the rollout. A gate is therefore the future
handle of the condition, which exists before.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.rollout import WAITED_FOR_MAX, WaitGate
from homeostat.model.status import Status
from homeostat.planner.context import Context
from homeostat.resources.families.resource_groups import Membership
from homeostat.resources.families.wait_conditions import CONDITION, HANDLE, WaitCondition, handle_id
from homeostat.resources.registry import kind_of, type_of
from homeostat.templates import evaluate, requires


def pending(context: Context, group: str, alarms: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the resources to settle before the gates of a rollout are known.

    Resources that require the group, directly or not, come later and are left out.

    Args:
        group: Name of the group.
        alarms: Names of the handles that take alarms.
    """
    definitions, settled = context.world.definitions, context.settled
    # Without a frontier all resources count as settled.
    if settled is None:
        return ()
    names = set(alarms).union(*(_mentioned(definition, kind) for definition, kind in _conditions(definitions, group)))
    unsettled = {
        name for name in names & definitions.keys() if name not in settled and not _stays(context, definitions[name])
    }
    # Waiting for a follower of the group would be a deadlock.
    return tuple(sorted(unsettled - _followers(definitions, group))) if unsettled else ()


def _stays(context: Context, definition: Definition) -> bool:
    """Return whether a resource is a handle that the newest revision does not change."""
    row = context.current.get(definition.name)
    if row is None or row.type != definition.type or kind_of(row.type) != HANDLE or row.status != Status.COMPLETE:
        return False
    try:
        want = context.resolve(definition, row)
    except (Rejected, Terminal):
        return False
    renewed = want.renewed or (want.kind.renewed and context.is_newer(row))
    return not renewed and want.kind.complete(want.values) == want.kind.complete(row.properties)


def conditions(context: Context, group: str) -> set[str]:
    """Return the names of the wait conditions that depend on a group in the newest revision."""
    return {definition.name for definition, _ in _conditions(context.world.definitions, group)}


def gates(context: Context, group: str, before: Sequence[WaitGate] = ()) -> tuple[WaitGate, ...]:
    """Return the wait conditions of the newest revision that depend on a group.

    Args:
        group: Name of the group.
        before: The former gates: a condition whose handle does not exist keeps its former handle.

    Raises:
        Rejected: The properties of a condition are invalid.
        Terminal: As above.
    """
    gates, former_handles = [], {earlier.condition: earlier.handle for earlier in before}
    for definition, kind in _conditions(context.world.definitions, group):
        gate = _gate(context, definition, kind)
        handle = gate.handle or former_handles.get(gate.condition, "")
        if handle:  # else the handle is created after the group
            gates.append(replace(gate, handle=handle))
    return tuple(gates[:WAITED_FOR_MAX])  # the check of the template refuses more


def alarm_handles(context: Context, names: Iterable[str]) -> tuple[str, ...]:
    """Return the record ids of these handles."""
    return tuple(id for id in (_record_of(context, name) for name in names) if id)


def _conditions(definitions: Mapping[str, Definition], group: str) -> Iterator[tuple[Definition, WaitCondition]]:
    for name in sorted(definitions):
        kind = type_of(definitions[name].type)
        if isinstance(kind, WaitCondition) and group in definitions[name].requires:
            yield definitions[name], kind


def _asked(definition: Definition, kind: WaitCondition) -> dict[str, Any]:
    """Return the unresolved handle, timeout and count of a wait condition."""
    return {word: definition.properties[word] for word in kind.words if word in definition.properties}


def _mentioned(definition: Definition, kind: WaitCondition) -> frozenset[str]:
    """Return the names of the resources that handle, timeout and count refer to."""
    return frozenset().union(*map(requires, _asked(definition, kind).values()))


def _gate(context: Context, definition: Definition, kind: WaitCondition) -> WaitGate:
    trees = _asked(definition, kind)
    evaluated = {word: evaluate(tree, context.scope) for word, tree in trees.items()}
    values = kind.complete(kind.check(evaluated, ("resources", definition.name)))
    handle, timeout_s, count = (values[word] for word in kind.words)
    id = _handle_of(context, requires(trees[kind.words[0]]), str(handle or ""))
    return WaitGate(definition.name, id, float(timeout_s), int(count))


def _handle_of(context: Context, names: Collection[str], reference: str) -> str:
    """Return the record id of a condition's handle; "" if it does not exist yet.

    Args:
        named: Names of the resources that the property refers to.
        reference: Value of the property.
    """
    rows = [context.current.get(name) for name in names]
    if any(row is None or not row.handle for row in rows):
        return ""
    # The reference of a handle created just now has not been observed yet.
    records = [_record_of(context, name) for name in names]
    return records[0] if len(records) == 1 and records[0] else handle_id(reference)


def _record_of(context: Context, name: str) -> str:
    """Return the record id of a handle; "" if the resource is no handle, or does not exist."""
    row = context.current.get(name)
    return row.handle if row is not None and kind_of(row.type) == HANDLE else ""


def _followers(definitions: Mapping[str, Definition], group: str) -> set[str]:
    """Return the names of all resources that wait for a group, by requirements or by handles of further groups."""
    waiting: dict[str, set[str]] = defaultdict(set)
    for name, definition in definitions.items():
        for required in definition.requires:
            waiting[required].add(name)
        kind = type_of(definition.type)
        if kind.kind == CONDITION and isinstance(kind, WaitCondition):
            groups = {other for other in definition.requires if _is_group(definitions, other)}
            for handle in _mentioned(definition, kind):
                waiting[handle] |= groups
    followers: set[str] = set()
    ahead = [group]
    while ahead:
        new = waiting[ahead.pop()] - followers
        followers |= new
        ahead += new
    return followers


def _is_group(definitions: Mapping[str, Definition], name: str) -> bool:
    return name in definitions and isinstance(type_of(definitions[name].type), Membership)
