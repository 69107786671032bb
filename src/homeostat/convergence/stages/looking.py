"""The stage that looks again at things that others have changed (ADR 0099)."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from homeostat.convergence.executor import StepExecutor
from homeostat.convergence.stages.passing import Pass
from homeostat.kinds.effects import Named
from homeostat.kinds.registry import KINDS
from homeostat.model.observed import Observation
from homeostat.model.plan import Step, Verb
from homeostat.model.status import Action
from homeostat.model.world import Resource, Seen, next_own_look
from homeostat.planner.effects import to_look_at
from homeostat.resources.registry import kind_of, of_kind, type_of
from homeostat.store.shards import observations
from homeostat.store.shards.observations import WatchedThing
from homeostat.store.stacks import stacks

LOG = logging.getLogger(__name__)
Look = Callable[[Sequence[WatchedThing]], Sequence[Any]]
"""Looks at things, stores what has changed and wakes their shards; returns those that could not be looked at."""
HOLDER = "device_id"
"""Field of a thing that says which other one holds it."""


def look_again(current: Pass, executor: StepExecutor, look: Look) -> None:
    """Look at what was changed by others since the last look, one call for each kind.

    It comes before the transaction that stores what has changed it: a worker that dies in between has that happen once
    more. What could not be looked at is left to the observers, soon.

    Raises:
        Superseded: A newer owner has the shard.
    """
    changes, current.changes = current.changes, []
    found = to_look_at(current.world, current.frontier.current, changes)
    if found.rows:
        steps = [Step(Verb.OBSERVE, row) for row in found.rows]
        for step, answer in executor.execute(current.world, steps, current.ownership, current.redactor.text):
            if isinstance(answer, Observation) and answer.present:
                _take(current, step.row, answer)
            else:
                LOG.info("resource %s was changed by another one, and is not seen now: %s", step.row.name, answer)
                current.looks_soon = True
    if found.elsewhere:
        elsewhere = _elsewhere(current, found.elsewhere)
        if elsewhere:
            look(elsewhere)


def _take(current: Pass, row: Resource, answer: Observation) -> None:
    """Make a look the newest one of its row, where it differs from the one before; it is yet to be judged."""
    before, kind = current.world.seen.get(row.key), type_of(row.type)
    known = before.observation.properties if before is not None else {}
    once = {name: known[name] for name in kind.creation_only_fields if name in known}
    properties = {**once, **answer.properties}
    if properties.get("status") in KINDS[kind_of(row.type)].statuses.busy:
        current.looks_soon = True
    if before is not None and before.observation.present and not observations.properties_differ(known, properties):
        return
    number = next_own_look(before.number if before is not None else 0)
    current.world.seen[row.key] = Seen(Observation(answer.presence, answer.handle, properties, answer.seen_at), number)
    current.store_observation(row)
    current.looked_again = True


def _elsewhere(current: Pass, named: Sequence[Named]) -> list[WatchedThing]:
    """Return what is looked at of things that templates name and that are not of this shard."""
    stack = current.world.stack
    with current.db.read() as tx:
        root = stacks.get(tx, stack.root_id or stack.id)
        if root is None or root.action == Action.DELETE:
            return []  # all of it goes

        def things(wanted: dict[str, set[str]]) -> Iterator[WatchedThing]:
            """Yield the things with these handles, by kind."""
            names = [name for each in of_kind(wanted).values() for name in each]
            for thing in observations.by_handle(tx, sorted(set().union(*wanted.values())), names):
                if thing.project == stack.project and thing.handle in wanted[kind_of(thing.type)]:
                    yield thing

        wanted: dict[str, set[str]] = {}
        for each in named:
            wanted.setdefault(each.through or each.kind, set()).add(each.name)
        holders = {each.through: each.kind for each in named if each.through}
        found, held = list[WatchedThing](), dict[str, set[str]]()
        for thing in things(wanted):
            kind = kind_of(thing.type)
            if kind in holders:
                held.setdefault(holders[kind], set()).add(str((thing.seen or {}).get(HOLDER)))
            else:
                found.append(thing)
        found += things(held) if held else ()
    rows = current.world.rows
    return [thing for thing in found if thing.key not in rows and not thing.busy]
