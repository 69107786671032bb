"""Hooks: places where a resource stops until a user clears the hook, as in Heat. Pure.

A row remembers for one revision of its stack `{"revision": number, "at": hook at which it stops, "since": time,
"cleared": [hooks it has passed], "due": hook at which it stops once it is complete}`, and for its deletion, whenever
that comes, `{"leaving": [hooks]}`.
"""

from typing import Any

from homeostat.model.plan import Step, Verb
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.templates.registry import POST_CREATE, POST_DELETE, POST_UPDATE, PRE_CREATE, PRE_DELETE, PRE_UPDATE

INTERRUPTED = "Failure occurred while waiting."
"""The reason of Heat for an overtaken wait."""
_OF_DELETION = (PRE_DELETE, POST_DELETE)
_STACK_ACTIONS = {
    PRE_CREATE: (Action.CREATE,),
    POST_CREATE: (Action.CREATE,),
    PRE_UPDATE: (Action.UPDATE, Action.ROLLBACK),
    POST_UPDATE: (Action.UPDATE, Action.ROLLBACK),
    PRE_DELETE: (Action.DELETE,),
    POST_DELETE: (Action.DELETE,),
}
"""Hook -> actions of the stack during which it holds."""


def holds(world: World, hook: str) -> bool:
    """Return whether the stack is doing what the hook is about."""
    stack = world.stack
    return stack.status == Status.IN_PROGRESS and stack.action in _STACK_ACTIONS[hook] and not stack.abandoned


def stop(world: World, row: Resource, hook: str, now: float) -> Step | Waiting | None:
    """Stop a resource at a hook that it has not passed; None where it goes on."""
    mine = _of_revision(world, row)
    if not holds(world, hook) or hook in mine.get("cleared", ()):
        return None
    reason = paused(hook)
    if mine.get("at") == hook:
        return Waiting(row.name, Why.HOOK, (), reason, mine["since"], key=row.key)
    row.hooks = {**_of_deletion(row), **mine, "revision": world.stack.revision, "at": hook, "since": now}
    return Step(Verb.RECORD, row, events=[outcome.event_of(row, row.status, reason)])


def interrupted(world: World, row: Resource) -> Step | None:
    """End the wait at a hook that was overtaken by a newer revision, or by the failure of this one; else None."""
    if not waits_at(row) or (_of_revision(world, row) and world.stack.status == Status.IN_PROGRESS):
        return None
    row.hooks = _of_deletion(row) or None
    return Step(Verb.RECORD, row, events=[outcome.event_of(row, row.status, INTERRUPTED)])


def due(world: World, row: Resource) -> str:
    """Return the hook at which a complete resource stops, or "". One of an older revision does not hold any more."""
    found = str(_of_revision(world, row).get("due", ""))
    return found if found and holds(world, found) and found not in _of_revision(world, row).get("cleared", ()) else ""


def intended(world: World, row: Resource, hooks: tuple[str, ...]) -> dict[str, Any] | None:
    """Return what a row remembers when an act on it is intended; `hooks` are those of its definition."""
    if not hooks and not row.hooks:
        return None
    after = POST_CREATE if row.action == Action.CREATE else POST_UPDATE
    found = {key: value for key, value in _of_revision(world, row).items() if key not in ("at", "since")}
    if after in hooks and holds(world, after):
        found |= {"revision": world.stack.revision, "due": after}
    return with_leaving(found, hooks)


def with_leaving(memory: dict[str, Any] | None, hooks: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the memory of a row with the deletion hooks that its definition has now."""
    rest = {key: value for key, value in (memory or {}).items() if key != "leaving"}
    of_deletion = [hook for hook in _OF_DELETION if hook in hooks]
    return {**rest, "leaving": of_deletion} if of_deletion else rest or None


def stops_leaving(row: Resource, hook: str) -> bool:
    """Return whether the row's deletion has this hook."""
    return hook in (row.hooks or {}).get("leaving", ())


def waits_at(row: Resource) -> str:
    """Return the hook at which the row waits, or ""."""
    return str((row.hooks or {}).get("at", ""))


def cleared(memory: dict[str, Any]) -> dict[str, Any]:
    """Return the memory of a row after the hook at which it waits was cleared."""
    rest = {key: value for key, value in memory.items() if key not in ("at", "since")}
    return {**rest, "cleared": [*memory.get("cleared", ()), memory["at"]]}


def paused(hook: str) -> str:
    return f"{hook.partition('-')[2].upper()} paused until Hook {hook} is cleared"


def _of_revision(world: World, row: Resource) -> dict[str, Any]:
    """Return what the row remembers of the newest revision."""
    memory = row.hooks or {}
    return memory if memory.get("revision") == world.stack.revision else {}


def _of_deletion(row: Resource) -> dict[str, Any]:
    """Return what the row remembers whatever the revision: a deletion may come in any later one."""
    memory = row.hooks or {}
    return {"leaving": memory["leaving"]} if "leaving" in memory else {}
