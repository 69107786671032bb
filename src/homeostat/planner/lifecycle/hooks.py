"""Hooks at which a resource stops until a user clears them, as in Heat. Pure."""

from dataclasses import replace

from homeostat.model.hooks import NO_HOOKS, HookProgress
from homeostat.model.plan import Step, event_of
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.templates.registry import POST_CREATE, POST_DELETE, POST_UPDATE, PRE_CREATE, PRE_DELETE, PRE_UPDATE

INTERRUPTED = "Failure occurred while waiting."
"""Heat's reason for an overtaken wait."""
_OF_DELETION = (PRE_DELETE, POST_DELETE)
_STACK_ACTIONS = {
    PRE_CREATE: (Action.CREATE,),
    POST_CREATE: (Action.CREATE,),
    PRE_UPDATE: (Action.UPDATE, Action.ROLLBACK),
    POST_UPDATE: (Action.UPDATE, Action.ROLLBACK),
    PRE_DELETE: (Action.DELETE,),
    POST_DELETE: (Action.DELETE,),
}
"""Hook -> actions of the stack that it applies to."""


def holds(world: World, hook: str) -> bool:
    """Return whether a hook applies to the action in progress."""
    stack = world.stack
    # Healing at rest stops at no hook, as there is nobody who waits for it. Nobody clears the hooks of an
    # abandoned stack either.
    return stack.status == Status.IN_PROGRESS and stack.action in _STACK_ACTIONS[hook] and not stack.abandoned


def stop(world: World, row: Resource, hook: str, now: float) -> Step | Waiting | None:
    """Stop a resource at a hook unless it was cleared or does not apply; None to go on."""
    progress = _of_revision(world, row)
    if not holds(world, hook) or hook in progress.cleared:
        return None
    reason = paused(hook)
    if progress.at == hook:
        return Waiting(row.name, Why.HOOK, (), reason, progress.since, key=row.key)
    # Deletion hooks outlive revisions: a leftover has no definition any more from which to read them.
    of_deletion = (row.hooks or NO_HOOKS).of_deletion
    row.hooks = replace(progress, revision=world.stack.revision, at=hook, since=now, of_deletion=of_deletion)
    return Step(row, events=[event_of(row, reason=reason)])


def interrupted(world: World, row: Resource) -> Step | None:
    """End the wait at a hook after a newer revision or the failure of this revision; else None."""
    if not waits_at(row) or (_is_of_revision(world, row) and world.stack.status == Status.IN_PROGRESS):
        return None
    row.hooks = _or_none(HookProgress(of_deletion=(row.hooks or NO_HOOKS).of_deletion))
    return Step(row, events=[event_of(row, reason=INTERRUPTED)])


def due(world: World, row: Resource) -> str:
    """Return the hook of the newest revision at which a complete resource stops, or ""."""
    progress = _of_revision(world, row)
    return progress.due if progress.due and holds(world, progress.due) and progress.due not in progress.cleared else ""


def intended(world: World, row: Resource, hooks: tuple[str, ...]) -> HookProgress | None:
    """Return a row's progress after the intent of an act; `hooks` are the hooks of its definition."""
    if not hooks and not row.hooks:
        return None
    # The hook belongs to the revision of the act, and no longer applies after a newer one.
    after = POST_CREATE if row.action == Action.CREATE else POST_UPDATE
    progress = replace(_of_revision(world, row), at="", since=0.0)
    if after in hooks and holds(world, after):
        progress = replace(progress, revision=world.stack.revision, due=after)
    return with_deletion_hooks(progress, hooks)


def with_deletion_hooks(progress: HookProgress | None, hooks: tuple[str, ...]) -> HookProgress | None:
    """Return the progress of a row with the deletion hooks of its current definition."""
    if progress is None and not hooks:
        return None
    of_deletion = tuple(hook for hook in _OF_DELETION if hook in hooks)
    return _or_none(replace(progress or NO_HOOKS, of_deletion=of_deletion))


def stops_deletion(row: Resource, hook: str) -> bool:
    """Return whether the row's deletion has this hook."""
    return hook in (row.hooks or NO_HOOKS).of_deletion


def waits_at(row: Resource) -> str:
    """Return the hook at which the row waits, or ""."""
    return (row.hooks or NO_HOOKS).at


def cleared(row: Resource) -> HookProgress:
    """Return the progress of a row after the hook at which it waits was cleared."""
    progress = row.hooks or NO_HOOKS
    return replace(progress, at="", since=0.0, cleared=(*progress.cleared, progress.at))


def paused(hook: str) -> str:
    return f"{hook.partition('-')[2].upper()} paused until Hook {hook} is cleared"


def _is_of_revision(world: World, row: Resource) -> bool:
    return row.hooks is not None and row.hooks.revision == world.stack.revision


def _of_revision(world: World, row: Resource) -> HookProgress:
    """Return the row's progress at the newest revision."""
    return row.hooks if row.hooks is not None and _is_of_revision(world, row) else NO_HOOKS


def _or_none(progress: HookProgress) -> HookProgress | None:
    return None if progress == NO_HOOKS else progress
