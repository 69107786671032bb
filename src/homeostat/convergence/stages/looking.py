"""The stage that looks again at things changed by side effects of other things (ADR 0099)."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from homeostat.convergence.execution.executor import StepExecutor
from homeostat.convergence.stages.passing import Pass
from homeostat.kinds.effects import Named
from homeostat.kinds.registry import KINDS
from homeostat.model.observed import Observation
from homeostat.model.plan import OBSERVE, Step
from homeostat.model.status import Action
from homeostat.model.world import Resource, Seen, next_own_look
from homeostat.planner.effects import to_look_at
from homeostat.resources.registry import kind_of, of_kind, type_of
from homeostat.store.shards import observations
from homeostat.store.shards.observations import WatchedThing
from homeostat.store.stacks import stacks

LOG = logging.getLogger(__name__)
Look = Callable[[Sequence[WatchedThing]], Sequence[Any]]
"""Observes things, stores the changes and wakes their shards; returns the things that could not be observed."""
HOLDER = "device_id"
"""Field of a thing that names its holder, such as the server of a port."""


def look_again(current: Pass, executor: StepExecutor, look: Look) -> None:
    """Look at things changed by side effects since the last look, in one call for each kind.

    The look precedes the transaction that stores the end of the causing step: if the worker dies in between, the step's
    end and the look are repeated. If an observation fails, the observers look soon.

    Raises:
        Superseded: A newer owner has the shard.
    """
    changes, current.changes = current.changes, []
    effects = to_look_at(current.world, current.frontier.current, changes)
    if effects.rows:
        steps = [Step(row, OBSERVE) for row in effects.rows]
        for step, answer in executor.execute(current.world, steps, current.ownership, current.redactor.text):
            if isinstance(answer, Observation) and answer.present:
                _take(current, step.row, answer)
            else:
                LOG.info("resource %s was changed by another one, and is not seen now: %s", step.row.name, answer)
                current.looks_soon = True
    if effects.elsewhere:
        elsewhere = _elsewhere(current, effects.elsewhere)
        if elsewhere:
            look(elsewhere)


def _take(current: Pass, row: Resource, answer: Observation) -> None:
    """Take an observation that differs from the row's previous observation as the newest, not yet judged."""
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
    """Return the affected things of other shards, as `named` by templates."""
    stack = current.world.stack
    with current.db.read() as tx:
        root = stacks.get(tx, stack.root_id or stack.id)
        if root is None or root.action == Action.DELETE:
            return []  # the whole tree is being deleted

        def watched(wanted: dict[str, set[str]]) -> Iterator[WatchedThing]:
            """Yield the things with these handles, by kind."""
            names = [name for handles in of_kind(wanted).values() for name in handles]
            for thing in observations.by_handle(tx, sorted(set().union(*wanted.values())), names):
                if thing.project == stack.project and thing.handle in wanted[kind_of(thing.type)]:
                    yield thing

        wanted: dict[str, set[str]] = {}
        for affected_thing in named:
            wanted.setdefault(affected_thing.through or affected_thing.kind, set()).add(affected_thing.name)
        holders = {affected_thing.through: affected_thing.kind for affected_thing in named if affected_thing.through}
        affected, held = list[WatchedThing](), dict[str, set[str]]()
        for thing in watched(wanted):
            kind = kind_of(thing.type)
            if kind in holders:
                held.setdefault(holders[kind], set()).add(str((thing.seen or {}).get(HOLDER)))
            else:
                affected.append(thing)
        affected += watched(held) if held else ()
    rows = current.world.rows
    return [thing for thing in affected if thing.key not in rows and not thing.busy]
