"""Hooks: places at which a resource stops until somebody lets it go on (environment.md section 3). Pure.

A row remembers, for one revision of its stack: `{"revision": number, "at": hook it stops at, "since": when it came
there, "cleared": [hooks it has passed], "due": hook it stops at once it is complete}`, and for its deletion, whenever
that comes, `{"leaving": [hooks]}`.
"""

from typing import Any

from homeostat.model.plan import Step, Verb, Waiting, Why
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.templates.registry import POST_CREATE, POST_DELETE, POST_UPDATE, PRE_CREATE, PRE_DELETE, PRE_UPDATE

INTERRUPTED = "Failure occurred while waiting."
_OF_DELETION = (PRE_DELETE, POST_DELETE)
_STACK_ACTIONS = {
    PRE_CREATE: (Action.CREATE,),
    POST_CREATE: (Action.CREATE,),
    PRE_UPDATE: (Action.UPDATE, Action.ROLLBACK),
    POST_UPDATE: (Action.UPDATE, Action.ROLLBACK),
    PRE_DELETE: (Action.DELETE,),
    POST_DELETE: (Action.DELETE,),
}
"""Actions of the stack during which a hook holds."""


def holds(world: World, hook: str) -> bool:
    """Is the stack doing what the hook is about?"""
    stack = world.stack
    return stack.status == Status.IN_PROGRESS and stack.action in _STACK_ACTIONS[hook] and not stack.abandoned


def stop(world: World, row: Resource, hook: str, now: float) -> Step | Waiting | None:
    """Stop the resource here, if it has not passed this hook; None where it goes on."""
    mine = _mine(world, row)
    if not holds(world, hook) or hook in mine.get("cleared", ()):
        return None
    reason = paused(hook)
    if mine.get("at") == hook:
        return Waiting(row.name, Why.HOOK, (), reason, mine["since"], key=row.key)
    row.hooks = {**_kept(row), **mine, "revision": world.stack.revision, "at": hook, "since": now}
    return Step(Verb.RECORD, row, events=[outcome.event_of(row, row.status, reason)])


def interrupted(world: World, row: Resource) -> Step | None:
    """What it waited for has been overtaken: by a newer revision, or by the failure of this one."""
    if not waits_at(row) or (_mine(world, row) and world.stack.status == Status.IN_PROGRESS):
        return None
    row.hooks = _kept(row) or None
    return Step(Verb.RECORD, row, events=[outcome.event_of(row, row.status, INTERRUPTED)])


def due(world: World, row: Resource) -> str:
    """The hook at which a complete resource stops, or "". That of an older revision holds no more."""
    found = str(_mine(world, row).get("due", ""))
    return found if found and holds(world, found) and found not in _mine(world, row).get("cleared", ()) else ""


def intended(world: World, row: Resource, hooks: tuple[str, ...]) -> dict[str, Any] | None:
    """What a row remembers when an act on it is intended. hooks — of its definition."""
    if not hooks and not row.hooks:
        return None
    after = POST_CREATE if row.action == Action.CREATE else POST_UPDATE
    found = {key: value for key, value in _mine(world, row).items() if key not in ("at", "since")}
    if after in hooks and holds(world, after):
        found |= {"revision": world.stack.revision, "due": after}
    return with_leaving(found, hooks)


def with_leaving(memory: dict[str, Any] | None, hooks: tuple[str, ...]) -> dict[str, Any] | None:
    """The memory of a row with the hooks of its deletion as its definition has them now."""
    rest = {key: value for key, value in (memory or {}).items() if key != "leaving"}
    of_deletion = [hook for hook in _OF_DELETION if hook in hooks]
    return {**rest, "leaving": of_deletion} if of_deletion else rest or None


def stops_leaving(row: Resource, hook: str) -> bool:
    """Has its deletion this hook?"""
    return hook in (row.hooks or {}).get("leaving", ())


def waits_at(row: Resource) -> str:
    """The hook that it waits at, or ""."""
    return str((row.hooks or {}).get("at", ""))


def cleared(memory: dict[str, Any]) -> dict[str, Any]:
    """The memory of a row once the hook that it waits at is cleared."""
    rest = {key: value for key, value in memory.items() if key not in ("at", "since")}
    return {**rest, "cleared": [*memory.get("cleared", ()), memory["at"]]}


def paused(hook: str) -> str:
    return f"{hook.partition('-')[2].upper()} paused until Hook {hook} is cleared"


def _mine(world: World, row: Resource) -> dict[str, Any]:
    """What it remembers of the newest revision."""
    memory = row.hooks or {}
    return memory if memory.get("revision") == world.stack.revision else {}


def _kept(row: Resource) -> dict[str, Any]:
    """What it remembers of any revision."""
    memory = row.hooks or {}
    return {"leaving": memory["leaving"]} if "leaving" in memory else {}
